"""What a noisy histogram says about its cells: the posterior of each count under a prior that all cells decide.

Counts are non-negative, most cells of a clustered table are empty, and how many are is not known beforehand. The prior
is the nonparametric maximum-likelihood one (Robbins 1956; Kiefer and Wolfowitz 1956; Jiang and Zhang 2009): weights on
a grid of counts, found by EM from all cells. It acts as a threshold where cells are clearly full or empty, and as
shrinkage towards their average where all are alike. It is post-processing: nothing here sees a record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.records import FloatArray

_LEVELS = 60  # counts that the prior knows
_STEPS = 60  # of EM
_BINS_PER_STD = 8  # observations are binned this finely: EM then does not depend on the number of cells


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Of each cell's count."""

    means: FloatArray
    occupied: FloatArray
    """The probability that the count is larger than ``level``."""


def estimate_counts(noisy: FloatArray, noise_std: float, *, level: float) -> Posterior:
    """Return the posterior mean of each count, and the probability that it is above ``level``."""
    top = max(float(noisy.max()), noise_std)
    counts = top * (np.arange(_LEVELS) / (_LEVELS - 1)) ** 1.5
    places = np.rint(noisy * (_BINS_PER_STD / noise_std)).astype(np.int64)
    values, bins, sizes = np.unique(places, return_inverse=True, return_counts=True)
    gaps = (values[:, None] / _BINS_PER_STD) - counts / noise_std
    squares = gaps**2
    likelihood = np.exp(-0.5 * (squares - squares.min(axis=1, keepdims=True)))
    prior = np.full(_LEVELS, 1.0 / _LEVELS)
    for _ in range(_STEPS):
        joint = likelihood * prior
        joint /= joint.sum(axis=1, keepdims=True)
        prior = sizes @ joint / sizes.sum()
    joint = likelihood * prior
    joint /= joint.sum(axis=1, keepdims=True)
    means, occupied = joint @ counts, joint[:, counts > level].sum(axis=1)
    return Posterior(means=means[bins], occupied=occupied[bins])
