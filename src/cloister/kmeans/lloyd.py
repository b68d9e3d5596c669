"""Lloyd's algorithm, plain and weighted: the non-private reference, and what clusters a weighted summary."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans.initialisation import kmeans_plus_plus
from cloister.kmeans.kernel import cluster_sums, nearest
from cloister.kmeans.values import check_at_least, check_centres, check_finite_points, check_weights
from cloister.records import FloatArray, IntArray, Records

# How often empty clusters are moved and Lloyd's algorithm goes on from there.
_REPAIRS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Where Lloyd's algorithm ended.

    Attributes
    ----------
    centres
        (k, d).
    loss
        The (weighted) sum of squared distances to the nearest of these centres.
    iterations
        How many updates were made.
    converged
        Whether the last update moved no centre further than the tolerance.
    """

    centres: FloatArray
    loss: float
    iterations: int
    converged: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class _Step:
    """Sums, total weights and loss of the clusters of some centres."""

    sums: FloatArray
    weights: FloatArray | IntArray
    loss: float


def update_centres(sums: FloatArray, weights: FloatArray | IntArray, previous: FloatArray) -> FloatArray:
    """Return the clusters' means; an empty cluster keeps its centre."""
    full = weights > 0
    centres = previous.copy()
    centres[full] = sums[full] / weights[full, None]
    return centres


def lloyd(
    records: Records | FloatArray,
    start: FloatArray,
    *,
    iterations: int,
    tolerance: float = 0.0,
    weights: FloatArray | None = None,
) -> Fit:
    """Run Lloyd's algorithm from given centres.

    Parameters
    ----------
    records
        Records (read once per iteration, in a stream) or an (n, d) array.
    start
        (k, d), the initial centres.
    iterations
        At most so many updates.
    tolerance
        Stop when an update moves no centre further than this; 0 means at a fixed point.
    weights
        One number >= 0 per row of an array. Needs an array.

    Returns
    -------
    Fit
        Empty clusters keep their centre, so there are always k.
    """
    check_at_least("iterations", iterations, 0)
    if not tolerance >= 0:
        raise ConfigError(f"tolerance must be at least 0; got {tolerance}. Use 0 for a fixed point.")
    centres = check_centres(start)
    step = _choose_step(records, weights)
    made, converged = 0, False
    while made < iterations and not converged:
        state = step(centres)
        updated = update_centres(state.sums, state.weights, centres)
        moved = float(np.sqrt(((updated - centres) ** 2).sum(axis=1)).max())
        centres, made, converged = updated, made + 1, moved <= tolerance
    return Fit(centres=centres, loss=step(centres).loss, iterations=made, converged=converged)


def _choose_step(records: Records | FloatArray, weights: FloatArray | None) -> Callable[[FloatArray], _Step]:
    """Return the pass over the records: the fused kernel, or labels and weighted sums."""
    if weights is None:

        def plain(centres: FloatArray) -> _Step:
            parts = cluster_sums(records, centres)
            return _Step(sums=parts.sums, weights=parts.counts, loss=parts.loss)

        return plain
    if not isinstance(records, np.ndarray):
        raise ConfigError(
            f"weighted records must be one array; got {type(records).__name__}. Gather the batches first."
        )
    points = check_finite_points(records)
    mass = check_weights(weights, len(points))
    weighted_columns = (points * mass[:, None]).T.copy()

    def weighted(centres: FloatArray) -> _Step:
        found = nearest(points, centres)
        k = len(centres)
        columns = [np.bincount(found.labels, weights=column, minlength=k) for column in weighted_columns]
        return _Step(
            sums=np.stack(columns, axis=1),
            weights=np.bincount(found.labels, weights=mass, minlength=k),
            loss=float(mass @ found.squared_distances),
        )

    return weighted


def weighted_kmeans(
    points: FloatArray,
    k: int,
    stream: Stream,
    *,
    weights: FloatArray | None = None,
    restarts: int = 20,
    iterations: int = 100,
) -> Fit:
    """Cluster weighted points well: greedy k-means++ and Lloyd's algorithm from several starts, the best kept.

    Parameters
    ----------
    points
        (n, d), n >= 1.
    k
        The number of centres.
    stream
        The source of randomness.
    weights
        One number >= 0 per point; all 1 if left out.
    restarts
        How many starts.
    iterations
        At most so many updates per start (and per repair of empty clusters).

    Returns
    -------
    Fit
        k centres, all different whenever there are k different points.
    """
    points = check_finite_points(points)
    check_at_least("the number of records", len(points), 1)
    check_at_least("restarts", restarts, 1)
    mass = np.ones(len(points)) if weights is None else check_weights(weights, len(points))
    candidates = 2 + int(math.log(max(k, 1)))
    starts = (kmeans_plus_plus(stream, points, k, mass, candidates=candidates) for _ in range(restarts))
    fits = (_fit_once(points, mass, start, iterations) for start in starts)
    return min(fits, key=lambda fit: fit.loss)


def _fit_once(points: FloatArray, weights: FloatArray, start: FloatArray, iterations: int) -> Fit:
    """Run Lloyd's algorithm; move centres that serve nothing to where the loss is, and go on."""
    fit = lloyd(points, start, iterations=iterations, weights=weights)
    for _ in range(_REPAIRS):
        moved = _move_idle_centres(points, weights, fit.centres)
        if moved is None:
            return fit
        fit = lloyd(points, moved, iterations=iterations, weights=weights)
    moved = _move_idle_centres(points, weights, fit.centres)
    return fit if moved is None else lloyd(points, moved, iterations=0, weights=weights)


def _move_idle_centres(points: FloatArray, weights: FloatArray, centres: FloatArray) -> FloatArray | None:
    """Return the centres with idle ones moved to the points of largest loss, or None where none can be better.

    Idle are centres equal to an earlier one and, as long as there is any loss to save, those with an empty
    cluster.
    """
    k = len(centres)
    found = nearest(points, centres)
    loss = weights * found.squared_distances
    _, first = np.unique(centres, axis=0, return_index=True)
    idle = ~np.isin(np.arange(k), first)
    if loss.any():
        idle |= np.bincount(found.labels, weights=weights, minlength=k) == 0
    if not idle.any():
        return None
    moved = centres.copy()
    squared_distances = nearest(points, centres[~idle]).squared_distances if not idle.all() else np.ones(len(points))
    for j in np.flatnonzero(idle):
        loss = weights * squared_distances
        target = int((loss if loss.any() else squared_distances).argmax())
        if squared_distances[target] == 0:
            break  # every point has a centre: there are fewer different points than centres
        moved[j] = points[target]
        squared_distances = np.minimum(squared_distances, nearest(points, moved[j : j + 1]).squared_distances)
    return None if np.array_equal(moved, centres) else moved
