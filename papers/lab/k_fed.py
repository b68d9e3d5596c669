"""k-FED: every client clusters its own records, the server clusters the clients' centres (Dennis, Li and Smith, 2021).

It has no privacy at all: each client sends the exact means of its clusters to the server. It is here because SecFC
(3.2 and 5) and FedDP-KMeans (5, 6) compare themselves with it.

Two variants, which differ in where Lloyd's algorithm starts:

described
    As SecFC 3.2 and 5 describe it: clients and server start from a random assignment, with the centre separation of
    section 5. A random start often leaves two groups in one and a third one split, so this fails where k-FED need not.
repaired
    Clients start from spread-out records (k-means++), the server from the centres of one client and then, again and
    again, the received centre that is farthest from those it has; one assignment to these gives the groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans import kmeans_plus_plus, lloyd, nearest, update_centres
from cloister.kmeans.values import check_at_least, check_centres, check_finite_points
from cloister.privacy.card import PrivacyCard
from cloister.privacy.units import Unit
from cloister.records import FloatArray, IntArray

Variant = Literal["described", "repaired"]

_ITERATIONS = 100
_CHUNK_ROWS = 4096
_CANDIDATES = 3  # greedy k-means++: clients have few clusters, and a bad start cannot be mended by the server


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Points in groups.

    Attributes
    ----------
    centres
        (k, d), the means of the groups; where a group is empty, where its centre was last.
    labels
        The group of each point.
    """

    centres: FloatArray
    labels: IntArray = field(repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class KFedFit:
    """What the one round of k-FED leaves behind.

    Attributes
    ----------
    centres
        (k, d), the means of the groups of clients' centres, each centre counted once.
    local_centres
        What each client sent.
    labels
        The cluster of each record of each client: the group of its local centre.
    """

    centres: FloatArray
    local_centres: tuple[FloatArray, ...] = field(repr=False)
    labels: tuple[IntArray, ...] = field(repr=False)


def k_fed(
    parts: Sequence[FloatArray], k: int, local_k: int, stream: Stream, *, variant: Variant, restarts: int = 1
) -> KFedFit:
    """Run k-FED.

    Parameters
    ----------
    parts
        Each client's records, (n_j, d).
    k
        The number of clusters of all records together.
    local_k
        k': the number of clusters that each client looks for; it is assumed to be known. A client with fewer records
        looks for as many as it has records.
    stream
        The source of randomness; every client and the server have their own child of it.
    variant
        As SecFC describes it, or with starts that work.
    restarts
        How often a client clusters its records from another start; the best counts. Where k' = k the server takes one
        client's centres for its start, and a cluster that this client missed is missed for good.

    Raises
    ------
    ConfigError
        If the clients together send fewer than k centres.
    """
    found = [
        cluster_locally(part, local_k, stream.child("client", number), variant=variant, restarts=restarts)
        for number, part in enumerate(parts)
    ]
    local_centres = tuple(each.centres for each in found)
    groups = group_centres(local_centres, k, stream.child("server"), variant=variant)
    of_client = np.split(groups.labels, np.cumsum([len(centres) for centres in local_centres])[:-1])
    return KFedFit(
        centres=groups.centres,
        local_centres=local_centres,
        labels=tuple(group[each.labels] for group, each in zip(of_client, found, strict=True)),
    )


def cluster_locally(points: FloatArray, local_k: int, stream: Stream, *, variant: Variant, restarts: int = 1) -> Groups:
    """Return one client's clusters, k' of them or as many as it has records; of some restarts the best."""
    points = check_finite_points(points)
    check_at_least("the number of records of a client", len(points), 1)
    check_at_least("local_k", local_k, 1)
    check_at_least("restarts", restarts, 1)
    k = min(local_k, len(points))

    def start() -> FloatArray:
        if variant == "described":
            return _start_at_random(points, k, stream)
        return kmeans_plus_plus(stream, points, k, candidates=_CANDIDATES)

    tries = [_run_lloyd(points, start()) for _ in range(restarts)]
    return tries[0] if restarts == 1 else min(tries, key=lambda found: _lose(points, found))


def group_centres(local_centres: Sequence[FloatArray], k: int, stream: Stream, *, variant: Variant) -> Groups:
    """Return the server's groups of all received centres, in the clients' order."""
    check_at_least("k", k, 1)
    check_at_least("the number of clients", len(local_centres), 1)
    every = np.concatenate(local_centres)
    if len(every) < k:
        raise ConfigError(
            f"clients must send at least as many centres as there are clusters, {k}; they send {len(every)}. "
            "Use more clients, or more clusters per client."
        )
    if variant == "described":
        return _run_lloyd(every, _start_at_random(every, k, stream))
    most = max(local_centres, key=len)
    start = _add_farthest(most[:k], every, k)
    labels = nearest(every, start).labels.astype(np.int64)
    return Groups(centres=_average(every, labels, start), labels=labels)


def _run_lloyd(points: FloatArray, start: FloatArray) -> Groups:
    """Separate the centres once, then run Lloyd's algorithm (SecFC 5)."""
    fit = lloyd(points, centre_separation(points, start) if len(start) > 1 else start, iterations=_ITERATIONS)
    return Groups(centres=fit.centres, labels=nearest(points, fit.centres).labels.astype(np.int64))


def _lose(points: FloatArray, found: Groups) -> float:
    """The sum of squared distances to the centres of the groups."""
    return float(((points - found.centres[found.labels]) ** 2).sum())


def _start_at_random(points: FloatArray, k: int, stream: Stream) -> FloatArray:
    """Return the means of k random groups of equal size, but for one point (Algorithm 1, line 6)."""
    labels = stream.permutation(len(points)) % k
    return _average(points, labels, points[:k])


def _add_farthest(chosen: FloatArray, points: FloatArray, k: int) -> FloatArray:
    """Return k points: those chosen, then each time the one that is farthest from all chosen before."""
    away = cdist(points, chosen, "sqeuclidean").min(axis=1)
    while len(chosen) < k:
        farthest = points[int(away.argmax())][None]
        chosen = np.concatenate([chosen, farthest])
        away = np.minimum(away, cdist(points, farthest, "sqeuclidean")[:, 0])
    return chosen


def _average(points: FloatArray, labels: IntArray, previous: FloatArray) -> FloatArray:
    """Return the groups' means; an empty group keeps its centre."""
    sums = np.zeros_like(previous)
    np.add.at(sums, labels, points)
    return update_centres(sums, np.bincount(labels, minlength=len(previous)), previous)


def centre_separation(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Move each centre to the mean of the records that are clearly its own (SecFC section 5).

    A record is clearly of centre h if its distance to h is at most 1/3 of that to every other centre. A
    centre without such records stays.

    Parameters
    ----------
    points
        (n, d).
    centres
        (k, d), from a first clustering.

    Returns
    -------
    FloatArray
        (k, d), to start the clustering proper from.
    """
    centres = check_centres(centres)
    k = len(centres)
    points = check_finite_points(points, centres.shape[1])
    sums = np.zeros_like(centres)
    counts = np.zeros(k)
    for first in range(0, len(points), _CHUNK_ROWS):
        chunk = points[first : first + _CHUNK_ROWS]
        squared_distances = cdist(chunk, centres, "sqeuclidean")
        own = squared_distances.argmin(axis=1)
        closest = squared_distances[np.arange(len(chunk)), own]
        squared_distances[np.arange(len(chunk)), own] = np.inf
        clear = closest <= squared_distances.min(axis=1) / 9.0
        np.add.at(sums, own[clear], chunk[clear])
        counts += np.bincount(own[clear], minlength=k)
    separated: FloatArray = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    return separated


def write_k_fed_card(unit: Unit) -> PrivacyCard:
    """Return k-FED's card: no noise, no release with a cost, nobody protected (Dennis, Li and Smith 2021)."""
    return PrivacyCard(
        private=False,
        unit=unit.value,
        neighbours="no promise is made about any",
        epsilon=math.inf,
        delta=0.0,
        how_composed="nothing to compose: no noise is added",
        budget_epsilon=math.inf,
        budget_delta=0.0,
        releases=(),
        who_adds_noise="Nobody.",
        who_could_subtract="There is no noise to subtract.",
        protects_against="Nobody is protected.",
        breaks_if="Nothing needs to be broken: the server is sent what there is to know.",
        not_promised=(
            "k-FED has no privacy: every client sends the exact means of its clusters to the server, unmasked and by "
            "name. With few records to a cluster these are records.",
        ),
        scope="Nothing in it is protected: every client sends the exact means of its clusters to the server.",
    )
