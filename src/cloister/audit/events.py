"""Choosing the one event that will be counted, on training runs only.

An event is "the statistic is at least a threshold", with the input under which it is expected to be likelier.
Statistic, threshold and direction are all fixed here; the runs that are counted afterwards have not been seen. So the
final bound is about ONE event and needs no correction for the many that were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.audit.bounds import Claim, EventCounts, Neighbour, rate_high, rate_low
from cloister.records import FloatArray

# Quantiles of the pooled scores at which thresholds are tried: the middle for rho, both tails for epsilon.
_TAIL = np.geomspace(1e-5, 0.08, 24)
_LEVELS = np.concatenate([_TAIL, np.linspace(0.1, 0.9, 33), 1 - _TAIL[::-1]])
_PESSIMISM = 0.1  # error allowed on each training rate: keeps chance extremes of the tails from winning
_WORTH_SWITCHING = 1.05  # a later, more complex statistic must be this much better


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A function of one output, and what it is in words."""

    words: str
    score: Callable[[NDArray[Any]], FloatArray]
    """(runs, entries) -> (runs,)."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """A set of outputs, fixed before it is counted."""

    statistic: Statistic
    threshold: float
    likelier: Neighbour
    expected_excess: float
    """The ratio of bound to claim that the training runs predict; above 1 predicts a violation."""

    def hits(self, outputs: NDArray[Any]) -> int:
        """Count the runs in which it happened."""
        return int(np.count_nonzero(self.statistic.score(outputs) >= self.threshold))

    def counts(self, *, hits: dict[Neighbour, int], runs: int) -> EventCounts:
        """Order the two inputs' counts by the direction that was fixed."""
        other = Neighbour.WITHOUT if self.likelier is Neighbour.WITH else Neighbour.WITH
        return EventCounts(
            hits_likelier=hits[self.likelier], runs_likelier=runs, hits_other=hits[other], runs_other=runs
        )


def choose_event(
    statistics: Sequence[Statistic],
    without: NDArray[Any],
    present: NDArray[Any],
    *,
    claim: Claim,
    counted_runs: int,
    confidence: float,
) -> Event:
    """Return the event that is predicted to exceed the claim most.

    Parameters
    ----------
    statistics
        Fitted on other runs; simplest first.
    without, present
        (runs, entries): training outputs.
    claim
        Decides what is worth finding: a tail event for epsilon, a middle one for rho.
    counted_runs, confidence
        Of the coming evaluation: how much of a rate it will be able to certify.
    """
    return prefer_first(
        [_best_threshold(statistic, without, present, claim, counted_runs, confidence) for statistic in statistics]
    )


def prefer_first(events: Sequence[Event]) -> Event:
    """Return the most promising event; a later one must be clearly better than those before it."""
    best = events[0]
    for event in events[1:]:
        if event.expected_excess > best.expected_excess * _WORTH_SWITCHING:
            best = event
    return best


def _best_threshold(
    statistic: Statistic,
    without: NDArray[Any],
    present: NDArray[Any],
    claim: Claim,
    counted_runs: int,
    confidence: float,
) -> Event:
    scores = {Neighbour.WITHOUT: statistic.score(without), Neighbour.WITH: statistic.score(present)}
    thresholds = _thresholds(np.concatenate(list(scores.values())))
    rates = {side: _rates_above(values, thresholds) for side, values in scores.items()}
    excess = np.zeros((2, len(thresholds)))
    sides = (Neighbour.WITH, Neighbour.WITHOUT)
    for row, side in enumerate(sides):
        other = sides[1 - row]
        # What the evaluation would certify if the true rates were at the pessimistic end of what training saw.
        p = rate_low(rates[side] * len(scores[side]), len(scores[side]), _PESSIMISM)
        q = rate_high(rates[other] * len(scores[other]), len(scores[other]), _PESSIMISM)
        low = rate_low(p * counted_runs, counted_runs, (1 - confidence) / 2)
        high = rate_high(q * counted_runs, counted_runs, (1 - confidence) / 2)
        excess[row] = claim.excess_of_rates(low, high)
    best_row, column = divmod(int(np.argmax(excess)), len(thresholds))
    return Event(
        statistic=statistic,
        threshold=float(thresholds[column]),
        likelier=sides[best_row],
        expected_excess=float(excess[best_row, column]),
    )


def _thresholds(scores: FloatArray) -> FloatArray:
    """Midpoints between neighbouring scores at the quantiles, and in the widest gap (scores that take two values)."""
    ordered = np.sort(scores)
    places = np.unique(np.clip((_LEVELS * len(ordered)).astype(np.int64), 1, len(ordered) - 1))
    widest = int(np.argmax(np.diff(ordered))) + 1
    # Among equal scores the midpoint is the score itself, and the event takes all of them.
    places = np.append(places, widest)
    result: FloatArray = (ordered[places - 1] + ordered[places]) / 2
    return np.unique(result)


def _rates_above(scores: FloatArray, thresholds: FloatArray) -> FloatArray:
    """The share of scores at or above each threshold."""
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, thresholds, side="left")
    result: FloatArray = 1.0 - below / len(ordered)
    return result
