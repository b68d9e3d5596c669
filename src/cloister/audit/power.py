"""What an audit could have caught: how much too little noise its runs would have refuted.

It is computed, not measured, for one Gaussian likelihood ratio: the claimed rho is that of a Gaussian mechanism with
mu = sqrt(2 rho), and noise of 1/x of its deviation gives x mu. For every event of the form "the likelihood ratio is at
least c" the two counts are put at quantiles that they miss on the bad side once in twenty times. The bounds of
:mod:`cloister.audit.bounds` on these counts refute the claim, or not.

A claim without rho and with delta = 0 is taken for that of Laplace noise on one number. Laplace noise of the same rho
is seen with fewer runs: an event at the middle shows all of its rho where epsilon is small, and of a Gaussian's 2 / pi.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cloister.audit.bounds import Claim, rate_high, rate_low
from cloister.late import load_late
from cloister.privacy.privacy_loss import GaussianCost, delta_of_gaussian
from cloister.records import FloatArray

special = load_late("scipy.special")
stats = load_late("scipy.stats")

_UNLUCKY = 0.05
_CUTS = np.linspace(-6.0, 6.0, 121)
_MOST_TIMES = 1e3
_STEPS = 40


def find_power(claim: Claim, *, runs: int, confidence: float) -> float | None:
    """Return x: noise below 1/x of what the claim needs would have been refuted by nearly every such audit.

    Parameters
    ----------
    claim
        What was audited.
    runs
        Counted runs per input.
    confidence
        Of the audit's bounds.

    Returns
    -------
    float or None
        At least 1; None if so few runs refute nothing, not even noise a thousand times too small.

    Notes
    -----
    It assumes the noise that the module describes, and that the best event is found. Two counts are each unlucky once
    in twenty times, so that nine of ten audits do at least as well under these assumptions.
    """
    rates = _name_rates(claim)

    def is_caught(times: float) -> bool:
        likelier, other = rates(times)
        low = rate_low(stats.binom.ppf(_UNLUCKY, runs, likelier), runs, (1 - confidence) / 2)
        high = rate_high(stats.binom.ppf(1 - _UNLUCKY, runs, other), runs, (1 - confidence) / 2)
        return bool((claim.excess_of_rates(low, high) > 1.0).any())

    return _find_first(is_caught, low=1.0, high=_MOST_TIMES)


def _name_rates(claim: Claim) -> Callable[[float], tuple[FloatArray, FloatArray]]:
    """Return the probabilities of events on the two inputs, as a function of the factor by which noise is too small."""
    if claim.rho is None and claim.delta == 0:
        return lambda times: _laplace_rates(times * claim.epsilon)
    mu = math.sqrt(2 * claim.rho) if claim.rho is not None else _find_mu(claim)
    return lambda times: (special.ndtr(times * mu / 2 - _CUTS), special.ndtr(-times * mu / 2 - _CUTS))


def _laplace_rates(epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Cuts lie between the two inputs' numbers, in units of the scale."""
    cuts = epsilon * np.linspace(0.0, 1.0, len(_CUTS))
    return 1 - np.exp(cuts - epsilon) / 2, np.exp(-cuts) / 2


def _find_mu(claim: Claim) -> float:
    """Return mu of the Gaussian mechanism whose exact curve passes through epsilon and delta."""

    def exceeds(mu: float) -> bool:
        return delta_of_gaussian(GaussianCost(mu_squared=mu * mu, ripple=0.0), claim.epsilon) > claim.delta

    mu = _find_first(exceeds, low=1e-6 * claim.epsilon, high=10.0 + 10.0 * claim.epsilon)
    assert mu is not None
    return mu


def _find_first(holds: Callable[[float], bool], *, low: float, high: float) -> float | None:
    """Return the smallest number between two at which a condition holds from there on; None if it never does."""
    if not holds(high):
        return None
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
