"""FedDP-Init, steps 1 and 2: the subspace in which the clusters differ, and weights of the server's points.

Step 1 in section 3.1 of the paper uses only the k main directions of the records' noisy second moments. Here the
server's data contribute, too: their covariance is a second estimate, whose error is known from the number of points.
Both are averaged by their precision. With little noise, the server's part vanishes; with much, only it remains.

Step 2 counts the records that each of the server's points represents, and clusters the points by these weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from cloister.crypto.stream import Stream
from cloister.kmeans.kernel import nearest
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.privacy.centre_noise import blur_weighted_means
from cloister.protocols.feddp.questions import Weights, pack_places
from cloister.protocols.feddp.server import ServerData
from cloister.protocols.feddp.settings import WEIGHTS, FeddpSettings
from cloister.protocols.guided_sums.postprocessing import estimate_counts, shrink_mean
from cloister.protocols.guided_sums.query import Asking, PublicValues, pose
from cloister.protocols.guided_sums.statistics import Subspace, fix_signs, release_moments
from cloister.records import FloatArray

_DISTRUST = 4.0  # the server's points may be from another source: their covariance counts as if from 1/4 as many


def find_projection(
    settings: FeddpSettings, server: ServerData, *, l2_squared: int, records: float
) -> Asking[Subspace]:
    """Release sums and second moments around the server's middle; return the main directions around the mean."""
    d = settings.dimensions
    moments = yield from release_moments(settings, l2_squared=l2_squared, middle=server.middle, radius=server.radius)
    if settings.client_level:  # parties' vectors are scaled: how much is read off the trace
        records = max(float(np.trace(moments.second)), moments.noise * sqrt(d)) / float(np.trace(server.covariance))
    mean = shrink_mean(moments.sums / records, moments.sum_noise / records)
    covariance = moments.second / records - np.outer(mean, mean)
    # Of one entry off the diagonal. A sample's varies by the product of the two variances over its size.
    ours = (moments.noise / records) ** 2 / 2
    theirs = _DISTRUST * (float(np.trace(server.covariance)) / d) ** 2 / settings.stamp.points
    combined = (covariance / ours + server.covariance / theirs) / (1 / ours + 1 / theirs)
    _, vectors = np.linalg.eigh(combined)
    axes = fix_signs(vectors[:, ::-1][:, : min(d, settings.clusters)])
    return Subspace(origin=np.clip(server.middle + mean, -1.0, 1.0), axes=axes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Proxy:
    """The server's points with weights: a stand-in for the records."""

    places: FloatArray
    """Their coordinates in the subspace."""
    weights: FloatArray
    variance: float
    """Of the noise in one of the weights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """Clusters of the proxy."""

    places: FloatArray
    """The centres, in the subspace."""
    labels: NDArray[np.int32]
    """Of the server's points."""
    weights: FloatArray
    weight_variances: FloatArray
    place_variances: FloatArray
    """Of the noise in the places."""


def release_weights(
    settings: FeddpSettings, points: FloatArray, kept: Kept, subspace: Subspace, *, l2_squared: int, records: float
) -> Asking[Proxy]:
    """Release how many records are nearest to each of the server's points, seen in the subspace (equation 3)."""
    noisy = yield from ask_weights(settings, WEIGHTS, points, kept, subspace, l2_squared=l2_squared)
    noise_std = 1 / settings.signal(l2_squared)
    posterior = estimate_counts(noisy, noise_std, level=0.0)
    weights = np.maximum(posterior.means, 1e-9 * records)
    return Proxy(
        places=subspace.project(points if kept is None else points[kept]), weights=weights, variance=noise_std**2
    )


Kept = NDArray[np.intp] | None
"""The places of the server's points that are asked about; None for all of them."""


def ask_weights(
    settings: FeddpSettings,
    name: str,
    points: FloatArray,
    kept: Kept,
    subspace: Subspace | None,
    *,
    l2_squared: int,
) -> Asking[FloatArray]:
    """Release how many records are nearest to each point, in the subspace or in all columns.

    Privacy
    -------
    As `questions.Weights`.
    """
    question = Weights(
        share=l2_squared,
        kept=None if kept is None else pack_places(kept, len(points)),
        plane=None if subspace is None else subspace.pack(),
    )
    total = yield pose(PublicValues(settings=settings, points=points), name, question)
    noisy: FloatArray = total / isqrt(l2_squared)
    return noisy


def cluster_proxy(proxy: Proxy, k: int, *, restarts: int, stream: Stream) -> Start:
    """Cluster the server's points by their weights, in the subspace; the best of many starts."""
    fit = weighted_kmeans(proxy.places, k, stream, weights=proxy.weights, restarts=restarts)
    labels = nearest(proxy.places, fit.centres).labels
    sizes: FloatArray = np.bincount(labels, weights=proxy.weights, minlength=k).astype(np.float64)
    return Start(
        places=fit.centres,
        labels=labels,
        weights=np.maximum(sizes, 1e-300),
        weight_variances=np.maximum(np.bincount(labels, minlength=k), 1) * proxy.variance,
        place_variances=blur_weighted_means(proxy.places, labels, proxy.weights, fit.centres, proxy.variance),
    )
