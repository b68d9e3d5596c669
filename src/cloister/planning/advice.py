"""What follows from the numbers, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cloister.planning.model import Case, RoundNoise, Size
from cloister.planning.rounding import format_percent, format_ratio
from cloister.protocols.synopsis import Settings
from cloister.report.digits import format_count

_GOOD = 1.10  # times the loss without privacy: nobody would choose another epsilon for less
_SMALL = 0.25  # of an average cluster: clusters of this size should be seen (`_say_goal` says so)
_STEADY = 0.1  # of half a column's range: noise beyond this moves a centre to another cluster


class Clustering(Protocol):
    """Settings of any protocol that looks for so many clusters."""

    @property
    def clusters(self) -> int:
        """Their number, or the most."""


def list_notes(settings: Settings, sizes: Sequence[Size], *, guess: int | None) -> tuple[str, ...]:
    """What the reader must know about how the numbers were found."""
    notes = [_note_records(settings, sizes, guess)]
    if settings.client_level:
        notes.append(
            "A unit is a party: noise hides its whole table, so what counts is how many parties there are; beyond some "
            "hundred records each, more of them in the same parties help little. Parties are assumed to hold equally "
            "many records of every kind; parties that differ from each other lose more."
        )
    if settings.choose_k:
        notes.append(
            f"k is chosen by the run, at most {settings.clusters}; losses are compared at the k that it chose."
        )
    notes.append(
        "Losses and noise are of made-up records whose extremes are the bounds: bounds that are too wide cost more, "
        "and records that are not like any family may do better or worse."
    )
    return tuple(notes)


def _note_records(settings: Settings, sizes: Sequence[Size], guess: int | None) -> str:
    """Where the number of records comes from."""
    if settings.records is not None:
        return f"The job declares {settings.records:,} records public: not hidden, and no budget is spent on them."
    if guess is not None:
        return f"{guess:,} records are your guess, not read from a table; the run itself counts them with noise."
    if settings.client_level:
        each = sizes[0].records // sizes[0].parties
        return (
            f"How many records there are is private and no table is read: {each:,} a party are assumed. Say --records "
            "N if you can guess from what is public how many the job's parties have together."
        )
    return (
        "How many records there are is private and no table is read, so a few numbers are tried: say --records N "
        "if you can guess it from what is public. Ten times the records are as good as about ten times the epsilon."
    )


def advise_synopsis(settings: Settings, cases: Sequence[Case]) -> str:
    """Say what the job's epsilon is good for, and what would do better."""
    own = [case for case in cases if case.epsilon == settings.budget.epsilon]
    if settings.client_level:
        return _advise_parties(settings, cases, own)
    if len(own) > 1:
        return _advise_records(settings, own)
    return advise_case(settings, own[0], cases)


def advise_case(settings: Clustering, case: Case, cases: Sequence[Case]) -> str:
    """Say what one case is good for, and which other epsilons would do."""
    if _is_enough(settings, case):
        less = [other for other in cases if other.epsilon < case.epsilon and _is_enough(settings, other)]
        return _say_case(case) + (f" Even at epsilon = {less[0].epsilon:g} {_say_loss(less[0])}." if less else "")
    return (
        f"{_say_case(case)} If that is too much: {_find_epsilon(settings, case, cases)}, fewer clusters, narrower "
        "bounds or more records."
    )


def _advise_parties(settings: Settings, cases: Sequence[Case], own: Sequence[Case]) -> str:
    """Client level: parties are the units, so more of them help first."""
    case = own[0]
    said = f"With the job's {case.parties:,} parties, {_say_case(case, start='at')}"
    if _is_enough(settings, case):
        return said
    enough = [other for other in own[1:] if _is_enough(settings, other)]
    more = (
        f"more parties ({enough[0].parties:,} are enough {_say_goal(settings)})"
        if enough
        else f"more parties than {own[-1].parties:,}"
    )
    same = [other for other in cases if other.parties == case.parties]
    return (
        f"{said} If that is too much: {more}, {_find_epsilon(settings, case, same)}, fewer clusters or narrower bounds."
    )


def _advise_records(settings: Settings, own: Sequence[Case]) -> str:
    enough = [case for case in own if _is_enough(settings, case)]
    if not enough:
        return (
            f"At epsilon = {own[0].epsilon:g} none of these numbers of records is enough {_say_goal(settings)}: "
            "try a larger epsilon, fewer clusters or narrower bounds."
        )
    case = enough[0]
    said = f"{case.records:,} records are enough {_say_goal(settings)}. {_say_case(case)}"
    fewer = [other for other in own if other.records < case.records]
    return said + (f" With {fewer[-1].records:,}, {_say_loss(fewer[-1])}." if fewer else "")


def _say_case(case: Case, *, start: str = "At") -> str:
    return f"{start} epsilon = {case.epsilon:g}, {_say_smallest(case)}; {_say_loss(case)}."


def _find_epsilon(settings: Clustering, case: Case, others: Sequence[Case]) -> str:
    """Name the smallest larger epsilon that was tried and is enough."""
    larger = [other for other in others if other.epsilon > case.epsilon]
    enough = [other.epsilon for other in larger if _is_enough(settings, other)]
    if enough:
        return f"epsilon = {min(enough):g}"
    return "a larger epsilon than those tried" if larger else "a larger epsilon"


def _is_enough(settings: Clustering, case: Case) -> bool:
    """Whether the losses are near those without privacy, and clusters well below the average are seen."""
    if case.loss_ratio.high > _GOOD:
        return False
    if not case.looked_for_smallest:
        return True
    return case.smallest_cluster is not None and case.smallest_cluster <= _SMALL * case.records / settings.clusters


def _say_goal(settings: Clustering) -> str:
    """What `_is_enough` asks for, in words."""
    loss = f"for a loss at most {100 * (_GOOD - 1):.0f}% above that without privacy"
    return loss if settings.clusters == 1 else f"{loss} and to see clusters of a quarter of the average size"


def _say_smallest(case: Case) -> str:
    if not case.looked_for_smallest:
        return "there is but one cluster"
    if case.smallest_cluster is None:
        return "even clusters of average size disappear in the noise"
    said = f"clusters smaller than about {format_count(case.smallest_cluster)} records disappear"
    without = case.smallest_without_privacy
    if without is not None and case.smallest_cluster < 2 * without:
        return f"{said}, hardly more than without privacy"
    return f"{said} in the noise"


def _say_loss(case: Case) -> str:
    low, high = case.loss_ratio.low, case.loss_ratio.high
    if high < 1.01:
        return "the loss is within 1% of that without privacy"
    if high < 2:
        return f"the loss is {format_percent(low)} to {format_percent(high)}% above that without privacy"
    return f"the loss is {format_ratio(max(1.0, low))} to {format_ratio(high)} times that without privacy"


def advise_lloyd(protocol: str, noise: Sequence[RoundNoise], *, flaw: str = "") -> str:
    """Say what is not predicted, and what the noise means."""
    if not noise:
        return (
            f"{protocol} is exact: its centres are those of k-means from the same start, and nothing here is "
            "differentially private."
        )
    if flaw:
        return f"For reproduction only: the guarantee as published does not hold. {flaw}"
    unusable = [case.records for case in noise if case.centre_noise > _STEADY]
    said = "Losses are not predicted for this protocol: they depend on the start more than on the noise."
    if unusable:
        said += (
            f" With {max(unusable):,} records or fewer the noise of one round moves a centre by more than a twentieth "
            "of a column: use the synopsis, fewer rounds or a larger epsilon."
        )
    return said
