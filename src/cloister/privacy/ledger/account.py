"""What a ledger's entries say, and what the charges on one data set cost together, across jobs, sessions and years.

The rule, stated once, is the accountant's (docs/proofs/accounting.md), over charges instead of releases:

- Costs add: rho in zCDP, and epsilon in pure differential privacy. A pure release has both and counts in both sums.
- At a given delta the total is the smaller of two: the summed epsilons, if every release was pure; the summed rho,
  converted once (Canonne, Kamath and Steinke 2020, Cor. 13). With delta = 0 only the former exists.
- It holds even if each job is chosen after seeing the results of those before it: what would pass the cap is refused
  before its noise is drawn, which makes the cap a privacy filter (Whitehouse, Ramdas, Rogers and Wu 2023, Thm 1).
- A charge for one unit counts under a cap for another. Client charge, record cap: twice the epsilon and four times the
  rho, for a record is removed by removing its client and adding the client back without it (group privacy for two: Bun
  and Steinke 2016, Prop. 1.9). Record charge, client cap: no bound is known, so it counts as infinite.

Sums are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import msgspec

from cloister.errors import BudgetError
from cloister.privacy.costs import epsilon_of_rho, pure_epsilon_of, rho_of, rho_of_epsilon
from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Budget, Unit


class Charge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="charge"):
    """One release that was paid for, before it left.

    Parameters
    ----------
    time
        UTC, ISO 8601.
    data
        The data set's fingerprint.
    unit
        Whose presence the noise hides: the costs hold for neighbours that differ by one of these.
    job, session
        Who asked: the job's name, and the session in hexadecimal digits.
    release
        What was released, in plain words.
    mechanism, parameters
        The noise.
    sensitivity_l1, sensitivity_l2_squared, entries
        Of the released integer vector.
    rho
        Its zCDP cost.
    epsilon
        Its pure cost; None if it has none.
    """

    time: str
    data: str
    unit: Unit
    job: str
    session: str
    release: str
    mechanism: str
    parameters: dict[str, float]
    sensitivity_l1: int
    sensitivity_l2_squared: int
    entries: int
    rho: float
    epsilon: float | None


class Cap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="cap"):
    """From here on, all charges on a data set together may cost this much; the latest cap counts."""

    time: str
    data: str
    unit: Unit
    epsilon: float
    delta: float
    reason: str

    @property
    def budget(self) -> Budget:
        """The cap as a budget."""
        return Budget(epsilon=self.epsilon, delta=self.delta, unit=self.unit)


Entry = Charge | Cap


def make_charge(release: Release, *, time: str, data: str, unit: Unit, job: str, session: str) -> Charge:
    """Write down a release and what it costs, which must be finite."""
    rho = rho_of(release)
    if not math.isfinite(rho):
        raise BudgetError(
            f"a release must have a finite cost; got an infinite one for {release.name!r}. Use more noise."
        )
    return Charge(
        time=time,
        data=data,
        unit=unit,
        job=job,
        session=session,
        release=release.name,
        mechanism=type(release.mechanism).__name__,
        parameters=asdict(release.mechanism),
        sensitivity_l1=release.sensitivity.l1,
        sensitivity_l2_squared=release.sensitivity.l2_squared,
        entries=release.entries,
        rho=rho,
        epsilon=pure_epsilon_of(release),
    )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What charges cost one unit: rho, and the pure epsilon, which is infinite once a release has none."""

    rho: float = 0.0
    pure_epsilon: float = 0.0

    def plus(self, other: Cost) -> Cost:
        """Add, rounding up."""
        return Cost(
            rho=_add_upwards(self.rho, other.rho), pure_epsilon=_add_upwards(self.pure_epsilon, other.pure_epsilon)
        )

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at this delta; infinite where there is none.

        Privacy
        -------
        Neighbours: add/remove one unit. Sensitivity: as declared by each release. Event: all charges in the sum, seen
        together. Theorem: see the module.
        """
        converted = epsilon_of_rho(self.rho, delta) if delta > 0 else math.inf
        return min(self.pure_epsilon, converted)

    def fits(self, budget: Budget) -> bool:
        """Whether this is within a budget, by the accountant's rule."""
        if self.pure_epsilon <= budget.epsilon:
            return True
        return budget.delta > 0 and self.rho <= rho_of_epsilon(budget.epsilon, budget.delta)


def cost_of(charge: Charge, unit: Unit) -> Cost:
    """Return what a charge costs one ``unit``, by the module's rule."""
    epsilon = math.inf if charge.epsilon is None else charge.epsilon
    if charge.unit is unit:
        return Cost(rho=charge.rho, pure_epsilon=epsilon)
    if unit is Unit.RECORD:
        return Cost(rho=4 * charge.rho, pure_epsilon=2 * epsilon)
    return Cost(rho=math.inf, pure_epsilon=math.inf)


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """What one data set has paid.

    Parameters
    ----------
    fingerprint
        Which data set.
    unit, epsilon, delta
        Its charges together are (epsilon, delta)-DP for this unit; epsilon is infinite where no bound is known.
    rho
        The same in zCDP.
    cap
        The latest; None if there is none.
    charges, sessions, jobs
        How many releases and sessions, and the jobs' names.
    first, last
        When the first and the last charge were written, UTC; None without charges.
    """

    fingerprint: str
    unit: Unit
    epsilon: float
    delta: float
    rho: float
    cap: Budget | None
    charges: int
    sessions: int
    jobs: tuple[str, ...]
    first: str | None
    last: str | None


@dataclass(kw_only=True)
class Account:
    """All that happened to one data set so far."""

    totals: dict[Unit, Cost] = field(default_factory=lambda: {unit: Cost() for unit in Unit})
    sessions: dict[tuple[str, Unit], Cost] = field(default_factory=dict)
    cap: Cap | None = None
    charges: int = 0
    jobs: dict[str, None] = field(default_factory=dict)  # ordered, each name once
    first: str | None = None
    last: str | None = None
    only_client_charges: bool = True

    def record(self, entry: Entry) -> None:
        """Take one entry into account."""
        if isinstance(entry, Cap):
            self.cap = entry
            return
        for unit in Unit:
            self.totals[unit] = self.totals[unit].plus(cost_of(entry, unit))
        session = (entry.session, entry.unit)
        self.sessions[session] = self.sessions.get(session, Cost()).plus(cost_of(entry, entry.unit))
        self.charges += 1
        self.jobs[entry.job] = None
        self.first = self.first or entry.time
        self.last = entry.time
        self.only_client_charges &= entry.unit is Unit.CLIENT

    @property
    def unit(self) -> Unit:
        """The unit to state the total in: the cap's; without a cap, the coarsest that every charge protects."""
        if self.cap is not None:
            return self.cap.unit
        return Unit.CLIENT if self.charges and self.only_client_charges else Unit.RECORD

    def check_cap(self, charges: Sequence[Charge]) -> None:
        """Raise with spent, asked and cap if these charges do not fit what is left of the cap."""
        if self.cap is None:
            return
        cap = self.cap.budget
        spent = together = self.totals[cap.unit]
        asked = Cost()
        for charge in charges:
            cost = cost_of(charge, cap.unit)
            asked = asked.plus(cost)
            together = together.plus(cost)
        if together.fits(cap):
            return
        raise BudgetError(
            f"all releases on data set {charges[0].data[:16]} must cost at most epsilon = {cap.epsilon:.6g} at "
            f"delta = {cap.delta:.3g} for one {cap.unit.value}; spent {spent.epsilon(cap.delta):.6g}, asked "
            f"{asked.epsilon(cap.delta):.6g} for {len(charges)} more, together {together.epsilon(cap.delta):.6g}. "
            "Nothing was charged or released. Ask for less, or let the data's owner raise the cap."
        )

    def summarise(self, fingerprint: str, delta: float) -> DataSummary:
        """State the account at its cap's delta, or at ``delta`` where it has no cap."""
        cap = None if self.cap is None else self.cap.budget
        total = self.totals[self.unit]
        at_delta = delta if cap is None else cap.delta
        return DataSummary(
            fingerprint=fingerprint,
            unit=self.unit,
            epsilon=total.epsilon(at_delta),
            delta=at_delta,
            rho=total.rho,
            cap=cap,
            charges=self.charges,
            sessions=len({session for session, _ in self.sessions}),
            jobs=tuple(self.jobs),
            first=self.first,
            last=self.last,
        )


def _add_upwards(a: float, b: float) -> float:
    """Return a + b, or the next double if that is too small."""
    total = a + b
    if math.isinf(total) or math.fsum((a, b, -total)) <= 0:
        return total
    return math.nextafter(total, math.inf)
