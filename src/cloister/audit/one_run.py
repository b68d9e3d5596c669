"""A lower bound on epsilon from ONE run, by guessing which of many canaries took part.

Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", 2023. Each of m canaries is included
independently with probability 1/2. The mechanism runs once. The auditor sees its output and guesses, for each canary,
"in", "out", or abstains. Many right guesses are unlikely if the mechanism is private; the theorem says how unlikely.

Use it where a run is expensive and one output holds room for many canaries; where a run is cheap,
:func:`cloister.audit.harness.audit` certifies more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError
from cloister.late import load_late
from cloister.records import FloatArray

special = load_late("scipy.special")

ONE_RUN_CONFIDENCE = 0.999
_LARGEST_EPSILON = 50.0
_BISECTIONS = 60


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """The outcome of one run.

    Parameters
    ----------
    canaries
        m: all that were included by a fair coin, guessed or not.
    made
        r: guesses other than abstentions; fixed before the run, or an upper bound that was.
    correct
        v: how many of them were right.
    """

    canaries: int
    made: int
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.made <= self.canaries or self.canaries < 1:
            raise ConfigError(
                f"0 <= correct <= made <= canaries and canaries >= 1 must hold; "
                f"got {self.correct}, {self.made}, {self.canaries}."
            )


def one_run_p_value(guesses: Guesses, *, epsilon: float, delta: float) -> float:
    """Bound the probability of so many right guesses if the mechanism is (epsilon, delta)-DP.

    Returns
    -------
    float
        min(1, f(v) + 2 m delta max over 1 <= i <= m of (f(v - i) - f(v)) / i), where f(v) = P[W >= v] and W is
        binomial with r trials of probability e^epsilon / (1 + e^epsilon).

    Privacy
    -------
    Neighbours: one canary added or removed. Theorem 5.2 of Steinke, Nasr and Jagielski (2023); for
    delta = 0 it is their theorem 5.1. Terms with i > v are never the largest, as f is 1 from v - i = 0 on.
    """
    if epsilon < 0 or not 0 <= delta <= 1:
        raise ConfigError(f"epsilon >= 0 and 0 <= delta <= 1 must hold; got {epsilon} and {delta}.")
    r, v = guesses.made, guesses.correct
    if v == 0:
        return 1.0
    # The regularised incomplete beta function is the binomial's upper tail; tails[j] = f(j) for j = 0..v.
    if delta == 0:
        return float(special.betainc(v, r - v + 1, special.expit(epsilon)))
    steps = np.arange(1, v + 1, dtype=np.float64)
    tails = np.concatenate([[1.0], special.betainc(steps, r - steps + 1, special.expit(epsilon))])
    rise = float(np.max((tails[v - 1 :: -1] - tails[v]) / steps))
    return min(1.0, float(tails[v]) + 2.0 * guesses.canaries * delta * rise)


def one_run_epsilon_lower_bound(
    guesses: Guesses, *, delta: float, confidence: float = ONE_RUN_CONFIDENCE, options: int = 1
) -> float:
    """Return the largest epsilon that the guesses refute.

    Parameters
    ----------
    guesses
        Of one run.
    delta
        Of the claim that is tested.
    confidence
        Probability, over the run, that the bound is at most the true epsilon. The p-value is at least 2 m delta / v,
        so with delta > 0 nothing is shown unless 1 - confidence is larger than that.
    options
        How many ways of guessing were tried on this run, to report the best: each gets its share of the error.
    """
    if not 0 < confidence < 1 or options < 1:
        raise ConfigError(f"0 < confidence < 1 and options >= 1 must hold; got {confidence} and {options}.")
    level = (1 - confidence) / options
    low, high = 0.0, _LARGEST_EPSILON
    if one_run_p_value(guesses, epsilon=low, delta=delta) >= level:
        return 0.0
    # Keeps "refuted at low". A mechanism private at a smaller epsilon is so at ``low``, hence refuted with it.
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        refuted = one_run_p_value(guesses, epsilon=middle, delta=delta) < level
        low, high = (middle, high) if refuted else (low, middle)
    return low


@dataclass(frozen=True, kw_only=True)
class OneRunReport:
    """What one run of a mechanism with canaries shows."""

    guesses: Guesses
    delta: float
    confidence: float
    epsilon_lower: float
    """With that confidence, the mechanism's epsilon at that delta is at least this."""


def audit_one_run(
    included: NDArray[np.bool_],
    scores: FloatArray,
    *,
    delta: float,
    guess_fractions: tuple[float, ...] = (0.05, 0.2, 0.5),
    confidence: float = ONE_RUN_CONFIDENCE,
) -> OneRunReport:
    """Guess the canaries with the highest scores "in" and the lowest "out", and report the best bound.

    Parameters
    ----------
    included
        (m,): the coins; independent and fair, tossed before the run.
    scores
        (m,): from the output alone; higher means that the canary looks included.
    delta
        Of the claim that is tested.
    guess_fractions
        Which fractions of the canaries to guess, half of them each way; the error is split over them.
    confidence
        Of the reported bound.

    Returns
    -------
    OneRunReport
    """
    canaries = len(included)
    if scores.shape != (canaries,) or included.shape != (canaries,) or not np.isfinite(scores).all():
        raise ConfigError(f"there must be one finite score for each of the {canaries} canaries; got {scores.shape}.")
    if not guess_fractions or not all(0 < fraction <= 1 for fraction in guess_fractions):
        raise ConfigError("guess_fractions must lie in (0, 1] and there must be at least one.")
    order = np.argsort(scores, kind="stable")
    reports = []
    for fraction in guess_fractions:
        each = max(1, int(fraction * canaries / 2)) if canaries > 1 else 0
        correct = int(included[order[canaries - each :]].sum() + (~included[order[:each]]).sum())
        guesses = Guesses(canaries=canaries, made=2 * each, correct=correct)
        bound = one_run_epsilon_lower_bound(guesses, delta=delta, confidence=confidence, options=len(guess_fractions))
        reports.append(OneRunReport(guesses=guesses, delta=delta, confidence=confidence, epsilon_lower=bound))
    return max(reports, key=lambda report: report.epsilon_lower)
