"""The privacy card: what a result promises, what it cost and what it does not promise; plain words first.

It is made from the releases that ran (the accountant's books), never from the parameters that were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

import msgspec

from cloister.privacy.accounting import Spent
from cloister.privacy.costs import epsilon_of_rho, pure_epsilon_of, rho_of
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Mechanism, Release
from cloister.privacy.placement import Owner, Placement
from cloister.privacy.units import EPSILON_CLAIMED_MOST, Budget, LeakageTable, Noisy, PersonBudget, Unit, write_bound

_PLAIN_TIMES_MOST = 1e6  # beyond, how many times likelier tells nobody anything
_LIARS = "Nothing is promised against parties that lie about their records, nor against whoever sees a party's memory."
_OWN_RECORDS = "What each party may learn from its own records is its own business."
_MANY_RECORDS = (
    "The promise is about one unit: many records of one person are protected as a group, at a multiple of epsilon."
)
_HOLDER = "Nothing is promised against whoever holds the table, or sees it or the memory of its computer."
UNPROVED = "Nobody is protected by proof: the guarantee as published does not hold."
VALUES_CHANGED = "the values of one record changed"
"""How neighbours differ where everybody knows which records take part."""
_MOSTLY_NOISE = 0.2  # a tenth of the range of a column that runs from -1 to 1
_SEEN = 3.0  # standard deviations above which a number of records is one


class CardRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One release on the card, in the integer units of the noise."""

    name: str
    noise: str
    scale: float
    sensitivity_l1: int
    sensitivity_l2: float
    entries: int
    rho: float
    pure_epsilon: float | None


class PrivacyCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every differentially private result carries and prints.

    Attributes
    ----------
    private
        False if nobody is protected: if the noise came from a seed, if the guarantee as published does not hold, or if
        epsilon is above `EPSILON_CLAIMED_MOST`.
    unit, neighbours
        Whose presence is hidden, and how two neighbouring inputs differ.
    epsilon, delta, how_composed
        The cost of all releases together, and the theorem that adds them up. Where released values decide which
        rounds run, it is the cost of all that could have run: only that is guaranteed.
    budget_epsilon, budget_delta
        What was allowed.
    releases
        Each release with its sensitivity and noise.
    who_adds_noise, who_could_subtract
        Whoever knows a noise value is not protected against by it.
    protects_against, breaks_if
        Against whom the promise holds, and which coalition breaks it.
    not_promised, warnings
        What a reader must not conclude, and what is odd about this run.
    flaw
        Why the guarantee as published does not hold; empty where it does. Epsilon is then what is claimed.
    scope
        Where noise protects less than a differentially private result does: what it does protect.
    """

    private: bool
    unit: str
    neighbours: str
    epsilon: float
    delta: float
    how_composed: str
    budget_epsilon: float
    budget_delta: float
    releases: tuple[CardRelease, ...]
    who_adds_noise: str
    who_could_subtract: str
    protects_against: str
    breaks_if: str
    not_promised: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    flaw: str = ""
    scope: str = ""

    @property
    def plain_words(self) -> str:
        """The promise in one sentence that needs no mathematics."""
        if self.scope:
            return f"This result as a whole is not differentially private. {self.scope}"
        if self.flaw:
            return (
                f"A reproduction: the published text claims epsilon = {self.epsilon:.4g}, and that claim is false. "
                "This result protects nobody by proof."
            )
        others = {
            Unit.CLIENT.value: "party had held no records",
            Unit.PERSON.value: "person, with all their records, had not taken part",
        }.get(self.unit, "record had not taken part")
        if self.neighbours.startswith(VALUES_CHANGED):
            others = "record that is known to be there had other values"
        if self.is_weak:
            times = "more than a million"
            if self.epsilon <= math.log(_PLAIN_TIMES_MOST):
                times = f"up to {write_bound(math.exp(self.epsilon))}"
            return (
                f"No protection is claimed: whatever someone does with this result, it may be {times} times as likely "
                f"as it would be if any one {others}."
            )
        if not self.private:
            return "A study: its noise came from a seed, so this result protects nobody."
        return (
            f"Whatever someone does with this result, it is at most {write_bound(math.exp(self.epsilon))} times as "
            f"likely as it would be if any one {others}"
            + (f", but for a chance of {self.delta:.3g}." if self.delta > 0 else ".")
        )

    @property
    def is_weak(self) -> bool:
        """Whether epsilon is so large that no protection is claimed."""
        return self.epsilon > EPSILON_CLAIMED_MOST

    @property
    def noisy(self) -> Noisy:
        """What the noise is worth, for the leakage table."""
        if self.scope:
            return Noisy.PARTLY
        if self.flaw:
            return Noisy.UNPROVED
        if self.is_weak:
            return Noisy.TOO_LITTLE
        return Noisy.PRIVATE if self.private else Noisy.SEEDED


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What is known of a run besides its cost; all of it public or released.

    Parameters
    ----------
    estimated_records
        A number of records that has been released with noise.
    records_noise
        The standard deviation of its noise, where the sums that it is taken from decide about centres.
    declared_records
        The number of records, where the job declares it public.
    parties
        How many take part, where a unit is all records of one.
    centre_noise
        The median of the standard deviations of what noise does to the centres' coordinates, where a column runs from
        -1 to 1.
    remedy
        What to do about much noise: it depends on the protocol and the unit.
    shares_missing
        How many shares of the noise were missing in the worst round, where the parties add shares.
    parties_in_sum
        How many parties' numbers are in the released sums, by agreement.
    flaw
        Why the stated guarantee does not hold; empty where it does.
    liars
        What a party with a role of its own can spoil by lying.
    reserved_delta
        Of delta, what is kept back for noise that the parties sample jointly, whose law is only nearly as stated.
    """

    estimated_records: float | None = None
    records_noise: float | None = None
    declared_records: int | None = None
    parties: int | None = None
    centre_noise: float | None = None
    remedy: str = "Raise epsilon, or use fewer rounds or clusters."
    shares_missing: int = 0
    parties_in_sum: int | None = None
    flaw: str = ""
    liars: tuple[str, ...] = ()
    reserved_delta: float = 0.0


def make_card(
    spent: Spent,
    *,
    budget: Budget,
    placement: Placement,
    leakage: LeakageTable,
    seeded: bool,
    circumstances: Circumstances | None = None,
) -> PrivacyCard:
    """Write the card of a run.

    Parameters
    ----------
    spent
        What the run costs, and the releases that ran.
    budget, placement
        What was agreed.
    leakage
        Whom it withstands, and which coalition breaks it.
    seeded
        Whether the noise came from a seed.
    circumstances
        What else is known of the run, for the warnings.
    """
    circumstances = circumstances or Circumstances()
    reserved = circumstances.reserved_delta
    epsilon = spent.epsilon if leakage.limit is None else leakage.limit
    return PrivacyCard(
        private=not (seeded or circumstances.flaw or epsilon > EPSILON_CLAIMED_MOST),
        unit=budget.unit.value,
        neighbours=f"{_describe_unit(budget)} added or removed",
        epsilon=epsilon,
        delta=spent.delta + reserved,
        how_composed=spent.how + _explain_pure(spent, reserved),
        budget_epsilon=budget.epsilon if leakage.limit is None else leakage.limit,
        budget_delta=budget.delta + reserved,
        releases=tuple(_describe(release) for release in spent.releases),
        who_adds_noise=placement.who_adds,
        who_could_subtract=placement.who_could_subtract,
        protects_against=_name_protected(seeded, circumstances.flaw, leakage.claim(spent.epsilon)),
        breaks_if=leakage.breaks_if,
        not_promised=(*_list_limits(budget, placement), *circumstances.liars),
        warnings=write_warnings(
            replace(spent, epsilon=epsilon),
            unit=budget.unit,
            placement=placement,
            seeded=seeded,
            circumstances=circumstances,
        ),
        flaw=circumstances.flaw,
    )


def _describe_unit(budget: Budget) -> str:
    """Say what neighbours differ by."""
    if not isinstance(budget, PersonBudget):
        return "one record" if budget.unit is Unit.RECORD else "all records of one client"
    if budget.most_records == 1:
        return "all records of one person, of which one counts,"
    most = "one counts" if budget.records == 1 else f"{budget.records:,} count"
    at = "one party" if budget.parties == 1 else f"up to {budget.parties:,} parties"
    return f"all records of one person, of which at most {most} at each of {at},"


def _list_limits(budget: Budget, placement: Placement) -> tuple[str, ...]:
    """Say against whom nothing is promised, and who is protected less."""
    if isinstance(placement, Owner):
        return (_HOLDER, _limit_unit(budget))
    return (_LIARS, _limit_unit(budget), _OWN_RECORDS)


def _limit_unit(budget: Budget) -> str:
    """Say who is more than one unit, and so is protected less."""
    if not isinstance(budget, PersonBudget):
        return _MANY_RECORDS
    return (
        "A person is an ID. Who goes by several, shares one with somebody else, or has records at more parties than "
        "the job says, is protected at a multiple of epsilon."
    )


def write_warnings(
    spent: Spent, *, unit: Unit, placement: Placement, seeded: bool, circumstances: Circumstances
) -> tuple[str, ...]:
    """Write every warning that holds, the gravest first.

    Parameters
    ----------
    spent
        What the run costs.
    unit, placement
        What was agreed.
    seeded
        Whether the noise came from a seed.
    circumstances
        What else is known of the run.
    """
    warnings = []
    if circumstances.flaw:
        warnings.append(f"The guarantee as published does not hold. {circumstances.flaw}")
    if seeded:
        warnings.append("The noise came from a seed: whoever knows it can take the noise away. Run without a seed.")
    warnings.extend(placement.warnings)
    if spent.epsilon > EPSILON_CLAIMED_MOST:
        warnings.append(explain_weakness(spent.epsilon))
    warnings.extend(_warn_of_declared_records(spent, unit, circumstances))
    warnings.extend(_warn_of_delta(spent, circumstances))
    warnings.extend(_warn_of_noise(circumstances))
    if circumstances.parties_in_sum == 2:
        warnings.append(
            "Two parties: each can subtract its own part from the released sums and is left with the other's part "
            "and the noise. The noise hides one record there too, but it shows what one party's records are like as "
            "well as the noise allows. With three or more parties only sums of several are left."
        )
    return tuple(filter(None, warnings))


def explain_weakness(epsilon: float) -> str:
    """Say why a large epsilon is not claimed to protect."""
    most = EPSILON_CLAIMED_MOST
    return (
        f"No protection is claimed at epsilon = {write_bound(epsilon)}: a result may change the odds of a guess "
        f"about anyone by a factor of up to e^epsilon, which above epsilon = {most:g} is more than "
        f"{math.exp(most):,.0f}. "
        "Choose a smaller epsilon; about 1 is usual."
    )


def _explain_pure(spent: Spent, reserved: float) -> str:
    """Tell the two epsilons of releases that are all pure from each other, and say what delta is kept back for."""
    pure = [pure_epsilon_of(release) for release in spent.releases]
    said = ""
    if spent.delta > 0 and pure and None not in pure:
        total = math.fsum(epsilon for epsilon in pure if epsilon is not None)
        said = (
            f". Two epsilons hold: {write_bound(spent.epsilon, 4)} at delta = {spent.delta + reserved:.3g}, and "
            f"{write_bound(total, 4)}, the pure epsilons of all releases added up, at delta = {reserved:.3g}"
        )
    if reserved > 0:
        said += f". Of delta, {reserved:.3g} is kept back because jointly sampled noise is only nearly as stated"
    return said


def _name_protected(seeded: bool, flaw: str, claim: str) -> str:
    if flaw:
        return UNPROVED
    if seeded:
        return "Nobody is protected: the noise came from a seed."
    return claim


def _describe(release: Release) -> CardRelease:
    noise, scale = _name_noise(release.mechanism)
    return CardRelease(
        name=release.name,
        noise=noise,
        scale=scale,
        sensitivity_l1=release.sensitivity.l1,
        sensitivity_l2=release.sensitivity.l2_squared**0.5,
        entries=release.entries,
        rho=rho_of(release),
        pure_epsilon=pure_epsilon_of(release),
    )


def _name_noise(mechanism: Mechanism) -> tuple[str, float]:
    match mechanism:
        case DiscreteGaussian(sigma=sigma):
            return "discrete Gaussian", sigma
        case DiscreteLaplace(scale=scale):
            return "discrete Laplace", scale
        case DiscreteGaussianSum(sigma=sigma, shares=shares):
            return f"sum of {shares} discrete Gaussians", sigma
    assert_never(mechanism)


def _warn_of_declared_records(spent: Spent, unit: Unit, circumstances: Circumstances) -> Iterator[str]:
    """A number taken from the records tells neighbours apart, unless a unit is replaced: two steps, and rho is 4-fold.

    Replacing is removing and adding. The contributions of both together have at most twice the norm of one, and rho
    goes with its square (docs/proofs/synopsis.md, "The number of records"); pure epsilons double.
    """
    declared = circumstances.declared_records
    if declared is None:
        return
    epsilon = 2 * spent.epsilon
    if spent.delta > 0 and spent.rho is not None:
        epsilon = epsilon_of_rho(4 * spent.rho, spent.delta)
    whole = {Unit.RECORD: "one record", Unit.PERSON: "one person"}.get(unit, "one party's table")
    yield (
        f"The job declares the number of records, {declared:,}. If that number was computed from the records, "
        f"neighbours are {whole} replaced by another, not added or removed, and "
        f"{'the claimed epsilon' if circumstances.flaw else 'epsilon'} is up to "
        f"{write_bound(epsilon)} at delta = {spent.delta:.3g}. Declare it only where it is public anyway."
    )


def _warn_of_delta(spent: Spent, circumstances: Circumstances) -> Iterator[str]:
    """A delta above 1 / units allows to publish a unit at random."""
    records, parties = circumstances.estimated_records, circumstances.parties
    if records is not None and spent.delta * records > 1:
        yield (
            f"delta = {spent.delta:.3g} is larger than 1 / {records:,.0f}, about the number of records: a "
            "mechanism that publishes one record at random would pass. Choose a smaller delta."
        )
    if parties is not None and spent.delta * parties > 1:
        yield (
            f"delta = {spent.delta:.3g} is larger than 1 / {parties:,}, the number of parties: a mechanism that "
            "publishes one party's table at random would pass. Choose a smaller delta."
        )


def _warn_of_noise(circumstances: Circumstances) -> Iterator[str]:
    """Centres that noise moves by a tenth of the range or more say little about the records."""
    moved, records, deviation = circumstances.centre_noise, circumstances.estimated_records, circumstances.records_noise
    if records is not None and deviation is not None and records < _SEEN * deviation:
        yield (
            "These centres are mostly noise: the number of records that was released is lost in its own noise, "
            f"±{float(f'{deviation:.1g}'):,.0f}. {circumstances.remedy}"
        )
        return
    if moved is None or moved < _MOSTLY_NOISE:
        return
    yield (
        f"These centres are mostly noise: half of their coordinates deviate by {50 * moved:.0f} % of the column's "
        f"range or more. {circumstances.remedy}"
    )
