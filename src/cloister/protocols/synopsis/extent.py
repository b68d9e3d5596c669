"""Where the records are: a box around them; or their middle, their distances from it, and the axes of their spread.

With few columns, one noisy histogram per column cuts off the empty ends of bounds that are too wide (`find_box`). With
many, second moments around the middle of the records (`find_middle`), clipped to their typical distance from it
(`find_radius`), and give the directions in which the records spread most (`find_axes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np

from cloister.protocols.guided_sums.postprocessing import estimate_counts, shrink_mean
from cloister.protocols.guided_sums.query import IDLE, Asking, PublicValues, pose
from cloister.protocols.guided_sums.statistics import Subspace, fix_signs, release_moments
from cloister.protocols.synopsis.questions import BOX_BINS, NORM_BINS, Columns, Lengths, Middle
from cloister.protocols.synopsis.settings import AXES_PER_CLUSTER, Settings
from cloister.records import FloatArray
from cloister.wire import Array

_LEAST_SIGNAL = 15.0  # records over noise in a column's histogram: with less, the cut would be a guess
_PRICE = 16.0  # of leaving all records outside, if halving the box is worth log 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """Where the records are, and what it cost to find out."""

    low: FloatArray
    high: FloatArray
    l2_squared: int = 0


def find_box(settings: Settings, *, l2_squared: int, records: float) -> Asking[Box]:
    """Release d marginal histograms and cut their empty ends; nothing is released where the noise would decide.

    Privacy
    -------
    As `questions.Columns`.
    """
    d = settings.dimensions
    height = isqrt(l2_squared // d)
    noise_std = settings.noise_std / max(height, 1)
    if height == 0 or records < _LEAST_SIGNAL * noise_std:
        yield IDLE
        return Box(low=np.full(d, -1.0), high=np.full(d, 1.0))

    total = yield pose(PublicValues(settings=settings), "histogram of each column", Columns(share=l2_squared))
    released = estimate_counts(total / height, noise_std, level=0.0).means.reshape(d, BOX_BINS)
    cuts = np.array([_cut_ends(column) for column in released]) * (2 / BOX_BINS) - 1.0
    return Box(low=cuts[:, 0], high=cuts[:, 1], l2_squared=d * height**2)


def _cut_ends(counts: FloatArray) -> tuple[int, int]:
    """The bins [a, b) that make log(width) + price * (part of the records outside) smallest."""
    cumulated = np.concatenate([[0.0], np.cumsum(counts)])
    total = max(cumulated[-1], 1.0)
    starts, ends = np.triu_indices(BOX_BINS + 1, 1)
    outside = np.maximum(1.0 - (cumulated[ends] - cumulated[starts]) / total, 0.0)
    best = int((np.log(ends - starts) + _PRICE * outside).argmin())
    return int(starts[best]), int(ends[best])


_CLIPPED = 0.5  # the part of the records that may be further away than the radius: the median


def find_middle(settings: Settings, *, l2_squared: int) -> Asking[FloatArray]:
    """Release the sum of the records and their number; return their mean, shrunk towards 0 by its noise.

    Privacy
    -------
    As `questions.Middle`.
    """
    d = settings.dimensions
    question = Middle(share=l2_squared)
    total = yield pose(PublicValues(settings=settings), "sum and number of all records", question)
    _, count_weight, scale = question.split(d)
    noise_std = settings.noise_std
    records = max(float(total[d]), noise_std) / count_weight
    return np.clip(shrink_mean(total[:d] / (scale * records), noise_std / (scale * records)), -1.0, 1.0)


def find_radius(
    settings: Settings, *, l2_squared: int, records: float, middle: FloatArray, longest: float | None = None
) -> Asking[float]:
    """Release a histogram of the records' distances from the middle over geometric bins; return about the median.

    No record is longer than ``longest``; by default, than the diagonal of the domain.

    Privacy
    -------
    As `questions.Lengths`.
    """
    height = isqrt(l2_squared)
    longest = (longest or sqrt(settings.dimensions)) + float(np.sqrt(middle @ middle))
    radii = longest * 2.0 ** (-np.arange(NORM_BINS) / 4)  # falling; bin i holds the lengths in (radii[i + 1], radii[i]]
    question = Lengths(share=l2_squared, middle=Array.of(middle), edges=Array.of(radii))
    total = yield pose(PublicValues(settings=settings), "histogram of distances from the middle", question)
    if settings.client_level:  # the border between the two neighbouring bins with most votes
        return float(radii[1 + int((total[:-1] + total[1:]).argmax())])
    noise_std = settings.noise_std / height
    longer = np.cumsum(total / height)  # longer[i]: the records longer than radii[i + 1]
    fits = np.flatnonzero(longer + noise_std * np.sqrt(np.arange(1, NORM_BINS + 1)) > _CLIPPED * records)
    return float(radii[fits[0]]) if fits.size else float(radii[-1])


_FLUCTUATION = 1.03  # the largest eigenvalues of noise lie up to some 3 % beyond where the semicircle law has them


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """How the records spread, as far as the noise allows."""

    subspace: Subspace
    deviations: FloatArray
    """The standard deviation along each axis, (m,)."""
    total_variance: float
    """The trace of the covariance."""


def find_axes(
    settings: Settings, *, l2_squared: int, records: float, middle: FloatArray, radius: float
) -> Asking[Spread]:
    """Release sums and second moments of the records, shortened to the radius, and return their principal axes."""
    d = settings.dimensions
    # No need to shorten typical records where a party's vector is bounded as a whole.
    clipped = 2 * radius if settings.client_level else radius
    moments = yield from release_moments(settings, l2_squared=l2_squared, middle=middle, radius=clipped)
    if settings.client_level:  # as parties' scaled vectors have them: read off the trace
        trace = float(np.trace(moments.second))
        records = max(trace, moments.noise * sqrt(d)) / radius**2
    mean = shrink_mean(moments.sums / records, moments.sum_noise / records)
    covariance = moments.second / records - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    axes = min(d, AXES_PER_CLUSTER * settings.clusters)
    if settings.client_level:
        noise_std = moments.noise / records
        spreads = correct_spectrum(values[::-1][:axes], base=float(np.median(values)), noise_std=noise_std, d=d)
    else:
        spreads = np.maximum(values[::-1][:axes], 0.0)
    return Spread(
        subspace=Subspace(origin=np.clip(middle + mean, -1.0, 1.0), axes=fix_signs(vectors[:, ::-1][:, :axes])),
        deviations=np.sqrt(spreads),
        total_variance=float(np.trace(covariance)),
    )


def correct_spectrum(values: FloatArray, *, base: float, noise_std: float, d: int) -> FloatArray:
    """Return how much records really spread along the axes of a noisy covariance, given its largest eigenvalues.

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
