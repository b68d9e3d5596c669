"""The accountant: adds up what the releases of a job cost, and refuses before they cost too much.

It reads releases, never the parameters that were asked for. Two rules hold for releases that are chosen one after the
other, looking at what came out: pure epsilons add; rhos add and are converted once (`Total`). A charge is taken as long
as one of the two keeps the total within the budget. For a list that is fixed before the first release (`compose_plan`)
two more hold: the exact Gaussian curve, and privacy loss distributions where Laplace and Gaussian noise meet. Proofs:
docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from cloister.errors import BudgetError, ConfigError, LocalProtocolError
from cloister.privacy.costs import epsilon_of_rho, pure_epsilon_of, rho_of, rho_of_epsilon, runs_of
from cloister.privacy.mechanisms import DiscreteLaplace, Release
from cloister.privacy.privacy_loss import epsilon_of_gaussian, epsilon_of_mixture, gaussian_cost_of
from cloister.privacy.units import Budget

BY_LOSS_DISTRIBUTIONS: Final = "privacy loss distributions of the whole plan"


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
            return replace(best, epsilon=mixed, delta=delta, how=BY_LOSS_DISTRIBUTIONS)
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


class Accountant:
    """Keeps the cost of one job within its budget. Safe to use from several threads.

    Parameters
    ----------
    budget
        What all releases together may cost. With ``delta = 0`` only pure releases (discrete Laplace) are accepted.
    plan
        All releases that may happen, if that is known beforehand. They are then checked at once, by `compose_plan`, and
        `charge` accepts them in this order (some may be left out) and nothing else.

    Raises
    ------
    BudgetError, ConfigError
        If the plan does not fit the budget.

    Privacy
    -------
    Neighbours: add or remove one ``budget.unit``; every release's sensitivity must be declared for that unit. Event:
    all charged releases together, seen by someone who knows none of their noise. Guarantee: however they are chosen,
    they are (``budget.epsilon``, ``budget.delta``)-DP. Theorems: pure composition (Dwork, McSherry, Nissim and Smith
    2006), zCDP composition (Bun and Steinke 2016, Lemma 1.7) with adaptively chosen rhos (Feldman and Zrnic 2021;
    Whitehouse, Ramdas, Rogers and Wu 2023; proved in docs/proofs/accounting.md), conversion as in
    ``cloister.privacy.costs``; with a plan, those of `compose_plan`.

    `spent` tells what the releases that ran cost. If *released values* decided when to stop, what is guaranteed is
    the budget: `spent` is then the cost of a run that was always going to make just these releases.
    """

    def __init__(self, budget: Budget, *, plan: Sequence[Release] | None = None) -> None:
        self.budget = budget
        self._lock = threading.Lock()
        self._releases: list[Release] = []
        self._total = Total()
        self._planned = None if plan is None else deque(self._check_plan(tuple(plan)))

    def __copy__(self) -> Accountant:
        return self  # one budget: a copy with books of its own would spend it twice

    def __deepcopy__(self, memo: dict[int, object]) -> Accountant:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Accountant cannot be pickled: another process would spend the budget again. Use a ledger.")

    def charge(self, release: Release) -> None:
        """Record a release.

        Raises
        ------
        BudgetError
            If all releases with this one would cost more than the budget; nothing is recorded.
        ConfigError
            If the budget has ``delta = 0`` and the release is not purely differentially private; nothing is recorded.
        LocalProtocolError
            If the mechanism is unknown, or the release is not in the rest of the plan; nothing is recorded.
        """
        with self._lock:
            total = self._total.plus(release)
            if self._planned is not None:
                self._advance(self._planned, release)
            elif not total.fits(self.budget):
                raise self._refusal(release, total)
            self._total = total
            self._releases.append(release)

    def spent(self) -> Spent:
        """Return what the charged releases cost together."""
        spent = self.would_spend(())
        # Every charge was within the budget; the last bits of a conversion must not say otherwise.
        return replace(spent, epsilon=min(spent.epsilon, self.budget.epsilon))

    def would_spend(self, releases: Iterable[Release]) -> Spent:
        """Return what `spent` would be if these were charged too, within the budget or not. Records nothing."""
        with self._lock:
            total, charged = self._total, tuple(self._releases)
        asked = tuple(releases)
        return self._describe(total.plus_all(asked), charged + asked)

    def _describe(self, total: Total, releases: tuple[Release, ...]) -> Spent:
        if self._planned is not None:
            return compose_plan(releases, self.budget.delta)
        return total.describe(releases, self.budget.delta)

    def _check_plan(self, plan: tuple[Release, ...]) -> tuple[Release, ...]:
        cost = compose_plan(plan, self.budget.delta)
        if self.budget.delta == 0:
            for release in plan:
                check_pure(release)
        if cost.epsilon > self.budget.epsilon:
            raise BudgetError(
                f"a plan must cost at most epsilon = {self.budget.epsilon:.6g} at delta = {self.budget.delta:.3g}; "
                f"spent 0, asked for {len(plan)} releases that cost {cost.epsilon:.6g} together ({cost.how}). "
                "Nothing was released. Use more noise or fewer releases, or agree on a larger budget."
            )
        return plan

    def _advance(self, planned: deque[Release], release: Release) -> None:
        """Move past a release in the plan; those before it will not happen any more."""
        try:
            place = planned.index(release)
        except ValueError:
            raise LocalProtocolError(
                f"a release must come from the plan, in its order; got {release.name!r}, which is not in the "
                f"{len(planned)} releases left. Nothing was released."
            ) from None
        for _ in range(place + 1):
            planned.popleft()

    def _refusal(self, release: Release, total: Total) -> BudgetError:
        budget = self.budget
        if budget.delta == 0:
            check_pure(release)
        spent = self._describe(self._total, tuple(self._releases))
        alone = self._describe(Total().plus(release), (release,))
        together = self._describe(total, (*spent.releases, release))
        return BudgetError(
            f"all releases must cost at most epsilon = {budget.epsilon:.6g} at delta = {budget.delta:.3g}; "
            f"spent {spent.epsilon:.6g} on {len(spent.releases)} releases, asked for {release.name!r}, which costs "
            f"{alone.epsilon:.6g} alone and makes {together.epsilon:.6g} in all. "
            "Nothing was released. Ask for less, or agree on a larger budget."
        )


def _add_up(total: float, cost: float, times: int) -> float:
    """Add and round up, so that a long sum is never below the truth."""
    if cost == 0:
        return total
    return math.nextafter(total + (cost if times == 1 else math.nextafter(cost * times, math.inf)), math.inf)
