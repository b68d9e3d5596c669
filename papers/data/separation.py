"""Clusters at a given degree of separation: SynthOV, SynthSEP and TimeSynth (FastLloyd 6.1).

The separation index of Qiu and Joe (2006) projects two clusters on a line. With ``L`` and ``U`` the lower and
upper alpha/2 quantiles of each projection, J = (L2 - U1) / (U2 - L1): 0 when the bulks touch, 1 when they are
infinitely far apart, negative when they overlap. For normal clusters along direction a, with D = mean2 -
mean1 and z the normal quantile,

    J(a) = (x(a) - z) / (x(a) + z),   x(a) = a'D / (sqrt(a'S1a) + sqrt(a'S2a)),

and the index is the largest J(a). FastLloyd uses the R package clusterGeneration, which sets the index
between each cluster and its nearest neighbour. So does this module, with that package's covariances
(eigenvalues uniform in [1, 10], a random orthogonal basis) and with its own way of placing the centres.

Why placement is easy: x* = max x(a) depends on D alone as a norm (it is the dual of the norm below the
fraction), so J >= target says that D lies outside a convex body. By (s1 + s2)^2 = min over t in (0, 1) of
s1^2/t + s2^2/(1-t),

    x*^2 = max over t of D' (S1/t + S2/(1-t))^-1 D,

a concave function of one number t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import ndtri

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.forecast.families import SYNTH_SEPARATED, Sample
from cloister.records import FloatArray

_ALPHA = 0.05
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, kw_only=True)
class _PairNorm:
    """The norm x* of one pair of covariances, in the basis where these are diag(ratios) and the identity."""

    basis: FloatArray
    ratios: FloatArray

    @classmethod
    def of(cls, covariance_1: FloatArray, covariance_2: FloatArray) -> _PairNorm:
        """Diagonalise the two covariances together."""
        ratios, basis = eigh(covariance_1, covariance_2)
        return cls(basis=basis, ratios=ratios)

    def measure(self, difference: FloatArray) -> float:
        """Return x* for a difference of means, by golden-section search for the best t."""
        squares = (difference @ self.basis) ** 2
        low, high = 0.0, 1.0
        for _ in range(60):  # 0.618^60 < 1e-12; near its top the function is flat, so the value is far closer
            step = _GOLDEN * (high - low)
            left, right = high - step, low + step
            if self._value(squares, left) < self._value(squares, right):
                low = left
            else:
                high = right
        return float(np.sqrt(self._value(squares, (low + high) / 2)))

    def _value(self, squares: FloatArray, t: float) -> float:
        """Return D' (S1/t + S2/(1-t))^-1 D."""
        return float((squares * (t * (1.0 - t)) / (self.ratios * (1.0 - t) + t)).sum())


def separation_index(
    mean_1: FloatArray,
    covariance_1: FloatArray,
    mean_2: FloatArray,
    covariance_2: FloatArray,
    *,
    alpha: float = _ALPHA,
) -> float:
    """Return the separation index of two normal clusters, the largest over all directions.

    Parameters
    ----------
    mean_1, mean_2
        (d,) means.
    covariance_1, covariance_2
        (d, d) positive definite covariances.
    alpha
        The share of a projected cluster that counts as its tails.

    Returns
    -------
    float
        Between -1 (same mean) and 1.
    """
    z = -float(ndtri(alpha / 2))
    x = _PairNorm.of(covariance_1, covariance_2).measure(np.asarray(mean_2) - np.asarray(mean_1))
    return (x - z) / (x + z)


def place_centres(stream: Stream, covariances: FloatArray, separation: float) -> FloatArray:
    """Place clusters so that each one's index to its nearest neighbour is ``separation``.

    A new cluster is set beside a random placed one, in a random direction, at the distance that gives the
    index exactly; it is drawn again if another cluster would be nearer than that. So the new one has a
    neighbour at the target and comes no closer to any, and what held for the placed ones still holds. The set
    where a new centre may not lie is bounded and its edge consists of such positions, so a draw always has a
    chance.

    Parameters
    ----------
    stream
        Source of randomness.
    covariances
        (k, d, d).
    separation
        The target index, in (-1, 1).

    Returns
    -------
    (k, d) array
    """
    if not -1.0 < separation < 1.0:
        raise ConfigError(f"separation must be between -1 and 1, both excluded; got {separation}. Use 0.21 or 0.7.")
    k, d = covariances.shape[:2]
    needed = -float(ndtri(_ALPHA / 2)) * (1.0 + separation) / (1.0 - separation)  # J = separation, solved for x*
    centres = np.zeros((k, d))
    for new in range(1, k):
        norms = [_PairNorm.of(covariances[placed], covariances[new]) for placed in range(new)]
        while True:
            anchor = int(stream.integers(new, 1)[0])
            direction = stream.normal(d)
            centre = centres[anchor] + direction * (needed / norms[anchor].measure(direction))
            others = (placed for placed in range(new) if placed != anchor)
            if all(norms[placed].measure(centre - centres[placed]) >= needed for placed in others):
                centres[new] = centre
                break
    return centres


def separated_clusters(stream: Stream, k: int, d: int, separation: float, average_size: int | None = None) -> Sample:
    """Draw normal clusters of random shape at a given separation (FastLloyd 6.1, SynthOV and SynthSEP).

    Parameters
    ----------
    stream
        Source of randomness.
    k, d
        Clusters and columns; 2 to 20 each in the paper.
    separation
        The index between each cluster and its nearest neighbour: 0.21 for SynthOV, 0.70 for SynthSEP.
    average_size
        The mean cluster size; by default 10,000 / k. Sizes are uniform between 0.75 and 1.25 times it.

    Returns
    -------
    Sample
        Not yet scaled; see :func:`cloister.forecast.families.scale_to_domain`, which leaves the indices as they
        are.
    """
    average = 10_000 / k if average_size is None else float(average_size)
    smallest, largest = int(np.ceil(0.75 * average)), int(np.floor(1.25 * average))
    if not 1 <= smallest <= largest:
        raise ConfigError(f"average_size must be at least 1; got {average}. Use more points or fewer clusters.")
    sizes = smallest + stream.integers(largest - smallest + 1, k)
    return _draw_clusters(stream, sizes.tolist(), d, separation)


def time_synth(stream: Stream, n: int, k: int, d: int, *, separation: float = SYNTH_SEPARATED) -> Sample:
    """Draw clusters of exactly n / k points each (FastLloyd 6.1, TimeSynth); n must be a multiple of k."""
    if k < 1 or n < k or n % k:
        raise ConfigError(f"n must be a positive multiple of k; got n = {n}, k = {k}. Change one of them.")
    return _draw_clusters(stream, [n // k] * k, d, separation)


def _draw_clusters(stream: Stream, sizes: list[int], d: int, separation: float) -> Sample:
    """Draw covariances, place the centres, draw the points, and shuffle them."""
    if d < 1:
        raise ConfigError(f"d must be at least 1; got {d}. Give a positive number.")
    roots = np.stack([_draw_root(stream, d) for _ in sizes])
    centres = place_centres(stream, roots @ roots.transpose(0, 2, 1), separation)
    labels = np.repeat(np.arange(len(sizes)), sizes)[stream.permutation(sum(sizes))]
    points = stream.normal(labels.size, d)
    for cluster, root in enumerate(roots):
        own = labels == cluster
        points[own] = points[own] @ root.T + centres[cluster]
    return Sample(points=points, labels=labels, centres=centres)


def _draw_root(stream: Stream, d: int) -> FloatArray:
    """Return Q diag(sqrt(lambda)): Q uniform among orthogonal matrices, lambda uniform in [1, 10]."""
    q, r = np.linalg.qr(stream.normal(d, d))
    root: FloatArray = q * np.sign(np.diag(r)) * np.sqrt(1.0 + 9.0 * stream.uniform(d))
    return root
