"""From zero-concentrated differential privacy (zCDP) to (epsilon, delta) and back, never below the truth.

Releases add up in rho; this is the one conversion at the end. For every order alpha = 1 + a > 1, rho-zCDP implies
(epsilon, delta)-DP with (Canonne, Kamath and Steinke 2020, "The discrete Gaussian for differential privacy", Cor. 13)

    ln delta = a (rho (a + 1) - epsilon) - ln(1 + a) - a ln(1 + 1/a).

Every a > 0 gives a valid bound, so an inexact minimum costs tightness and never soundness. What is left is the
rounding of the bound itself: it is bounded term by term and added, and results are raised by a relative 1e-9.
"""

from __future__ import annotations

import math
from functools import lru_cache

from cloister.errors import ConfigError

OUTWARD = 1 + 1e-9  # every epsilon and delta returned here is raised by this factor
_ROUNDING = 16 * 2.0**-53  # more than the relative error of a sum of at most four rounded terms
_LOG_ORDER_CAP = 700.0  # ln a; exp of it is a double. Any a is valid


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


def _check_rho(rho: float) -> None:
    """Refuse a negative or undefined rho."""
    if not rho >= 0:
        raise ConfigError(f"rho must be at least 0; got {rho}.")
