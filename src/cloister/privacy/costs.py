"""What one release costs: rho in zCDP, and epsilon where its noise gives pure differential privacy.

Costs read the release's mechanism and sensitivity and nothing else. Each is rounded up. Proofs and theorems:
docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from cloister.errors import LocalProtocolError
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.records import FloatArray

_ROUND_UP = 1 + 2.0**-48  # more than the relative error of the few operations below
_SHARE_SLACK = 1.0 + 2.0**-40  # for the double roundings of a share's sigma and in an accountant
_LEAST_ATTENUATION = 1e-300  # instead of an underflow to 0, which would round down


def rho_of(release: Release) -> float:
    """Return a rho for which this release is rho-zCDP.

    Privacy
    -------
    Neighbours: add or remove one unit, whose integer contribution vector has at most the release's norms.
    Event: the released vector, to whoever does not know the noise. Theorems:

    - discrete Gaussian: rho = Delta_2^2 / (2 sigma^2) (Canonne, Kamath and Steinke 2020, Thm 14);
    - discrete Laplace: the smaller of x tanh(x / 2) with x = Delta_1 / scale (the tight bound for any x-DP release,
      from the inequality of Kearns and Saul 1998) and Delta_2^2 / (2 scale^2) (the same, entry by entry);
    - sum of n discrete Gaussians: docs/proofs/accounting.md, "Sums of discrete Gaussians", which sharpens Kairouz,
      Liu and Steinke 2021, Prop. 14; and never more than the cost of one share alone.
    """
    mechanism, sensitivity = release.mechanism, release.sensitivity
    if sensitivity.l1 == 0:
        return 0.0
    l2_squared = _to_float(sensitivity.l2_squared)
    if isinstance(mechanism, DiscreteGaussian):
        rho = l2_squared / mechanism.sigma / mechanism.sigma / 2
    elif isinstance(mechanism, DiscreteLaplace):
        epsilon = _to_float(sensitivity.l1) / mechanism.scale
        rho = min(epsilon * math.tanh(epsilon / 2), l2_squared / mechanism.scale / mechanism.scale / 2)
    elif isinstance(mechanism, DiscreteGaussianSum):
        l1 = _to_float(sensitivity.l1)
        touched = min(release.entries, sensitivity.l1)  # entries that one unit's integer vector can change
        rho = _rho_of_sum(mechanism, l1=l1, l2_squared=l2_squared, touched=_to_float(touched))
    else:
        raise _unknown(mechanism)
    return math.nextafter(rho * _ROUND_UP, math.inf)


def pure_epsilon_of(release: Release) -> float | None:
    """Return an epsilon for which this release is epsilon-DP, or None where its noise gives no such guarantee.

    Privacy
    -------
    Neighbours and event as `rho_of`. Discrete Laplace: epsilon = Delta_1 / scale (Ghosh, Roughgarden and
    Sundararajan 2009; for vectors Dwork, McSherry, Nissim and Smith 2006). Gaussian noise gives none.
    """
    mechanism = release.mechanism
    if isinstance(mechanism, DiscreteLaplace):
        if release.sensitivity.l1 == 0:
            return 0.0
        return math.nextafter(_to_float(release.sensitivity.l1) / mechanism.scale * _ROUND_UP, math.inf)
    if isinstance(mechanism, DiscreteGaussian | DiscreteGaussianSum):
        return 0.0 if release.sensitivity.l1 == 0 else None
    raise _unknown(mechanism)


def runs_of(releases: Iterable[Release]) -> Iterator[tuple[Release, int]]:
    """Yield each release with how many times it follows itself (the same object), so that a repeat is cheap to add."""
    current, times = None, 0
    for release in releases:
        if release is current:
            times += 1
            continue
        if current is not None:
            yield current, times
        current, times = release, 1
    if current is not None:
        yield current, times


@lru_cache(maxsize=1024)
def ripple_of_sum(sigma: float, shares: int) -> float:
    """Bound how far ln(P[sum of shares = z] / P[discrete Gaussian of the same variance = z]) varies over z.

    Adding share j + 1 to the first j contributes the ripple of the variance sigma^2 j / (j + 1).
    """
    return math.fsum(_ripples(sigma * sigma * (1 - 1 / np.arange(2, shares + 1, dtype=np.float64))))


@lru_cache(maxsize=16)
def ripple_of_rounding(variance: float) -> float:
    """Bound how far ln(sum over integers y of exp(-(y - x)^2 / 2 variance)) varies over real x."""
    return float(_ripples(np.array([variance]))[0])


def size_gaussian_share(sigma: float, shares: int) -> float:
    """Return a share's sigma such that ``shares`` of them cost at most what one discrete Gaussian of ``sigma`` does.

    It is sigma / sqrt(shares) and a relative 2^-40 where that is 2 or more. Below, a sum of discrete Gaussians is too
    far from a discrete Gaussian and the share must be larger, but never more than sigma: then one share is enough.

    Privacy
    -------
    With s = share sqrt(shares) and r the ripple of the sum, its cost for norms D_1 and D_2 is at most
    rho = (D_2^2 / s^2 + 2 r D_1 / s + r^2 D_1) / 2 (docs/proofs/accounting.md, "Sums of discrete Gaussians"). Integer
    vectors have D_1 <= D_2^2, so this is at most D_2^2 (1 / s + r)^2 / 2: not more than D_2^2 / 2 sigma^2 as soon as
    1 / s + r <= 1 / sigma, whatever the sensitivity and the number of entries.
    """
    low = sigma / math.sqrt(shares) * _SHARE_SLACK
    if low >= sigma or not _costs_no_more(sigma, shares, sigma):
        return sigma
    if _costs_no_more(low, shares, sigma):
        return low
    high = sigma
    while high > low * _SHARE_SLACK:
        middle = (low + high) / 2.0
        if _costs_no_more(middle, shares, sigma):
            high = middle
        else:
            low = middle
    return high


def _costs_no_more(share_sigma: float, shares: int, sigma: float) -> bool:
    """Whether 1 / (share sqrt(shares)) + ripple <= 1 / sigma, with room for roundings."""
    inverse_deviation = 1.0 / (share_sigma * math.sqrt(shares))
    return (inverse_deviation + ripple_of_sum(share_sigma, shares)) * math.sqrt(_SHARE_SLACK) <= 1.0 / sigma


def _ripples(variances: FloatArray) -> FloatArray:
    """Return at least ln(theta_3(q) / theta_4(q)) = 4 (artanh q + artanh q^3 + ...), q = exp(-2 pi^2 variance).

    artanh(q^m) <= q^(m - 1) artanh(q), so the series is at most 4 artanh(q) / (1 - q^2): about 4 q. Infinite where q
    rounds to 1.
    """
    q = np.maximum(np.exp(-2 * math.pi**2 * variances), _LEAST_ATTENUATION)
    q = np.minimum(q * (1 + 1e-12), 1.0)  # the exponent is at most 745: its rounding moves q by less than that
    bounds = np.full(q.shape, math.inf)
    small = q < 1
    bounds[small] = 4 * np.arctanh(q[small]) / (1 - q[small] ** 2) * (1 + 1e-12)
    return bounds


def _rho_of_sum(mechanism: DiscreteGaussianSum, *, l1: float, l2_squared: float, touched: float) -> float:
    """Return the better of: one share protects and the others are post-processing; all shares together."""
    alone = l2_squared / mechanism.sigma / mechanism.sigma / 2
    if mechanism.shares == 1:
        return alone
    ripple = ripple_of_sum(mechanism.sigma, mechanism.shares)
    deviation = mechanism.sigma * math.sqrt(mechanism.shares)
    together = (l2_squared / deviation + 2 * ripple * l1) / deviation + ripple * ripple * touched
    return min(alone, together / 2)


def _to_float(value: int) -> float:
    """Return an integer as a double; infinity where it has none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _unknown(mechanism: object) -> LocalProtocolError:
    return LocalProtocolError(
        f"the accountant must know a release's mechanism; got {type(mechanism).__name__}. "
        "Add its cost and proof to cloister.privacy.costs first."
    )
