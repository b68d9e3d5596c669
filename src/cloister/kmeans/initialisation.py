"""Initial centres: from the public domain alone, or from records (thesis 4.2).

:func:`random_in_domain` and :func:`sphere_packing` read no data, so their result is public and all parties
find the same one from a common seed. The others read records: what they return is private.
"""

from __future__ import annotations

import math

import numpy as np

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans.values import check_at_least, check_finite_points, check_weights
from cloister.late import load_late
from cloister.records import FloatArray, IntArray

distance = load_late("scipy.spatial.distance")

# After this many rejected candidates for one centre, a radius counts as too large.
_ATTEMPTS = 128
# So many differences of coordinates are computed at a time.
_DIFFERENCES = 2**18
# Halvings of the interval for the radius; the last is finer than what the attempts can tell apart.
_SEARCH_STEPS = 20


def random_in_domain(stream: Stream, k: int, d: int) -> FloatArray:
    """Draw k centres uniformly from [-1, 1]^d (thesis 4.2.2)."""
    check_at_least("k", k, 1)
    check_at_least("d", d, 1)
    return 2.0 * stream.uniform(k, d) - 1.0


def random_records(stream: Stream, points: FloatArray, k: int) -> FloatArray:
    """Draw k different rows of the points, all sets equally likely (thesis 4.2.1)."""
    points = check_finite_points(points)
    check_at_least("k", k, 1)
    if k > len(points):
        raise ConfigError(f"k must be at most the number of records, {len(points)}; got {k}. Lower k.")
    return points[stream.permutation(len(points))[:k]]


def kmeans_plus_plus(
    stream: Stream, points: FloatArray, k: int, weights: FloatArray | None = None, *, candidates: int = 1
) -> FloatArray:
    """Draw k of the points by D^2 sampling: each with probability in proportion to w(x) D(x)^2 (thesis 4.2.1).

    Where all remaining w(x) D(x)^2 are zero, a point of zero weight is drawn in proportion to D(x)^2; and where all
    points coincide with a centre, any point: then there are fewer than k different points, and centres repeat.

    Parameters
    ----------
    stream
        The source of randomness.
    points
        (n, d), n >= 1.
    k
        The number of centres.
    weights
        One number >= 0 per point; all 1 if left out.
    candidates
        How many points are drawn for each centre after the first; the one that leaves the least loss is taken. 1 is
        exact D^2 sampling, with its proven bound; more is the greedy variant, usually better.

    Returns
    -------
    FloatArray
        (k, d). The k centres differ whenever there are k different points.
    """
    points = check_finite_points(points)
    check_at_least("the number of records", len(points), 1)
    check_at_least("k", k, 1)
    check_at_least("candidates", candidates, 1)
    weights = np.ones(len(points)) if weights is None else check_weights(weights, len(points))
    uniform = stream.uniform(k, candidates)
    squared_distances = np.ones(len(points))  # before the first centre all are alike
    centres = np.empty((k, points.shape[1]))
    for j in range(k):
        mass = weights * squared_distances
        if not mass.any():
            mass = squared_distances if squared_distances.any() else np.ones(len(points))
        drawn = _draw(mass, uniform[j] if j else uniform[j, :1])
        left = distance.cdist(points[drawn], points, "sqeuclidean")
        if j:
            np.minimum(left, squared_distances, out=left)
        best = int((left @ weights).argmin()) if len(drawn) > 1 else 0
        centres[j] = points[drawn[best]]
        squared_distances = left[best]
    return centres


def _draw(mass: FloatArray, uniform: FloatArray) -> IntArray:
    """Return the indices at which the cumulated mass passes ``uniform`` of the total; never one of no mass."""
    cumulated = np.cumsum(mass)
    indices = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
    # Rounding can carry the target up to the total itself; the last index with mass is the first to reach that.
    last = np.searchsorted(cumulated, cumulated[-1], side="left")
    drawn: IntArray = np.minimum(indices, last)
    return drawn


def sphere_packing(stream: Stream, k: int, d: int) -> FloatArray:
    """Place k centres far apart in [-1, 1]^d without looking at data (thesis 4.2.2, FastLloyd 5.2.1).

    A radius a fits if k points can be drawn one after another, each at least a from the boundary and at least
    2a from the points before it, with a bounded number of attempts for each. A binary search finds the
    largest a that fits. In high dimensions that a is close to 1, and the centres close to the domain's middle.

    Parameters
    ----------
    stream
        The source of randomness; the same stream gives the same centres.
    k, d
        The number of centres and of dimensions.

    Returns
    -------
    FloatArray
        (k, d), k different points.
    """
    check_at_least("k", k, 1)
    check_at_least("d", d, 1)
    # Two points of [-1 + a, 1 - a]^d are at most 2 (1 - a) sqrt(d) apart, and one needs no more than a = 1.
    high = math.sqrt(d) / (1.0 + math.sqrt(d)) if k > 1 else 1.0
    low = 0.0
    packed: FloatArray | None = None
    step = 0
    # As a falls to 0 every candidate fits, so the search ends.
    while step < _SEARCH_STEPS or packed is None:
        radius = (low + high) / 2.0
        attempt = _pack_spheres(stream, k, d, radius)
        if attempt is None:
            high = radius
        else:
            low, packed = radius, attempt
        step += 1
    return packed


def _pack_spheres(stream: Stream, k: int, d: int, radius: float) -> FloatArray | None:
    """Draw k points that keep their distances for this radius, or give up."""
    centres = np.empty((k, d))
    for j in range(k):
        attempts = 0
        batch = 8
        while True:
            candidates = (1.0 - radius) * (2.0 * stream.uniform(batch, d) - 1.0)
            fitting = _find_apart(candidates, centres[:j], 2.0 * radius)
            if fitting is not None:
                centres[j] = candidates[fitting]
                break
            attempts += batch
            if attempts >= _ATTEMPTS:
                return None
            batch = min(2 * batch, _ATTEMPTS - attempts)
    return centres


def _find_apart(candidates: FloatArray, centres: FloatArray, least: float) -> int | None:
    """Return the first candidate that is so far from every centre: the same one on every processor."""
    together = max(1, _DIFFERENCES // max(1, centres.size))
    for first in range(0, len(candidates), together):
        squares = np.square(candidates[first : first + together, None] - centres).sum(axis=2)
        fitting = np.flatnonzero((squares >= least * least).all(axis=1))
        if fitting.size:
            return first + int(fitting[0])
    return None
