"""What is odd about a private run, for its card: a reader of the numbers alone would believe too much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cloister.privacy.composition import Spent
from cloister.privacy.placement import Placement
from cloister.privacy.units import Unit
from cloister.privacy.zcdp import epsilon_of_rho

EPSILON_WEAK = 10.0
"""Above, a promise is practically none: exp(10) is 22,026."""

_MOSTLY_NOISE = 0.25
_SEEN = 3.0  # standard deviations above which a number of records is one
_WHOLE_RANGE = 2.0  # of a column that runs from -1 to 1


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
        By how much noise moves a coordinate of a centre of average size in a round, where a column runs from -1 to 1.
    remedy
        What to do about much noise: it depends on the protocol and the unit.
    shares_missing
        How many shares of the noise were missing in the worst round, where the parties add shares.
    parties_in_sum
        How many parties' numbers are in the released sums, by agreement.
    flaw
        Why the stated guarantee does not hold; empty where it does.
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


def write_warnings(
    spent: Spent, *, unit: Unit, placement: Placement, is_simulation: bool, circumstances: Circumstances
) -> tuple[str, ...]:
    """Write every warning that holds, the gravest first.

    Parameters
    ----------
    spent
        What the run costs.
    unit, placement
        What was agreed.
    is_simulation
        Whether the noise came from a seed.
    circumstances
        What else is known of the run.
    """
    warnings = []
    if circumstances.flaw:
        warnings.append(f"The guarantee as published does not hold. {circumstances.flaw}")
    if is_simulation:
        warnings.append("The noise came from a seed: whoever knows it can take the noise away. Run without a seed.")
    if spent.epsilon > EPSILON_WEAK:
        warnings.append(
            f"This promises practically nothing: epsilon = {_format_epsilon(spent.epsilon)} is above "
            f"{EPSILON_WEAK:g}. Choose a smaller epsilon; about 1 is usual."
        )
    warnings.extend(_warn_of_declared_records(spent, unit, circumstances.declared_records))
    warnings.extend(_warn_of_delta(spent, circumstances))
    warnings.extend(_warn_of_noise(circumstances))
    if circumstances.parties_in_sum == 2:
        warnings.append(
            "Two parties: each can subtract its own part from the released sums and is left with the other's part "
            "and the noise. The noise hides one record there too, but it shows what one party's records are like as "
            "well as the noise allows. With three or more parties only sums of several are left."
        )
    warnings.append(placement.describe_missing(circumstances.shares_missing))
    return tuple(filter(None, warnings))


def _warn_of_declared_records(spent: Spent, unit: Unit, declared: int | None) -> Iterator[str]:
    """A number taken from the records tells neighbours apart, unless a unit is replaced: two steps, and rho is 4-fold.

    Replacing is removing and adding. The contributions of both together have at most twice the norm of one, and rho
    goes with its square (docs/proofs/synopsis.md, "The number of records"); pure epsilons double.
    """
    if declared is None:
        return
    epsilon = 2 * spent.epsilon
    if spent.delta > 0 and spent.rho is not None:
        epsilon = epsilon_of_rho(4 * spent.rho, spent.delta)
    whole = "one record" if unit is Unit.RECORD else "one party's table"
    yield (
        f"The job declares the number of records, {declared:,}. If that number was computed from the records, "
        f"neighbours are {whole} replaced by another, not added or removed, and epsilon is up to "
        f"{_format_epsilon(epsilon)} at delta = {spent.delta:.3g}. Declare it only where it is public anyway."
    )


def _warn_of_delta(spent: Spent, circumstances: Circumstances) -> Iterator[str]:
    """A delta above 1 / units allows to publish a unit at random."""
    records, parties = circumstances.estimated_records, circumstances.parties
    if records is not None and spent.delta * max(records, 1.0) > 1:
        yield (
            f"delta = {spent.delta:.3g} is larger than 1 / {max(records, 1.0):,.0f}, about the number of records: a "
            "mechanism that publishes one record at random would pass. Choose a smaller delta."
        )
    if parties is not None and spent.delta * parties > 1:
        yield (
            f"delta = {spent.delta:.3g} is larger than 1 / {parties:,}, the number of parties: a mechanism that "
            "publishes one party's table at random would pass. Choose a smaller delta."
        )


def _warn_of_noise(circumstances: Circumstances) -> Iterator[str]:
    """Centres that noise moves by an eighth of the range or more say little about the records."""
    moved, records, deviation = circumstances.centre_noise, circumstances.estimated_records, circumstances.records_noise
    if records is not None and deviation is not None and records < _SEEN * deviation:
        yield (
            "These centres are mostly noise: the number of records that was released, "
            f"{max(records, 0.0):,.0f}, is lost in its own noise, ±{deviation:,.0f}. {circumstances.remedy}"
        )
        return
    if moved is None or moved <= _MOSTLY_NOISE:
        return
    far = f"about {moved:.2g}, where a column runs from -1 to 1"
    if moved > _WHOLE_RANGE:
        far = "more than the whole range of a column"
    yield (
        "These centres are mostly noise: in a round it moves a coordinate of a centre of average size by "
        f"{far}. {circumstances.remedy}"
    )


def _format_epsilon(epsilon: float) -> str:
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"
