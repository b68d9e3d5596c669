"""What follows from the numbers, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.planning.model import Case, RoundNoise
from cloister.protocols.synopsis import Settings
from cloister.report.digits import format_count

_GOOD = 1.10  # times the loss without privacy: nobody would choose another epsilon for less
_SMALL = 0.25  # of an average cluster: clusters of this size should be seen
_STEADY = 0.1  # of half a column's range: noise beyond this moves a centre to another cluster


def list_notes(settings: Settings, numbers: Sequence[int]) -> tuple[str, ...]:
    """What the reader must know about how the numbers were found."""
    notes = []
    if settings.records is not None:
        notes.append(
            f"The job declares {settings.records:,} records public: not hidden, and no budget is spent on them."
        )
    elif len(numbers) > 1:
        notes.append(
            "How many records there are is private and no table is read, so a few numbers are tried: say --records N "
            "if you can guess it from what is public. Ten times the records are as good as about ten times the epsilon."
        )
    else:
        notes.append(
            f"{numbers[0]:,} records are your guess, not read from a table; the run itself counts them with noise."
        )
    if settings.client_level:
        notes.append(
            f"A client is a party: {settings.parties:,} of them, with equally many records of every kind, are assumed. "
            "Parties that differ from each other lose more."
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


def advise_synopsis(settings: Settings, cases: Sequence[Case]) -> str:
    """Say what the job's epsilon is good for, and which one would do."""
    own = [case for case in cases if case.epsilon == settings.budget.epsilon]
    if len(own) > 1:
        return _advise_records(settings, own)
    (case,) = own
    said = f"At epsilon = {case.epsilon:g}, {_say_smallest(case)}; {_say_loss(case)}."
    if _is_enough(settings, case):
        less = [other for other in cases if other.epsilon < case.epsilon and _is_enough(settings, other)]
        return said + (f" Even at epsilon = {less[0].epsilon:g} {_say_loss(less[0])}." if less else "")
    more = [other.epsilon for other in cases if other.epsilon > case.epsilon and _is_enough(settings, other)]
    what_to_do = f"epsilon = {min(more):g}" if more else "a larger epsilon than those tried"
    return f"{said} If that is too much: {what_to_do}, fewer clusters, narrower bounds or more records."


def _advise_records(settings: Settings, own: Sequence[Case]) -> str:
    enough = [case for case in own if _is_enough(settings, case)]
    if not enough:
        return (
            f"At epsilon = {own[0].epsilon:g} none of these numbers of records is enough: try a larger epsilon, fewer "
            "clusters or narrower bounds."
        )
    case = enough[0]
    said = (
        f"At epsilon = {case.epsilon:g}, {case.records:,} records are enough: {_say_smallest(case)}; {_say_loss(case)}."
    )
    fewer = [other for other in own if other.records < case.records]
    return said + (f" With {fewer[-1].records:,}, {_say_loss(fewer[-1])}." if fewer else "")


def _is_enough(settings: Settings, case: Case) -> bool:
    """Whether the losses are near those without privacy, and clusters well below the average are seen."""
    if case.loss_ratio.high > _GOOD:
        return False
    if not case.looked_for_smallest:
        return True
    return case.smallest_cluster is not None and case.smallest_cluster <= _SMALL * case.records / settings.clusters


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
        return f"the loss is {max(0.0, 100 * (low - 1)):.0f} to {100 * (high - 1):.0f}% above that without privacy"
    return f"the loss is {max(1.0, low):.1f} to {high:.1f} times that without privacy"


def advise_lloyd(variant: str, noise: Sequence[RoundNoise]) -> str:
    """Say what is not predicted, and what the noise means."""
    if variant != "mask-noise-average":
        return (
            f"{variant} is exact: its centres are those of k-means from the same start, and nothing here is "
            "differentially private."
        )
    unusable = [case.records for case in noise if case.centre_noise > _STEADY]
    said = "Losses are not predicted for this protocol: they depend on the start more than on the noise."
    if unusable:
        said += (
            f" With {max(unusable):,} records or fewer the noise of one round moves a centre by more than a twentieth "
            "of a column: use the synopsis, fewer rounds or a larger epsilon."
        )
    return said
