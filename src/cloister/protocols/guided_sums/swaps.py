"""Swaps: a centre that is not needed where it is goes to a cluster that looks like two.

Lloyd's algorithm never leaves a local optimum: two centres that share a cluster stay there while two other clusters
share one centre. The rounds release how far records are from their centres, so a cluster that is really two shows: it
is wider than the others by more than noise. Which centre can be spared follows from centres and counts. Everything
here is computed from released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from cloister.crypto.stream import Stream
from cloister.kmeans.kernel import nearest
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.records import FloatArray


@dataclass(frozen=True, kw_only=True)
class SwapRule:
    """When a centre moves."""

    clear: float = 2.0
    """Deviations by which a cluster must be too wide."""
    worth: float = 0.5
    """Times the loss that the cluster has too much must exceed what giving up the other centre costs."""


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
    losses = counts[:, None] * counts / (counts[:, None] + counts) * cdist(centres, centres, "sqeuclidean")
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
    """Two centres for one: along the line between the two halves of its cells, as far apart as its excess tells."""
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
