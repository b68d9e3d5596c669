"""Seeded data sets: the mixtures that the papers describe.

Every generator takes a :class:`~cloister.crypto.Stream` and nothing else that is random, so a seed names a data set.
Clusters at a given degree of separation are in :mod:`papers.data.separation`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.forecast.families import Sample
from cloister.records import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class FederatedSample:
    """A data set dealt out to clients, with related data that a server holds."""

    sample: Sample
    clients: tuple[IntArray, ...]
    """For each client, its rows of ``sample``."""
    server_points: FloatArray
    """The server's own points, partly from another distribution."""


def gaussian_mixture(
    stream: Stream,
    *,
    n: int = 10_000,
    k: int = 4,
    d: int = 100,
    deviation: float = 1.0,
    box: float = 10.0,
) -> Sample:
    """Draw an isotropic mixture with equal weights (SecFC 5.1); labels are the components that points are drawn from.

    The text says that a point's label is its closest centre (:func:`nearest_centres`), but prints accuracies against
    the components.

    Parameters
    ----------
    stream
        Source of randomness.
    n, k, d
        Points, clusters and columns; the defaults are the paper's first setting.
    deviation
        The paper's sigma, the same for every cluster: 1 or 20 there.
    box
        Centres are uniform in [-box, box]^d. The paper says only that they are random; 10 is scikit-learn's
        ``make_blobs``, whose wording it uses.

    Returns
    -------
    Sample
    """
    _require_sizes(n=n, k=k, d=d)
    centres = (2.0 * stream.uniform(k, d) - 1.0) * box
    labels = stream.integers(k, n)
    points = centres[labels] + deviation * stream.normal(n, d)
    return Sample(points=points, labels=labels, centres=centres)


def feddp_mixture(
    stream: Stream,
    *,
    clients: int = 100,
    points_per_client: int = 1000,
    k: int = 10,
    d: int = 100,
    variance: float = 0.5,
    server_points_per_cluster: int = 20,
    server_uniform_points: int = 100,
) -> FederatedSample:
    """Draw the mixture of FedDP-KMeans, appendix G.1.

    Means are uniform in [0, 1]^d, covariances ``variance`` times the identity, weights 1/k; every client
    draws its points i.i.d. The server holds points of each component, and half as many uniform in [0, 1]^d. One stream
    gives the same means and the same server points for any number of clients, as the paper's settings share theirs.

    Parameters
    ----------
    stream
        Source of randomness.
    clients, points_per_client
        100 of 1000 is the paper's cross-silo setting (5.1); 1000, 2000 or 5000 of 50 its cross-device setting
        (5.2).
    k, d
        Components and columns.
    variance
        The paper's Sigma = 0.5 I.
    server_points_per_cluster, server_uniform_points
        The server's points from each component, and from outside the mixture.

    Returns
    -------
    FederatedSample
    """
    _require_sizes(clients=clients, points_per_client=points_per_client, k=k, d=d)
    deviation = float(np.sqrt(variance))
    n = clients * points_per_client
    centres = stream.uniform(k, d)
    labels = stream.integers(k, n)
    points = centres[labels] + deviation * stream.normal(n, d)
    inside = np.repeat(centres, server_points_per_cluster, axis=0)
    server = stream.child("server")
    inside = inside + deviation * server.normal(*inside.shape)
    return FederatedSample(
        sample=Sample(points=points, labels=labels, centres=centres),
        clients=tuple(np.arange(n).reshape(clients, points_per_client)),
        server_points=np.concatenate([inside, server.uniform(server_uniform_points, d)]),
    )


def s1_like(stream: Stream, *, n: int = 5000, k: int = 15) -> Sample:
    """Draw round clusters in the plane, like S1 of the clustering basic benchmark.

    Like S1, the default has 15 clusters of some 333 points in [0, 10^6]^2, with deviation 30,000 each way and
    centres at least 160,000 apart, so that neighbours touch and overlap a little. The centres are not S1's:
    they are drawn uniformly, and drawn again when one falls too close to another.
    """
    _require_sizes(n=n, k=k)
    side, deviation = 1e6, 30_000.0
    centres = _scatter(stream, k, side, 160_000.0 * np.sqrt(15 / max(k, 15)))  # more must stand closer to find room
    labels = stream.integers(k, n)
    points = np.clip(centres[labels] + deviation * stream.normal(n, 2), 0.0, side)
    return Sample(points=points, labels=labels, centres=centres)


def _scatter(stream: Stream, k: int, side: float, apart: float) -> FloatArray:
    """Draw centres in the inner square, none closer than ``apart``; start again when no room is left."""
    while True:
        centres = np.empty((0, 2))
        for candidate in side * (0.1 + 0.8 * stream.uniform(200 * k, 1, 2)):
            if (np.linalg.norm(centres - candidate, axis=1) >= apart).all():
                centres = np.concatenate([centres, candidate])
            if len(centres) == k:
                return centres


def nearest_centres(points: FloatArray, centres: FloatArray) -> IntArray:
    """Return the index of the nearest centre of each point, the lowest one of ties; one centre at a time."""
    best = np.full(len(points), np.inf)
    labels = np.zeros(len(points), dtype=np.int64)
    for index, centre in enumerate(centres):
        distance = np.einsum("nd,nd->n", points - centre, points - centre)
        closer = distance < best
        labels[closer] = index
        best[closer] = distance[closer]
    return labels


def _require_sizes(**sizes: int) -> None:
    """Refuse sizes below one."""
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(f"{name} must be at least 1; got {size}. Give a positive number.")
