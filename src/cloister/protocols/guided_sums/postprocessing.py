"""Post-processing of released numbers. Nothing here sees a record, so nothing here costs budget.

`estimate_counts` denoises a histogram. Counts are non-negative, and most cells of a clustered table are empty, but how
many is not known in advance. So the prior is the nonparametric maximum-likelihood one (Robbins 1956; Kiefer and
Wolfowitz 1956; Jiang and Zhang 2009): weights on a grid of counts, found by EM from all cells. It acts as a threshold
if cells are clearly full or empty, and as shrinkage towards their average if all are alike.

`shrink_mean` and `find_gains` decide how much of a noisy vector to believe.

`swap_centres` moves a centre that is not needed where it is to a cluster that looks like two. Lloyd's algorithm never
leaves a local optimum: two centres that share a cluster stay there while two other clusters share one centre. The
rounds release how far records are from their centres. A cluster that is really two is therefore visible: it is wider
than the others by more than the noise. Which centre can be spared follows from centres and counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans import nearest, random_in_domain, weighted_kmeans
from cloister.late import load_late
from cloister.records import FloatArray

distance = load_late("scipy.spatial.distance")

_LEVELS = 60  # counts in the support of the prior
_PRIOR_STEPS = 60  # of EM
_BINS_PER_STD = 8  # observations are binned this finely, so that the cost of EM is independent of the number of cells


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
    for _ in range(_PRIOR_STEPS):
        joint = likelihood * prior
        joint /= joint.sum(axis=1, keepdims=True)
        prior = sizes @ joint / sizes.sum()
    joint = likelihood * prior
    joint /= joint.sum(axis=1, keepdims=True)
    means, occupied = joint @ counts, joint[:, counts > level].sum(axis=1)
    return Posterior(means=means[bins], occupied=occupied[bins])


_SHRINK_STEPS = 50  # of EM


def shrink_mean(mean: FloatArray, noise_std: float) -> FloatArray:
    """Shrink a mean towards 0: the positive-part estimator of James and Stein (1961)."""
    square = max(float(mean @ mean), 1e-300)
    return mean * max(0.0, 1.0 - max(len(mean) - 2, 0) * noise_std**2 / square)


def find_gains(steps: FloatArray, variances: FloatArray) -> FloatArray:
    """Return what to shrink each step by, (k, 1): empirical Bayes.

    Coordinates are N(0, tau^2) seen with noise of these variances; tau^2 by EM over all clusters.
    """
    squares = (steps**2).mean(axis=1)
    tau2 = max(float((squares - variances).mean()), 1e-6 * float(squares.mean()), 1e-30)
    for _ in range(_SHRINK_STEPS):
        gain = tau2 / (tau2 + variances)
        tau2 = max(float((gain**2 * squares + gain * variances).mean()), 1e-30)
    gains: FloatArray = (tau2 / (tau2 + variances))[:, None]
    return gains


@dataclass(frozen=True, kw_only=True)
class SwapRule:
    """When a centre moves."""

    clear: float = 2.0
    """Deviations by which a cluster must be too wide."""
    worth: float = 0.5
    """Giving up the other centre must cost less than this many times the excess loss of the wide cluster."""


USUAL = SwapRule()


@dataclass(frozen=True, kw_only=True, eq=False)
class Sketch:
    """Where records lie, roughly: the kept cells of the histogram, in the columns."""

    points: FloatArray
    weights: FloatArray


def swap_centres(
    centres: FloatArray,
    *,
    counts: FloatArray,
    variances: FloatArray,
    errors: FloatArray,
    sketch: Sketch,
    stream: Stream,
    rule: SwapRule = USUAL,
) -> FloatArray:
    """Return the centres with some moved from where they cost least to where they help most.

    Parameters
    ----------
    centres
        (k, d).
    counts, variances
        Of each cluster: its records, and their mean squared distance from the centre; both released.
    errors
        The standard deviations of the noise in these variances.
    sketch
        Tells in which direction a cluster is split.
    stream
        Common to all parties.
    rule
        When a centre moves.
    """
    k = len(centres)
    if k < 3:
        return centres
    usual = _weighted_median(variances, counts)
    excess = np.where(variances - usual > rule.clear * errors, counts * (variances - usual), 0.0)
    losses = counts[:, None] * counts / (counts[:, None] + counts) * distance.cdist(centres, centres, "sqeuclidean")
    np.fill_diagonal(losses, np.inf)
    moved = centres.copy()
    free = np.ones(k, dtype=bool)
    for wide in np.argsort(-excess, kind="stable"):
        if not free[wide] or excess[wide] <= 0:
            continue
        others = np.where(free & (np.arange(k) != wide), losses.min(axis=1), np.inf)
        spare = int(others.argmin())
        if not others[spare] < rule.worth * excess[wide]:
            break
        neighbour = int(losses[spare].argmin())
        moved[[wide, spare]] = _split(
            centres, int(wide), float(variances[wide] - usual), sketch, stream.child(int(wide))
        )
        free[[wide, spare, neighbour]] = False
        losses[:, [wide, spare]] = np.inf
    return np.clip(moved, -1.0, 1.0)


def _split(centres: FloatArray, wide: int, excess: float, sketch: Sketch, stream: Stream) -> FloatArray:
    # Two centres for one: along the line between the two halves of its cells, as far apart as its excess says.
    own = nearest(sketch.points, centres).labels == wide
    direction = 2.0 * stream.uniform(centres.shape[1]) - 1.0
    if own.sum() > 1:
        halves = weighted_kmeans(sketch.points[own], 2, stream, weights=sketch.weights[own], restarts=4).centres
        if not np.array_equal(halves[0], halves[1]):
            direction = halves[1] - halves[0]
    # Two equal clusters at +-v around their mean have excess variance |v|^2.
    step = direction / np.sqrt(direction @ direction) * np.sqrt(excess)
    return np.stack([centres[wide] - step, centres[wide] + step])


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])


def part_equal_centres(centres: FloatArray, stream: Stream) -> FloatArray:
    """Replace centres that equal an earlier one by random points, so that a result has k different centres."""
    parted = centres.copy()
    while True:
        _, first = np.unique(parted, axis=0, return_index=True)
        again = np.setdiff1d(np.arange(len(parted)), first)
        if not again.size:
            return parted
        parted[again] = random_in_domain(stream, len(again), parted.shape[1])
