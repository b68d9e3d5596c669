"""The axes: noisy second moments of the records, and the directions in which they spread most."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from cloister.kmeans.records import FloatArray, Records, iterate_chunks
from cloister.numeric import find_reach
from cloister.protocols.synopsis.exact import UNITS, count_offsets, measure_lengths
from cloister.protocols.synopsis.grid import Subspace
from cloister.protocols.synopsis.middle import shrink_mean
from cloister.protocols.synopsis.query import Asking, IntArray, Query
from cloister.protocols.synopsis.settings import Settings

# Weights of z_i z_i and z_i z_j (i < j) in the released vector. With 1 and sqrt 2 its norm would be |z|^2 and all its
# entries equally noisy; 5 and 7 are integers with 7^2 = 2 * 5^2 - 1, so the squared norm is at most 25 |z|^4.
_DIAGONAL, _OFF = 5, 7
_SUM_WEIGHT = 0.5  # of the sums of z beside the second moments
_AXES_PER_CLUSTER = 2  # k centres span k - 1 directions; noise mixes these with others, so as many again are kept
_FLUCTUATION = 1.03  # the largest eigenvalues of noise lie up to some 3 % beyond where the semicircle law has them


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """How the records lie, as far as the noise lets one see."""

    subspace: Subspace
    deviations: FloatArray
    """The standard deviation along each axis, (m,)."""
    total_variance: float
    """The trace of the covariance."""


def find_axes(
    settings: Settings, *, l2_squared: int, records: float, middle: FloatArray, radius: float
) -> Asking[Spread]:
    """Release sums and second moments of the records, shortened to the radius, and return their principal axes.

    Privacy
    -------
    A record becomes an integer vector z, |z| <= c: its direction is kept, its length at most c. It adds (b z, 5 z_i^2,
    7 z_i z_j for i < j). With 49 = 2 * 25 - 1 the squared norm is b^2 |z|^2 + 25 |z|^4 - sum_{i<j} z_i^2 z_j^2, at
    most b^2 c^2 + 25 c^4 <= ``l2_squared``.
    """
    d = settings.dimensions
    typical = radius
    if settings.client_level:  # no need to shorten typical records: a party's vector is bounded as a whole
        radius = 2 * radius
    longest, sum_weight = _scale_moments(l2_squared)
    reach = find_reach(longest, d)

    def measure(party: Records) -> IntArray:
        sums = np.zeros(d, dtype=np.int64)
        moments = np.zeros((d, d), dtype=np.int64)
        for points in iterate_chunks(party):
            z = _shorten(count_offsets(points, middle), radius * UNITS, reach)
            sums += z.sum(axis=0).astype(np.int64)
            moments += (z.T @ z).astype(np.int64)  # integers below 2^53: exact
        return np.concatenate([sum_weight * sums, (moments * _weights(d))[np.triu_indices(d)]])

    total = yield Query(
        name="sums and second moments",
        measure=measure,
        length=d + d * (d + 1) // 2,
        l2_squared=sum_weight**2 * longest**2 + _DIAGONAL**2 * longest**4,
        state=middle.tobytes() + np.float64(radius).tobytes(),
    )
    unit = radius / reach  # what 1 of z is worth
    if settings.client_level:
        records = _weigh_by_trace(total[d:], d, noise_std=settings.noise_std) * (unit / typical) ** 2
    mean = shrink_mean(
        np.asarray(total[:d] * (unit / sum_weight / records), dtype=np.float64),
        settings.noise_std * unit / sum_weight / records,
    )
    second = np.zeros((d, d))
    second[np.triu_indices(d)] = total[d:]
    second = (second + np.triu(second, 1).T) / _weights(d) * (unit**2 / records)
    covariance = second - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    axes = min(d, _AXES_PER_CLUSTER * settings.clusters)
    if settings.client_level:
        noise_std = settings.noise_std / _DIAGONAL * unit**2 / records
        spreads = correct_spectrum(values[::-1][:axes], base=float(np.median(values)), noise_std=noise_std, d=d)
    else:
        spreads = np.maximum(values[::-1][:axes], 0.0)
    vectors = vectors[:, ::-1][:, :axes]
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(axes)] < 0, -1.0, 1.0)
    return Spread(
        subspace=Subspace(origin=np.clip(middle + mean, -1.0, 1.0), axes=np.ascontiguousarray(vectors * signs)),
        deviations=np.sqrt(spreads),
        total_variance=float(np.trace(covariance)),
    )


def correct_spectrum(values: FloatArray, *, base: float, noise_std: float, d: int) -> FloatArray:
    """How much records really spread along the axes of a noisy covariance, given its largest eigenvalues.

    Noise of deviation s on the diagonal and s / sqrt 2 off it has eigenvalues in +-e, e = s sqrt(2 d), by the
    semicircle law. An axis with spread l over the base shows as x = l + e^2 / 4 l and is turned, so that the spread
    along the axis that is seen is sqrt(x^2 - e^2). For the i-th axis e is replaced by the i-th largest eigenvalue that
    noise alone has, 3 % more for its fluctuation.
    """
    angles = np.linspace(0.0, np.pi, 4001)
    above = (angles - np.sin(angles) * np.cos(angles)) / np.pi  # the part of the eigenvalues over e cos(angle)
    ranks = (np.arange(len(values)) + 0.5) / d
    shown = _FLUCTUATION * noise_std * sqrt(2 * d) * np.cos(np.interp(ranks, above, angles))
    excess = np.maximum(values - base, 0.0)
    corrected: FloatArray = max(base, 0.0) + np.sqrt(np.maximum(excess**2 - np.maximum(shown, 0.0) ** 2, 0.0))
    return corrected


def _weigh_by_trace(moments: IntArray, d: int, *, noise_std: float) -> float:
    """The sum of |z|^2 over all records, as parties' scaled vectors have it: read off the diagonal."""
    diagonal = np.cumsum(np.concatenate([[0], np.arange(d, 1, -1)]))
    return max(float(moments[diagonal].sum()), noise_std * sqrt(d)) / _DIAGONAL


def _shorten(offsets: FloatArray, radius: float, reach: float) -> FloatArray:
    """Scale the offsets so that the radius becomes ``reach``, shorten what is longer, and round to integers."""
    shortened: FloatArray = np.rint(offsets * (reach / np.maximum(measure_lengths(offsets), radius))[:, None])
    return shortened


def _scale_moments(l2_squared: int) -> tuple[int, int]:
    """Return c and b: the longest z, and the weight of its sums, for a squared norm of at most ``l2_squared``."""
    longest = int((l2_squared / (_DIAGONAL**2 * (1 + _SUM_WEIGHT**2))) ** 0.25)
    while True:
        weight = int(_SUM_WEIGHT * _DIAGONAL * longest)
        if weight**2 * longest**2 + _DIAGONAL**2 * longest**4 <= l2_squared:
            return longest, weight
        longest -= 1


def _weights(d: int) -> IntArray:
    return np.where(np.eye(d, dtype=bool), _DIAGONAL, _OFF).astype(np.int64)
