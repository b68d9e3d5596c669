"""The axes: noisy second moments of the records, and the directions in which they spread most."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np

from cloister.kmeans.records import FloatArray, Records
from cloister.protocols.synopsis.grid import Subspace
from cloister.protocols.synopsis.query import Asking, IntArray, Query
from cloister.protocols.synopsis.settings import NORM_BINS, Settings

_CHUNK_ROWS = 4096
_CLIPPED = 0.5  # the part of the records that may be longer than the radius: the median

# Weights of z_i z_i and z_i z_j (i < j) in the released vector. With 1 and sqrt 2 its norm would be |z|^2 and all its
# entries equally noisy; 5 and 7 are integers with 7^2 = 2 * 5^2 - 1, so the squared norm is at most 25 |z|^4.
_DIAGONAL, _OFF = 5, 7
_SUM_WEIGHT = 0.5  # of the sums of z beside the second moments


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """How the records lie, as far as the noise lets one see."""

    subspace: Subspace
    deviations: FloatArray
    """The standard deviation along each axis, (m,)."""
    total_variance: float
    """The trace of the covariance."""


def find_middle(settings: Settings, *, l2_squared: int, records: float) -> Asking[FloatArray]:
    """Release the sum of the records; return their mean, shrunk towards the middle of the domain by its noise.

    Privacy
    -------
    A record becomes an integer vector z, |z| <= c: a record of length sqrt(d), the longest, becomes one of length c.
    The squared L2 norm is at most c^2 <= ``l2_squared``.
    """
    d = settings.dimensions
    longest = isqrt(l2_squared)
    scale = (longest - sqrt(d) / 2 - 1) / sqrt(d)  # rounding to integers adds at most sqrt(d)/2 to the length

    def measure(party: Records) -> IntArray:
        sums = np.zeros(d, dtype=np.int64)
        for batch in party.batches():
            for first in range(0, len(batch), _CHUNK_ROWS):
                sums += np.rint(batch[first : first + _CHUNK_ROWS] * scale).astype(np.int64).sum(axis=0)
        return sums

    total = yield Query(name="sum of all records", measure=measure, length=d, l2_squared=longest**2)
    return np.clip(_shrink_mean(total / (scale * records), settings.noise_std / (scale * records)), -1.0, 1.0)


def _shrink_mean(mean: FloatArray, noise_std: float) -> FloatArray:
    """James and Stein, positive part."""
    square = max(float(mean @ mean), 1e-300)
    return mean * max(0.0, 1.0 - max(len(mean) - 2, 0) * noise_std**2 / square)


def find_radius(settings: Settings, *, l2_squared: int, records: float, middle: FloatArray) -> Asking[float]:
    """Release a histogram of the records' distances from the middle over geometric bins; return about the median.

    Privacy
    -------
    A record adds a to one bin: squared L2 norm a^2 <= ``l2_squared``.
    """
    height = isqrt(l2_squared)
    longest = sqrt(settings.dimensions) + float(np.sqrt(middle @ middle))
    radii = longest * 2.0 ** (-np.arange(NORM_BINS) / 4)  # falling; bin i holds the lengths in (radii[i + 1], radii[i]]

    def measure(party: Records) -> IntArray:
        counts = np.zeros(NORM_BINS, dtype=np.int64)
        for batch in party.batches():
            lengths = np.sqrt(((batch - middle) ** 2).sum(axis=1))
            # searchsorted wants rising edges; what is shorter than the last edge is in the last bin.
            bins = NORM_BINS - 1 - np.searchsorted(radii[:0:-1], lengths, side="left")
            counts += np.bincount(bins, minlength=NORM_BINS)
        return height * counts

    total = yield Query(
        name="histogram of distances from the middle",
        measure=measure,
        length=NORM_BINS,
        l2_squared=height**2,
        state=middle.tobytes(),
    )
    noise_std = settings.noise_std / height
    longer = np.cumsum(total / height)  # longer[i]: the records longer than radii[i + 1]
    fits = np.flatnonzero(longer + noise_std * np.sqrt(np.arange(1, NORM_BINS + 1)) > _CLIPPED * records)
    return float(radii[fits[0]]) if fits.size else float(radii[-1])


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
    longest, sum_weight = _scale_moments(l2_squared)
    reach = longest - sqrt(d) / 2 - 1  # rounding to integers adds at most sqrt(d)/2 to the length; 1 for doubles

    def measure(party: Records) -> IntArray:
        sums = np.zeros(d, dtype=np.int64)
        moments = np.zeros((d, d), dtype=np.int64)
        for batch in party.batches():
            for first in range(0, len(batch), _CHUNK_ROWS):
                points = batch[first : first + _CHUNK_ROWS] - middle
                lengths = np.sqrt((points**2).sum(axis=1))
                z = np.rint(points * (reach / np.maximum(lengths, radius))[:, None])
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
    mean = _shrink_mean(
        np.asarray(total[:d] * (unit / sum_weight / records), dtype=np.float64),
        settings.noise_std * unit / sum_weight / records,
    )
    second = np.zeros((d, d))
    second[np.triu_indices(d)] = total[d:]
    second = (second + np.triu(second, 1).T) / _weights(d) * (unit**2 / records)
    covariance = second - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    axes = min(d, 2 * settings.clusters)
    values, vectors = values[::-1][:axes], vectors[:, ::-1][:, :axes]
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(axes)] < 0, -1.0, 1.0)
    return Spread(
        subspace=Subspace(origin=middle + mean, axes=np.ascontiguousarray(vectors * signs)),
        deviations=np.sqrt(np.maximum(values, 0.0)),
        total_variance=float(np.trace(covariance)),
    )


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
