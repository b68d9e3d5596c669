"""The account of one data set, or of all of them together: what its entries add up to, and what its cap leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cloister.errors import BudgetError, LedgerError
from cloister.privacy.ledger.cost import Cost
from cloister.privacy.ledger.entries import Cap, Charge, Hold, Note, Settle
from cloister.privacy.units import Budget, Unit


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """What one data set has paid, or all of them.

    Parameters
    ----------
    dataset
        Which one; None: all together.
    unit, epsilon, delta
        Its charges together are (epsilon, delta)-DP for this unit; epsilon is infinite where no bound is known.
    rho
        The same in zCDP.
    mu_squared
        Of the Gaussian shift that dominates all of them; None if one of them has none.
    cap
        The latest; None if there is none.
    charges, sessions, jobs
        How many releases and sessions, and the jobs' names.
    held
        How many holds are open; they count as spent.
    seeded
        How many runs were made with a seed: they are not private, and cost nothing here.
    first, last
        When the first and the last charge were written, UTC; None without charges.
    """

    dataset: str | None
    unit: Unit
    epsilon: float
    delta: float
    rho: float
    mu_squared: float | None
    cap: Budget | None
    charges: int
    sessions: int
    jobs: tuple[str, ...]
    held: int
    seeded: int
    first: str | None
    last: str | None


@dataclass(kw_only=True)
class Account:
    """All that happened to one data set so far; without a name, to all of them."""

    name: str | None
    cap: Cap | None = None
    open: dict[int, Hold] = field(default_factory=dict)  # by the number of the entry
    charges: int = 0
    seeded: int = 0
    jobs: dict[str, None] = field(default_factory=dict)  # ordered, each name once
    first: str | None = None
    last: str | None = None
    _sums: dict[Unit, Cost] = field(default_factory=dict)  # by the charges' own unit
    _sessions: dict[tuple[str, Unit], Cost] = field(default_factory=dict)

    def record(self, number: int, entry: Charge | Hold | Settle | Note) -> None:
        """Take one entry into account."""
        if isinstance(entry, Note):
            self.seeded += 1
            return
        if isinstance(entry, Settle):
            hold = self.open.pop(entry.hold, None)
            if hold is None or not entry.cost.is_within(hold.cost):
                raise LedgerError(f"ledger entry {number} must settle an open hold within its cost; it does not.")
            self._add(hold, entry.cost)
            self.charges += entry.releases
        elif isinstance(entry, Hold):
            self.open[number] = entry
            self.jobs[entry.job] = None
        else:
            self._add(entry, entry.cost)
            self.charges += 1
        self.first = self.first or entry.time
        self.last = entry.time

    def absorb(self, other: Account) -> None:
        """Take over all that another account holds: it was the same data set."""
        for unit, cost in other._sums.items():
            self._sums[unit] = self._sums.get(unit, Cost()).plus(cost)
        for session, cost in other._sessions.items():
            self._sessions[session] = self._sessions.get(session, Cost()).plus(cost)
        self.open |= other.open
        self.jobs |= other.jobs
        self.charges += other.charges
        self.seeded += other.seeded
        self.cap = self.cap or other.cap
        self.first = min(filter(None, (self.first, other.first)), default=None)
        self.last = max(filter(None, (self.last, other.last)), default=None)

    @property
    def unit(self) -> Unit:
        """The unit to state the total in: the cap's; without a cap, the coarsest that every charge protects."""
        if self.cap is not None:
            return self.cap.unit
        units = {*self._sums, *(hold.unit for hold in self.open.values())}
        return next((unit for unit in Unit if unit in units), Unit.RECORD)

    def total(self, unit: Unit) -> Cost:
        """Return what all charges and open holds cost one ``unit``."""
        total = Cost()
        for own, cost in self._sums.items():
            total = total.plus(cost.count_for(own, unit))
        for hold in self.open.values():
            total = total.plus(hold.cost.count_for(hold.unit, unit))
        return total

    def spent_by(self, session: str, unit: Unit) -> Cost:
        """Return what one session has paid or holds."""
        spent = self._sessions.get((session, unit), Cost())
        for hold in self.open.values():
            if (hold.session, hold.unit) == (session, unit):
                spent = spent.plus(hold.cost)
        return spent

    def check_cap(self, asked: Sequence[Charge | Hold]) -> None:
        """Raise with spent, asked and cap if this does not fit what is left of the cap."""
        if self.cap is None:
            return
        cap = self.cap.budget
        spent = self.total(cap.unit)
        more = together = Cost()
        together = spent
        for one in asked:
            cost = one.cost.count_for(one.unit, cap.unit)
            more, together = more.plus(cost), together.plus(cost)
        if together.fits(cap):
            return
        which = "all data sets of this ledger" if self.name is None else f"data set {self.name!r}"
        what_to_do = "Ask for less, or let the data's owner raise the cap."
        if math.isinf(more.epsilon(cap.delta)):
            what_to_do = (
                f"No bound holds for what was asked: under this cap a charge must protect one {cap.unit.value}, not "
                "less; at delta = 0 its noise must be Laplace. Run a job that does, or let the data's owner set "
                "another cap."
            )
        raise BudgetError(
            f"all releases on {which} must cost at most epsilon = {cap.epsilon:.6g} at delta = {cap.delta:.3g} "
            f"for one {cap.unit.value}; spent {spent.epsilon(cap.delta):.6g}, asked {more.epsilon(cap.delta):.6g} for "
            f"{len(asked)} more, together {together.epsilon(cap.delta):.6g}. "
            f"Nothing was charged or released. {what_to_do}"
        )

    def summarise(self, delta: float) -> DataSummary:
        """State the account at its cap's delta, or at ``delta`` where it has no cap."""
        cap = None if self.cap is None else self.cap.budget
        total = self.total(self.unit)
        at_delta = delta if cap is None else cap.delta
        sessions = {session for session, _ in self._sessions} | {hold.session for hold in self.open.values()}
        return DataSummary(
            dataset=self.name,
            unit=self.unit,
            epsilon=total.epsilon(at_delta),
            delta=at_delta,
            rho=total.rho,
            mu_squared=total.fields()["mu_squared"],
            cap=cap,
            charges=self.charges,
            sessions=len(sessions),
            jobs=tuple(self.jobs),
            held=len(self.open),
            seeded=self.seeded,
            first=self.first,
            last=self.last,
        )

    def _add(self, paid: Charge | Hold, cost: Cost) -> None:
        self._sums[paid.unit] = self._sums.get(paid.unit, Cost()).plus(cost)
        session = (paid.session, paid.unit)
        self._sessions[session] = self._sessions.get(session, Cost()).plus(cost)
        self.jobs[paid.job] = None
