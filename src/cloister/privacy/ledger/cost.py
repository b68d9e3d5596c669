"""What charges cost together, across jobs, sessions and years, and what a charge for one unit costs another.

The rule, stated once, is the accountant's (docs/proofs/accounting.md), over charges instead of releases:

- Costs add: rho in zCDP, and epsilon in pure differential privacy. A pure release has both and counts in both sums.
- At a given delta the total is the smaller of two: the summed epsilons, if every release was pure; the summed rho,
  converted once (Canonne, Kamath and Steinke 2020, Cor. 13). With delta = 0 only the former exists.
- It holds even if each job is chosen after seeing the results of those before it: what would pass the cap is refused
  before its noise is drawn, which makes the cap a privacy filter (Whitehouse, Ramdas, Rogers and Wu 2023, Thm 1).
- mu^2, of the Gaussian shift that dominates, adds, too, as long as every release has one. It is kept for tighter
  accounting: no cap is decided by it, for that needs a proof for charges that are chosen one after the other.
- A charge for one unit counts under a cap for another. A record lies within a person, a person within a client. Under a
  cap for something smaller a charge costs twice the epsilon and four times rho and mu^2, for the smaller is removed by
  removing the larger and adding it back without it (group privacy for two: Bun and Steinke 2016, Prop. 1.9). Under a
  cap for something larger no bound is known, so it counts as infinite.

Sums are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TypedDict

from cloister.privacy.costs import epsilon_of_rho, pure_epsilon_of, rho_of, rho_of_epsilon
from cloister.privacy.mechanisms import Release
from cloister.privacy.privacy_loss import gaussian_cost_of
from cloister.privacy.units import Budget, Unit

_SMALLEST_FIRST = (Unit.RECORD, Unit.PERSON, Unit.CLIENT)


class WrittenCost(TypedDict):
    """A cost as it is written down: None is a part that does not hold."""

    rho: float
    epsilon: float | None
    mu_squared: float | None
    ripple: float | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What charges cost one unit; a part that does not hold for all of them is infinite.

    Parameters
    ----------
    rho
        In zCDP.
    pure_epsilon
        In pure differential privacy.
    mu_squared, ripple
        Of the Gaussian shift that dominates (`cloister.privacy.privacy_loss.GaussianCost`).
    """

    rho: float = 0.0
    pure_epsilon: float = 0.0
    mu_squared: float = 0.0
    ripple: float = 0.0

    @classmethod
    def of(cls, release: Release) -> Cost:
        """Return the cost of one release."""
        shift = gaussian_cost_of([release])
        if shift is None or not math.isfinite(shift.mu_squared + shift.ripple):
            return cls.read(rho_of(release), pure_epsilon_of(release), None, None)
        return cls.read(rho_of(release), pure_epsilon_of(release), shift.mu_squared, shift.ripple)

    @classmethod
    def read(cls, rho: float, epsilon: float | None, mu_squared: float | None, ripple: float | None) -> Cost:
        """Return a cost that was written down."""
        return cls(
            rho=rho,
            pure_epsilon=math.inf if epsilon is None else epsilon,
            mu_squared=math.inf if mu_squared is None or ripple is None else mu_squared,
            ripple=math.inf if mu_squared is None or ripple is None else ripple,
        )

    def fields(self) -> WrittenCost:
        """Return a cost as it is written down."""
        return WrittenCost(
            rho=self.rho,
            epsilon=_or_none(self.pure_epsilon),
            mu_squared=_or_none(self.mu_squared),
            ripple=_or_none(self.ripple),
        )

    @property
    def is_finite(self) -> bool:
        """Whether a bound holds at some delta."""
        return math.isfinite(self.rho)

    def plus(self, other: Cost) -> Cost:
        """Add, rounding up."""
        return Cost(**{part.name: _add_upwards(getattr(self, part.name), getattr(other, part.name)) for part in _PARTS})

    def is_within(self, other: Cost) -> bool:
        """Whether no part is more than the other's."""
        return all(getattr(self, part.name) <= getattr(other, part.name) for part in _PARTS)

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

    def count_for(self, own: Unit, unit: Unit) -> Cost:
        """Return what a cost for one ``own`` unit is for one ``unit``, by the module's rule."""
        if own is unit:
            return self
        if _SMALLEST_FIRST.index(unit) < _SMALLEST_FIRST.index(own):
            return Cost(
                rho=4 * self.rho,
                pure_epsilon=2 * self.pure_epsilon,
                mu_squared=4 * self.mu_squared,
                ripple=2 * self.ripple,
            )
        return UNBOUNDED


_PARTS = fields(Cost)
UNBOUNDED = Cost(rho=math.inf, pure_epsilon=math.inf, mu_squared=math.inf, ripple=math.inf)


def _or_none(part: float) -> float | None:
    return part if math.isfinite(part) else None


def _add_upwards(a: float, b: float) -> float:
    """Return a + b, or the next double if that is too small."""
    total = a + b
    if b == 0 or math.isinf(total) or math.fsum((a, b, -total)) <= 0:
        return total
    return math.nextafter(total, math.inf)
