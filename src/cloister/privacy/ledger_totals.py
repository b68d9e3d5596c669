"""What charges on one data set cost together, across jobs, sessions and years.

The rule, stated once; it is the accountant's (docs/proofs/accounting.md), over entries instead of releases:

- Costs add: rho in zCDP, and epsilon in pure differential privacy. A pure release has both and counts in both sums.
- At a given delta the total is the smaller of two: the summed epsilons, if every release was pure; the summed rho,
  converted once (Canonne, Kamath and Steinke 2020, Cor. 13). With delta = 0 only the former exists.
- It holds although each job may be chosen after seeing the results of those before it: what would pass the cap is
  refused before its noise is drawn, which makes the cap a privacy filter (Whitehouse, Ramdas, Rogers and Wu 2023,
  Thm 1).
- A charge for one unit counts under a cap for another. Client charge, record cap: twice the epsilon, four times the
  rho, for a record goes by removing its client and adding the client back without it (group privacy for two: Bun and
  Steinke 2016, Prop. 1.9). Record charge, client cap: no bound is known, so it counts as infinite.

Sums are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cloister.errors import BudgetError
from cloister.privacy.ledger_entries import Cap, Charge, Entry
from cloister.privacy.units import Budget, Unit
from cloister.privacy.zcdp import epsilon_of_rho, rho_of_epsilon


@dataclass(frozen=True, kw_only=True)
class Total:
    """A sum of costs for one unit: rho, and the pure epsilon, which is infinite once a release has none."""

    rho: float = 0.0
    pure_epsilon: float = 0.0

    def plus(self, other: Total) -> Total:
        """Add, rounding up."""
        return Total(
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
        """Whether the total is within a budget, by the accountant's rule."""
        if self.pure_epsilon <= budget.epsilon:
            return True
        return budget.delta > 0 and self.rho <= rho_of_epsilon(budget.epsilon, budget.delta)


def cost_of(charge: Charge, unit: Unit) -> Total:
    """Return what a charge costs one ``unit``, by the module's rule."""
    epsilon = math.inf if charge.epsilon is None else charge.epsilon
    if charge.unit is unit:
        return Total(rho=charge.rho, pure_epsilon=epsilon)
    if unit is Unit.RECORD:
        return Total(rho=4 * charge.rho, pure_epsilon=2 * epsilon)
    return Total(rho=math.inf, pure_epsilon=math.inf)


@dataclass(kw_only=True)
class Account:
    """All that happened to one data set so far."""

    totals: dict[Unit, Total] = field(default_factory=lambda: {unit: Total() for unit in Unit})
    sessions: dict[tuple[str, Unit], Total] = field(default_factory=dict)
    cap: Cap | None = None
    charges: int = 0
    jobs: dict[str, None] = field(default_factory=dict)  # ordered, each name once
    first: str | None = None
    last: str | None = None
    only_client_charges: bool = True

    def record(self, entry: Entry) -> None:
        """Add one entry."""
        if isinstance(entry, Cap):
            self.cap = entry
            return
        for unit in Unit:
            self.totals[unit] = self.totals[unit].plus(cost_of(entry, unit))
        session = (entry.session, entry.unit)
        self.sessions[session] = self.sessions.get(session, Total()).plus(cost_of(entry, entry.unit))
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


def check_cap(account: Account, charges: Sequence[Charge], cap: Budget) -> None:
    """Raise with spent, asked and cap if one more lot of charges does not fit."""
    spent = together = account.totals[cap.unit]
    asked = Total()
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


def _add_upwards(a: float, b: float) -> float:
    """Return a + b, or the next double if that is too small."""
    total = a + b
    if math.isinf(total) or math.fsum((a, b, -total)) <= 0:
        return total
    return math.nextafter(total, math.inf)
