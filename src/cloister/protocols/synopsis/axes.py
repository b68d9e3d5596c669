"""The axes: noisy second moments of the records, and the directions in which they spread most."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from cloister.protocols.guided_sums.moments import release_moments
from cloister.protocols.guided_sums.query import Asking
from cloister.protocols.guided_sums.shrinkage import shrink_mean
from cloister.protocols.guided_sums.subspace import Subspace, fix_signs
from cloister.protocols.synopsis.settings import Settings
from cloister.records import FloatArray

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
    axes = min(d, _AXES_PER_CLUSTER * settings.clusters)
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
