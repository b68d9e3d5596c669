"""What releases cost: rho in zero-concentrated differential privacy (zCDP), pure epsilon, (epsilon, delta) of a rho.

Costs of one release read its mechanism and sensitivity and nothing else. Each is rounded up. Proofs and theorems:
docs/proofs/accounting.md.

Releases add up in rho, with one conversion at the end. For every order alpha = 1 + a > 1, rho-zCDP implies
(epsilon, delta)-DP with (Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", Cor. 13)

    ln delta = a (rho (a + 1) - epsilon) - ln(1 + a) - a ln(1 + 1/a).

Every a > 0 gives a valid bound, so an inexact minimum costs tightness and never soundness. What is left is the
rounding of the bound itself: it is bounded term by term and added, and results are raised by a relative 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from cloister.errors import ConfigError, LocalProtocolError
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.records import FloatArray

_ROUND_UP = 1 + 2.0**-48  # more than the relative error of the few operations below
_SHARE_SLACK = 1.0 + 2.0**-40  # for the double roundings of a share's sigma and in an accountant
_LEAST_ATTENUATION = 1e-300  # instead of an underflow to 0, which would round down
OUTWARD = 1 + 1e-9  # every epsilon and delta returned here is raised by this factor
_ROUNDING = 16 * 2.0**-53  # more than the relative error of a sum of at most four rounded terms
_LOG_ORDER_CAP = 700.0  # ln a; exp of it is a double. Any a is valid


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


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Return the smallest epsilon for which rho-zCDP is known to imply (epsilon, delta)-DP.

    Parameters
    ----------
    rho
        At least 0; infinity is allowed and costs infinity.
    delta
        Greater than 0, less than 1.

    Privacy
    -------
    Holds for whatever neighbours and event the rho was proved for (Canonne, Kamath and Steinke 2020,
    Cor. 13). The bound solved for epsilon is

        epsilon(a) = rho (a + 1) + (ln(1/delta) - ln(1 + a)) / a - ln(1 + 1/a),

    whose derivative is rho - (ln(1/delta) - ln(1 + a)) / a^2: the minimum is the only root of
    rho a^2 + ln(1 + a) = ln(1/delta). In u = ln a the left side is convex and increases, so Newton's method from the
    right descends to the root without overshooting.
    """
    _check_rho(rho)
    if not 0 < delta < 1:
        raise ConfigError(f"delta must be greater than 0 and less than 1 to convert from zCDP; got {delta}.")
    if rho in (0.0, math.inf):
        return rho
    log_inverse_delta = -math.log(delta)
    log_rho = math.log(rho)
    # Both terms of the left side are at most ln(1/delta) at the root.
    u = min((math.log(log_inverse_delta) - log_rho) / 2, log_inverse_delta, _LOG_ORDER_CAP)
    for _ in range(60):
        quadratic, order = math.exp(2 * u + log_rho), math.exp(u)
        step = (quadratic + math.log1p(order) - log_inverse_delta) / (2 * quadratic + order / (1 + order))
        u -= step
        if abs(step) < 1e-12:
            break
    a = math.exp(u)
    cost, gain = rho * (a + 1), math.log1p(1 / a)
    bound = cost + (log_inverse_delta - math.log1p(a)) / a - gain
    rounding = _ROUNDING * (cost + (log_inverse_delta + math.log1p(a)) / a + gain)
    return max(0.0, bound + rounding) * OUTWARD


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return the smallest delta for which rho-zCDP is known to imply (epsilon, delta)-DP.

    Parameters
    ----------
    rho
        At least 0; infinity is allowed and costs 1.
    epsilon
        At least 0.

    Privacy
    -------
    As `epsilon_of_rho`. ln delta is convex in a, with derivative rho (2a + 1) - epsilon - ln(1 + 1/a),
    which is increasing: its root is bisected in ln a.
    """
    _check_rho(rho)
    if not 0 <= epsilon < math.inf:
        raise ConfigError(f"epsilon must be finite and at least 0; got {epsilon}.")
    if rho == 0:
        return 0.0
    if rho == math.inf:
        return 1.0
    low, high = -_LOG_ORDER_CAP, _LOG_ORDER_CAP
    for _ in range(64):
        middle = (low + high) / 2
        a = math.exp(middle)
        if rho * (2 * a + 1) - epsilon < math.log1p(1 / a):
            low = middle
        else:
            high = middle
    a = math.exp(high)
    terms = (a * (a + 1) * rho, a * epsilon, math.log1p(a), a * math.log1p(1 / a))
    log_delta = terms[0] - terms[1] - terms[2] - terms[3] + _ROUNDING * math.fsum(terms)
    if not log_delta < 0:  # also when a term overflowed
        return 1.0
    return min(1.0, math.nextafter(math.exp(log_delta) * OUTWARD, 1.0))  # not 0, where exp underflows


@lru_cache(maxsize=256)
def rho_of_epsilon(epsilon: float, delta: float) -> float:
    """Return the largest rho (to a relative 1e-12) with ``epsilon_of_rho(rho, delta) <= epsilon``.

    Parameters
    ----------
    epsilon
        Finite, greater than 0.
    delta
        Greater than 0, less than 1.

    Privacy
    -------
    As `epsilon_of_rho`, which the returned value was put through. The search starts at the root of
    the classic rho + 2 sqrt(rho ln(1/delta)) = epsilon (Bun and Steinke 2016, Prop. 1.3), which fits.
    """
    if not 0 < epsilon < math.inf:
        raise ConfigError(f"epsilon must be finite and greater than 0; got {epsilon}.")
    if not 0 < delta < 1:
        raise ConfigError(f"delta must be greater than 0 and less than 1 to convert to zCDP; got {delta}.")
    root = math.sqrt(-math.log(delta))
    fits = (epsilon / (math.sqrt(epsilon + root * root) + root)) ** 2 / 2
    if fits == 0 or epsilon_of_rho(fits, delta) > epsilon:  # too small for a double
        return 0.0
    exceeds = 2 * fits
    while epsilon_of_rho(exceeds, delta) <= epsilon:
        fits, exceeds = exceeds, 2 * exceeds
    while exceeds > fits * (1 + 1e-12):
        middle = math.sqrt(fits * exceeds)
        if epsilon_of_rho(middle, delta) <= epsilon:
            fits = middle
        else:
            exceeds = middle
    return fits


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


def _check_rho(rho: float) -> None:
    if not rho >= 0:
        raise ConfigError(f"rho must be at least 0; got {rho}.")
