"""Conclusions from the numbers, in sentences; and how many digits the numbers deserve.

Between plans with different random streams, an excess loss varies by 20 to 30 %, the noise on a centre by 10 to 12 %
(docs/plan.md). So an excess is shown with one significant digit, or two if the first is 1, and noise with two.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Protocol

from cloister.forecast.model import Case
from cloister.report.layout import format_count

_GOOD = 1.10  # times the loss without privacy: a smaller excess is not worth a larger epsilon
_SMALL = 0.25  # of an average cluster: clusters of this size should be seen (`describe_goal` says so)
STEADY = 0.1
"""As a fraction of half a column's range: noise beyond this moves a centre to another cluster."""

_SMALLEST_EXCESS = 0.001  # smaller ones come from k-means' own starts
_SMALLEST_PLAIN = 1e-6


class HasClusters(Protocol):
    """Settings of any protocol that looks for a number of clusters."""

    @property
    def clusters(self) -> int:
        """The number of clusters, or the maximum."""


def advise_case(settings: HasClusters, case: Case, cases: Sequence[Case]) -> str:
    """Say what one case is good for, and which other epsilons would suffice."""
    if is_enough(settings, case):
        less = [other for other in cases if other.epsilon < case.epsilon and is_enough(settings, other)]
        return describe_case(case) + (
            f" Even at epsilon = {less[0].epsilon:g} {describe_loss(less[0])}." if less else ""
        )
    return (
        f"{describe_case(case)} If that is too much, try {find_epsilon(settings, case, cases)}, fewer clusters, "
        f"narrower bounds or more {case.counted}."
    )


def describe_case(case: Case, *, start: str = "At") -> str:
    """Say what one case is good for, in one sentence."""
    return f"{start} epsilon = {case.epsilon:g}, {_describe_smallest(case)}; {describe_loss(case)}."


def find_epsilon(settings: HasClusters, case: Case, others: Sequence[Case]) -> str:
    """Name the smallest larger epsilon that was tried and suffices."""
    larger = [other for other in others if other.epsilon > case.epsilon]
    enough = [other.epsilon for other in larger if is_enough(settings, other)]
    if enough:
        return f"epsilon = {min(enough):g}"
    return "a larger epsilon than those tried" if larger else "a larger epsilon"


def is_enough(settings: HasClusters, case: Case) -> bool:
    """Whether losses are close to those without privacy, and clusters well below the average size are seen."""
    if case.loss_ratio.high > _GOOD:
        return False
    if not case.looked_for_smallest:
        return True
    return case.smallest_cluster is not None and case.smallest_cluster <= _SMALL * case.records / settings.clusters


def describe_goal(settings: HasClusters) -> str:
    """Put the criteria of `is_enough` into words."""
    loss = f"for a loss at most {100 * (_GOOD - 1):.0f}% above that without privacy"
    return loss if settings.clusters == 1 else f"{loss} and to see clusters of a quarter of the average size"


def _describe_smallest(case: Case) -> str:
    if not case.looked_for_smallest:
        return "there is only one cluster"
    if case.smallest_cluster is None:
        return "even clusters of average size disappear in the noise"
    said = f"clusters smaller than about {format_count(case.smallest_cluster)} {case.counted} disappear"
    without = case.smallest_without_privacy
    if without is not None and case.smallest_cluster < 2 * without:
        return f"{said}, hardly more than without privacy"
    return f"{said} in the noise"


def describe_loss(case: Case) -> str:
    """Say how far the loss is above that without privacy, in a clause."""
    low, high = case.loss_ratio.low, case.loss_ratio.high
    if high < 1.01:
        return "the loss is within 1% of that without privacy"
    if high < 2:
        return f"the loss is {format_percent(low)} to {format_percent(high)}% above that without privacy"
    return f"the loss is {format_ratio(max(1.0, low))} to {format_ratio(high)} times that without privacy"


def format_ratio(ratio: float) -> str:
    """Format the ratio of a loss to that without privacy: 1.002, 1.12, 1.3, 2.7, 6."""
    excess = abs(ratio - 1.0)
    if excess < _SMALLEST_EXCESS / 2:
        return "1.000"
    return _write(ratio, decimals=min(3, _decimals_of(excess)))


def format_percent(ratio: float) -> str:
    """Format by how many per cent a ratio exceeds one, zero if it does not: 0.2, 12, 30."""
    excess = 100.0 * max(0.0, ratio - 1.0)
    return "0" if excess < 50 * _SMALLEST_EXCESS else _write(excess, decimals=min(1, _decimals_of(excess)))


def format_noise(value: float) -> str:
    """Format a standard deviation with two significant digits, no exponent unless it is tiny: 0.021, 3.4, 1,200."""
    if value < _SMALLEST_PLAIN:
        return f"{value:.2g}"
    return _write(value, decimals=1 - floor(log10(value)))


def _decimals_of(excess: float) -> int:
    """Return the number of decimals that an excess deserves; negative for digits before the point."""
    power = floor(log10(excess))
    return -power + (excess < 2 * 10.0**power)


def _write(value: float, *, decimals: int) -> str:
    return f"{round(value, decimals):,.{max(0, decimals)}f}"
