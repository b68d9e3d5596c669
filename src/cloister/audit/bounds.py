"""What is claimed, and lower bounds on epsilon and rho from one event that was fixed before it was counted.

A mechanism is run many times on two neighbouring inputs. An event (a set of outputs) happens with probability p on the
input under which it is likelier, and q on the other. Everything here follows from two one-sided
Clopper-Pearson bounds, p >= p_low and q <= q_high, each failing with probability at most (1 - confidence) / 2, so
both hold together with the stated confidence (Bonferroni). Whatever is computed from the pair then holds too: the event
and its complement, both directions of the divergence, epsilon and rho, at no further cost.

The bounds are valid only for an event chosen without looking at the runs that are counted; see
:mod:`cloister.audit.events`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from cloister.errors import ConfigError
from cloister.late import load_late
from cloister.records import FloatArray

special = load_late("scipy.special")

DEFAULT_CONFIDENCE = 1 - 1e-6
# Renyi orders at which the zCDP inequality is tried; any set is sound, a finer one gains little. 1 stands for KL.
_ORDERS = np.concatenate([[1.0], 1.0 + np.geomspace(0.02, 200.0, 48)])


class Neighbour(Enum):
    """The two inputs: they differ by one unit, added or removed."""

    WITHOUT = "without"
    WITH = "with"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The guarantee that an audit tries to refute.

    Parameters
    ----------
    epsilon, delta
        What the privacy card says.
    rho
        The zero-concentrated guarantee behind it, where the accountant composed in zCDP. It says more than the pair
        converted from it, so it is far easier to refute when it is false: give it if there is one.
    """

    epsilon: float
    delta: float
    rho: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise ConfigError(f"a claimed epsilon must be finite and greater than 0; got {self.epsilon}.")
        if not 0 <= self.delta < 1:
            raise ConfigError(f"a claimed delta must be at least 0 and less than 1; got {self.delta}.")
        if self.rho is not None and not 0 < self.rho < math.inf:
            raise ConfigError(f"a claimed rho must be finite and greater than 0; got {self.rho}.")

    def excess_of_rates(self, likelier_low: Any, other_high: Any) -> FloatArray:
        """Return the largest ratio of a lower bound to what is claimed; above 1 refutes the claim."""
        excess = epsilon_of_rates(likelier_low, other_high, self.delta) / self.epsilon
        if self.rho is not None:
            excess = np.maximum(excess, rho_of_rates(likelier_low, other_high) / self.rho)
        return excess


@dataclass(frozen=True, kw_only=True)
class EventCounts:
    """How often one event happened on each of two neighbouring inputs.

    Parameters
    ----------
    hits_likelier, runs_likelier
        On the input under which the event was expected to be likelier, before these runs.
    hits_other, runs_other
        On the other input.
    """

    hits_likelier: int
    runs_likelier: int
    hits_other: int
    runs_other: int

    def __post_init__(self) -> None:
        for hits, runs in ((self.hits_likelier, self.runs_likelier), (self.hits_other, self.runs_other)):
            if runs < 1 or not 0 <= hits <= runs:
                raise ConfigError(f"0 <= hits <= runs and runs >= 1 must hold; got {hits} hits in {runs} runs.")


@dataclass(frozen=True, kw_only=True)
class RateBounds:
    """Bounds on the event's two probabilities that hold together with the stated confidence."""

    likelier_low: float
    other_high: float


def bound_rates(counts: EventCounts, *, confidence: float = DEFAULT_CONFIDENCE) -> RateBounds:
    """Bound the two rates with Clopper-Pearson (1934), each one-sided at (1 - confidence) / 2."""
    alpha = _alpha(confidence)
    return RateBounds(
        likelier_low=float(rate_low(counts.hits_likelier, counts.runs_likelier, alpha / 2)),
        other_high=float(rate_high(counts.hits_other, counts.runs_other, alpha / 2)),
    )


def epsilon_lower_bound(counts: EventCounts, *, delta: float, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return an epsilon below which the mechanism is certainly not (epsilon, delta)-differentially private.

    Parameters
    ----------
    counts
        Of an event fixed before these runs.
    delta
        Of the claim that is tested.
    confidence
        Probability, over the runs, that the bound is at most the mechanism's true epsilon.

    Returns
    -------
    float
        max(0, log((p_low - delta) / q_high), log((1 - q_high - delta) / (1 - p_low))).

    Privacy
    -------
    Differential privacy says P(E) <= e^epsilon Q(E) + delta for every event and both orders of the neighbours (Dwork
    and Roth 2014, definition 2.4). The second term is the first for the complement with the inputs exchanged. Both
    grow in p and fall in q, so the bounds on p and q carry over.
    """
    _check_delta(delta)
    rates = bound_rates(counts, confidence=confidence)
    return float(epsilon_of_rates(np.float64(rates.likelier_low), np.float64(rates.other_high), delta))


def rho_lower_bound(counts: EventCounts, *, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return a rho below which the mechanism is certainly not rho-zCDP.

    Privacy
    -------
    rho-zCDP says D_a(P || Q) <= a rho for all a > 1 and both orders of the neighbours (Bun and Steinke 2016, definition
    1.1). An event is post-processing (their lemma 1.4), so its two Bernoulli distributions satisfy D_a(p || q) <= a rho
    and D_a(q || p) <= a rho. For p > q both fall when p falls to p_low and q rises to q_high. The bound is the largest
    D_a / a over a grid of orders a; order 1 is the Kullback-Leibler divergence, the limit of D_a as a falls to 1.

    For a Gaussian mechanism an event at the middle shows about 2 / pi of the true rho, with few runs. A bound on
    epsilon at a small delta needs an event in the tail, which needs many.
    """
    rates = bound_rates(counts, confidence=confidence)
    return float(rho_of_rates(np.float64(rates.likelier_low), np.float64(rates.other_high)))


def estimate_gaussian_epsilon(counts: EventCounts, *, delta: float) -> float:
    """Estimate epsilon under the ASSUMPTION that the output is Gaussian; an estimate, never a certificate.

    Reads mu = Phi^-1(p) - Phi^-1(q) from the observed rates, as for mu-Gaussian differential privacy (Dong, Roth and
    Su 2022), and converts it exactly: delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and
    Wang 2018, theorem 8).
    """
    _check_delta(delta)
    p = (counts.hits_likelier + 0.5) / (counts.runs_likelier + 1)  # keeps the quantiles finite
    q = (counts.hits_other + 0.5) / (counts.runs_other + 1)
    mu = float(special.ndtri(p) - special.ndtri(q))
    if mu <= 0:
        return 0.0
    if delta == 0:
        return math.inf

    def excess(epsilon: float) -> float:
        upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return float(special.ndtr(upper) - math.exp(epsilon) * special.ndtr(lower)) - delta

    low, high = 0.0, mu * mu / 2 + mu * float(-special.ndtri(delta))  # there Phi(mu/2 - epsilon/mu) is already delta
    if excess(low) <= 0:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def largest_certifiable_epsilon(runs: int, *, delta: float = 0.0, confidence: float = DEFAULT_CONFIDENCE) -> float:
    """Return the bound that ``runs`` counted runs per input give when the event always and never happens."""
    counts = EventCounts(hits_likelier=runs, runs_likelier=runs, hits_other=0, runs_other=runs)
    return epsilon_lower_bound(counts, delta=delta, confidence=confidence)


def rate_low(hits: Any, runs: Any, alpha: float) -> FloatArray:
    """One-sided Clopper-Pearson lower bounds; ``hits`` may be fractional, for predictions."""
    hits = np.asarray(hits, dtype=np.float64)
    bound = special.betaincinv(np.maximum(hits, 1e-12), runs - hits + 1, alpha)
    return np.asarray(np.where(hits > 0, bound, 0.0), dtype=np.float64)


def rate_high(hits: Any, runs: Any, alpha: float) -> FloatArray:
    """One-sided Clopper-Pearson upper bounds; ``hits`` may be fractional, for predictions."""
    hits = np.asarray(hits, dtype=np.float64)
    bound = special.betainccinv(hits + 1, np.maximum(runs - hits, 1e-12), alpha)
    return np.asarray(np.where(hits < runs, bound, 1.0), dtype=np.float64)


def epsilon_of_rates(likelier_low: Any, other_high: Any, delta: float) -> FloatArray:
    """Evaluate the formula of :func:`epsilon_lower_bound` on arrays of rate bounds."""
    p, q = np.asarray(likelier_low, dtype=np.float64), np.asarray(other_high, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        event = np.log(np.maximum(p - delta, 0.0)) - np.log(q)
        complement = np.log(np.maximum(1.0 - q - delta, 0.0)) - np.log1p(-p)
        best = np.fmax(np.fmax(event, complement), 0.0)
    return np.asarray(np.where(p > q, best, 0.0), dtype=np.float64)


def rho_of_rates(likelier_low: Any, other_high: Any) -> FloatArray:
    """Evaluate the formula of :func:`rho_lower_bound` on arrays of rate bounds."""
    p, q = np.broadcast_arrays(np.asarray(likelier_low, np.float64), np.asarray(other_high, np.float64))
    apart = (p > q) & (p > 0) & (q < 1)
    best = np.zeros(p.shape)
    # Outside ``apart`` any valid pair will do: the result there is 0. Clopper-Pearson gives p_low < 1 and q_high > 0.
    p, q = np.where(apart, p, 0.5), np.where(apart, q, 0.5)
    for first, second in ((p, q), (q, p)):
        ratio_in = np.log(first) - np.log(second)
        ratio_out = np.log1p(-first) - np.log1p(-second)
        best = np.maximum(best, first * ratio_in + (1 - first) * ratio_out)  # order 1, divided by 1
        for order in _ORDERS[1:]:
            exponent = order - 1
            moment = np.logaddexp(np.log(first) + exponent * ratio_in, np.log1p(-first) + exponent * ratio_out)
            best = np.maximum(best, moment / (exponent * order))
    return np.asarray(np.where(apart, best, 0.0), dtype=np.float64)


def _alpha(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must lie between 0 and 1; got {confidence}. Try 0.999999.")
    return 1 - confidence


def _check_delta(delta: float) -> None:
    if not 0 <= delta < 1:
        raise ConfigError(f"delta must be at least 0 and less than 1; got {delta}.")
