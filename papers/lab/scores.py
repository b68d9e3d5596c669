"""How good a clustering is: by the records alone, and by how well it agrees with known classes.

All of these read the records, so their values are private unless released by a mechanism.

The indices of separation are undefined for fewer than two clusters, which a noisy run can end with. They then
take the value that is neutral or worst, so that a study goes on and its average shows it.

In label scores, labels are names: only which records share one matters. Every such score is at most 1, which means the
same partition.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.metrics import (
    adjusted_rand_score,
    davies_bouldin_score,
    fowlkes_mallows_score,
    normalized_mutual_info_score,
    silhouette_score,
)
from sklearn.metrics.cluster import contingency_matrix

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans import cluster_sums
from cloister.kmeans.values import check_at_least, check_centres, check_finite_points
from cloister.records import FloatArray, Records

LabelArray = NDArray[np.integer[Any]]

_WORKING_MEMORY_MIB = 64
_PAIRS_AT_ONCE = 1 << 22  # 32 MiB of distances


def wcss(records: Records | FloatArray, centres: FloatArray, labels: LabelArray | None = None) -> float:
    """Return the within-cluster sum of squares: the sum of |x - c|^2, c being each record's own centre.

    Parameters
    ----------
    records
        Records or an (n, d) array.
    centres
        (k, d).
    labels
        Each record's centre; the nearest one if left out. Needs an array.
    """
    if labels is None:
        return cluster_sums(records, centres).loss
    centres = check_centres(centres)
    if not isinstance(records, np.ndarray):
        raise ConfigError("records must be one array where labels are given; got batches. Gather them first.")
    points = check_finite_points(records, centres.shape[1])
    labels = _check_labels(labels, len(points))
    if len(labels) and labels.max() >= len(centres):
        raise ConfigError(
            f"labels must be less than the number of centres, {len(centres)}; got up to {labels.max()}. "
            "Give the centres that the labels belong to."
        )
    return float(((points - centres[labels]) ** 2).sum())


def nicv(records: Records | FloatArray, centres: FloatArray, labels: LabelArray | None = None) -> float:
    """Return the normalised intra-cluster variance: WCSS / N (FastLloyd 6.2)."""
    if labels is not None:
        check_at_least("the number of records", len(labels), 1)
        return wcss(records, centres, labels) / len(labels)
    parts = cluster_sums(records, centres)
    check_at_least("the number of records", int(parts.counts.sum()), 1)
    return parts.loss / int(parts.counts.sum())


def bcss(points: FloatArray, labels: LabelArray) -> float:
    """Return the between-cluster sum of squares: the sum over clusters of n_j |mean_j - mean|^2.

    With each cluster's mean as its centre, WCSS + BCSS is the total sum of squares about the mean.
    """
    points = check_finite_points(points)
    labels = _check_labels(labels, len(points))
    check_at_least("the number of records", len(points), 1)
    counts = np.bincount(labels)
    full = counts > 0
    sums = np.stack([np.bincount(labels, weights=column)[full] for column in points.T], axis=1)
    means = sums / counts[full, None]
    return float((counts[full, None] * (means - points.mean(axis=0)) ** 2).sum())


def silhouette(
    points: FloatArray, labels: LabelArray, *, stream: Stream | None = None, sample_size: int = 5000
) -> float:
    """Return the mean silhouette coefficient, between -1 and 1.

    With more than ``sample_size`` points it is that of a sample, drawn from ``stream``. A point alone in its
    cluster has 0, and so has a clustering with fewer than two clusters (of the sample).
    """
    points, labels = _sample(points, labels, stream, sample_size)
    clusters = len(np.unique(labels))
    if clusters < 2 or clusters == len(points):
        return 0.0
    with sklearn.config_context(working_memory=_WORKING_MEMORY_MIB):
        return float(silhouette_score(points, labels))


def davies_bouldin(points: FloatArray, labels: LabelArray) -> float:
    """Return the Davies-Bouldin index, at least 0; smaller is better.

    Infinite for fewer than two clusters; 0 where every point is alone in its cluster.
    """
    points = check_finite_points(points)
    labels = _check_labels(labels, len(points))
    check_at_least("the number of records", len(points), 1)
    clusters = len(np.unique(labels))
    if clusters < 2:
        return math.inf
    return 0.0 if clusters == len(points) else float(davies_bouldin_score(points, labels))


def dunn(points: FloatArray, labels: LabelArray, *, stream: Stream | None = None, sample_size: int = 5000) -> float:
    """Return Dunn's index: the least distance between clusters over the largest diameter; larger is better.

    With more than ``sample_size`` points it is that of a sample, which is too large rather than too small. 0
    for fewer than two clusters and for clusters that touch; infinite where every cluster is one place.
    """
    points, labels = _sample(points, labels, stream, sample_size)
    if len(np.unique(labels)) < 2:
        return 0.0
    diameter, separation = 0.0, math.inf
    rows = max(1, _PAIRS_AT_ONCE // len(points))
    for first in range(0, len(points), rows):
        distances = cdist(points[first : first + rows], points)
        same = labels[first : first + rows, None] == labels
        diameter = max(diameter, float(distances.max(where=same, initial=0.0)))
        separation = min(separation, float(distances.min(where=~same, initial=math.inf)))
    if separation == 0.0:
        return 0.0
    return math.inf if diameter == 0.0 else separation / diameter


def empty_clusters(counts: NDArray[np.integer[Any]]) -> float:
    """Return the ratio of empty clusters to k, from the clusters' sizes (FastLloyd 6.2)."""
    check_at_least("k", len(counts), 1)
    return float(np.count_nonzero(counts == 0)) / len(counts)


def adjusted_rand(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the adjusted Rand index: 0 on average for chance, 1 for the same partition, negative below chance."""
    return float(adjusted_rand_score(*_check_pair(truth, labels)))


def normalised_mutual_information(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the mutual information over the mean of the two entropies; 1 where both are one cluster."""
    return float(normalized_mutual_info_score(*_check_pair(truth, labels)))


def fowlkes_mallows(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the geometric mean of pairwise precision and recall; 0 where no pair is together in both."""
    return float(fowlkes_mallows_score(*_check_pair(truth, labels)))


def matched_accuracy(truth: ArrayLike, labels: ArrayLike) -> float:
    """Return the share of records whose cluster is matched with their class, in the best one-to-one matching.

    The Hungarian method finds the matching (SecFC section 5). Where there are more clusters than classes, or
    fewer, the records of unmatched ones count as wrong.
    """
    known, found = _check_pair(truth, labels)
    table = contingency_matrix(known, found)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum()) / len(known)


def _check_labels(labels: LabelArray, records: int) -> LabelArray:
    """Return the labels if there is one index for each record."""
    labels = np.asarray(labels)
    if labels.shape != (records,) or labels.dtype.kind not in "iu" or (records and labels.min() < 0):
        raise ConfigError(
            f"labels must be one integer >= 0 for each of {records} records; got {labels.dtype} of shape "
            f"{labels.shape}. Number the clusters from 0."
        )
    return labels


def _sample(
    points: FloatArray, labels: LabelArray, stream: Stream | None, sample_size: int
) -> tuple[FloatArray, LabelArray]:
    """Return the checked points and labels, or as many of them as the sample may have."""
    points = check_finite_points(points)
    labels = _check_labels(labels, len(points))
    check_at_least("the number of records", len(points), 1)
    check_at_least("sample_size", sample_size, 2)
    if len(points) <= sample_size:
        return points, labels
    if stream is None:
        raise ConfigError(
            f"more than sample_size={sample_size} records need a stream to draw a sample; got {len(points)} "
            "records and no stream. Give a stream or a larger sample_size."
        )
    chosen = stream.permutation(len(points))[:sample_size]
    return points[chosen], labels[chosen]


def _check_pair(truth: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both as integer names, if there is one of each for every record."""
    known, found = np.asarray(truth), np.asarray(labels)
    if known.ndim != 1 or known.shape != found.shape or known.size == 0:
        raise ConfigError(
            "both labellings must be vectors of the same length >= 1; got shapes "
            f"{known.shape} and {found.shape}. Compare labels of the same records."
        )
    return np.unique(known, return_inverse=True)[1], np.unique(found, return_inverse=True)[1]
