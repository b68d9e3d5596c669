"""How well a clustering agrees with known classes, or with another clustering.

Labels are names: only which records share one matters. Every measure is at most 1, which means the same
partition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, fowlkes_mallows_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from cloister.errors import ConfigError


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


def _check_pair(truth: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both as integer names, if there is one of each for every record."""
    known, found = np.asarray(truth), np.asarray(labels)
    if known.ndim != 1 or known.shape != found.shape or known.size == 0:
        raise ConfigError(
            "both labellings must be vectors of the same length >= 1; got shapes "
            f"{known.shape} and {found.shape}. Compare labels of the same records."
        )
    return np.unique(known, return_inverse=True)[1], np.unique(found, return_inverse=True)[1]
