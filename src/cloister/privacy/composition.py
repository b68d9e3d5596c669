"""What several releases cost together.

Two rules hold for releases that are chosen one after the other, looking at what came out: pure epsilons add; rhos add
and are converted once (`Total`). For a list that is fixed before the first release (`compose_plan`) two more hold: the
exact Gaussian curve, and privacy loss distributions where Laplace and Gaussian noise meet. Proofs:
docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cloister.errors import ConfigError
from cloister.privacy.costs import pure_epsilon_of, rho_of, runs_of
from cloister.privacy.gaussian_dp import epsilon_of_gaussian, gaussian_cost_of
from cloister.privacy.mechanisms import DiscreteLaplace, Release
from cloister.privacy.pld import epsilon_of_mixture
from cloister.privacy.units import Budget
from cloister.privacy.zcdp import epsilon_of_rho, rho_of_epsilon


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a list of releases costs together.

    Parameters
    ----------
    epsilon, delta
        The releases together are (epsilon, delta)-DP.
    how
        The composition that proves it, in words.
    releases
        In the order in which they were charged.
    rho
        Their cost in zCDP; None if one of them has none that is finite.
    """

    epsilon: float
    delta: float
    how: str
    releases: tuple[Release, ...]
    rho: float | None


@dataclass(frozen=True)
class Total:
    """Running sums, each rounded up: rho, and epsilon where every release is pure (infinite otherwise)."""

    rho: float = 0.0
    pure_epsilon: float = 0.0

    def plus(self, release: Release, times: int = 1) -> Total:
        """Return the sums with one more release, or several that cost the same."""
        pure = pure_epsilon_of(release)
        return Total(
            _add_up(self.rho, rho_of(release), times),
            math.inf if pure is None else _add_up(self.pure_epsilon, pure, times),
        )

    def plus_all(self, releases: Iterable[Release]) -> Total:
        """Return the sums with all of these."""
        total = self
        for release, times in runs_of(releases):
            total = total.plus(release, times)
        return total

    def fits(self, budget: Budget) -> bool:
        """Whether one of the two rules for adaptively chosen releases keeps this within the budget."""
        if self.pure_epsilon <= budget.epsilon:
            return True
        return budget.delta > 0 and self.rho <= rho_of_epsilon(budget.epsilon, budget.delta)

    def describe(self, releases: tuple[Release, ...], delta: float) -> Spent:
        """Return the better of the two guarantees that hold for adaptively chosen releases."""
        rho = self.rho if self.rho < math.inf else None
        converted = epsilon_of_rho(self.rho, delta) if delta > 0 else math.inf
        if self.pure_epsilon <= converted:
            how = "pure epsilons, added" if releases else "nothing was released"
            return Spent(epsilon=self.pure_epsilon, delta=0.0, how=how, releases=releases, rho=rho)
        how = "zCDP: rhos added, converted once"
        return Spent(epsilon=converted, delta=delta, how=how, releases=releases, rho=rho)


def compose_plan(releases: Sequence[Release], delta: float) -> Spent:
    """Return the least cost that is proved for a list of releases that was fixed in advance.

    Parameters
    ----------
    releases
        Their mechanisms and sensitivities must not depend on released values; what they are computed from may.
    delta
        At least 0, less than 1. With 0 only pure releases have a finite cost.

    Raises
    ------
    MissingExtraError
        If a release has Laplace noise, ``delta > 0``, and ``dp_accounting`` is not installed.

    Privacy
    -------
    Neighbours: add or remove one unit. Event: all releases together. The minimum of several valid bounds on
    one fixed list is valid: pure, zCDP (as `Accountant`), the Gaussian curve (`gaussian_cost_of`), privacy loss
    distributions (`epsilon_of_mixture`). The last two each need what their docstrings say and are left out otherwise.
    """
    listed = tuple(releases)
    best = Total().plus_all(listed).describe(listed, delta)
    if delta == 0 or best.epsilon == 0:
        return best
    gaussian = gaussian_cost_of(listed)
    if gaussian is not None:
        epsilon = epsilon_of_gaussian(gaussian, delta)
        if epsilon < best.epsilon:
            return replace(best, epsilon=epsilon, delta=delta, how="Gaussian curve of the whole plan")
        return best
    if any(isinstance(release.mechanism, DiscreteLaplace) for release in listed):
        mixed = epsilon_of_mixture(listed, delta, expected_epsilon=best.epsilon)
        if mixed is not None and mixed < best.epsilon:
            return replace(best, epsilon=mixed, delta=delta, how="privacy loss distributions of the whole plan")
    return best


def do_fit(budget: Budget, releases: Sequence[Release], *, fixed_plan: bool) -> bool:
    """Whether an `Accountant` with this budget would take all of these, given as its plan or one by one.

    Privacy
    -------
    As `Accountant`.
    """
    if fixed_plan:
        return compose_plan(releases, budget.delta).epsilon <= budget.epsilon
    return Total().plus_all(releases).fits(budget)


def check_pure(release: Release) -> None:
    """Refuse noise that no budget with delta = 0 can pay for."""
    if pure_epsilon_of(release) is None:
        raise ConfigError(
            "a budget with delta = 0 allows only pure releases (discrete Laplace noise); "
            f"got {type(release.mechanism).__name__} for {release.name!r}. Set delta, or use Laplace noise."
        )


def _add_up(total: float, cost: float, times: int) -> float:
    """Add and round up, so that a long sum is never below the truth."""
    if cost == 0:
        return total
    return math.nextafter(total + (cost if times == 1 else math.nextafter(cost * times, math.inf)), math.inf)
