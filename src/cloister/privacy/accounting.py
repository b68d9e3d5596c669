"""The accountant: adds up what the releases of a job cost, and refuses before they cost too much.

It reads releases, never the parameters that were asked for. A charge is taken as long as one of two rules keeps the
total within the budget (`composition`): both hold when later releases, their noise and their number are chosen after
looking at earlier ones, and so does the "or" (docs/proofs/accounting.md). A plan that is fixed before the first release
can be handed over instead; then tighter rules apply as well.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NoReturn

from cloister.errors import BudgetError, LocalProtocolError
from cloister.privacy.composition import Spent, Total, check_pure, compose_plan
from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Budget

__all__ = ["Accountant", "Spent"]


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
    ``cloister.privacy.zcdp``; with a plan, those of `compose_plan`.

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
        """Turn running sums into a guarantee."""
        if self._planned is not None:
            return compose_plan(releases, self.budget.delta)
        return total.describe(releases, self.budget.delta)

    def _check_plan(self, plan: tuple[Release, ...]) -> tuple[Release, ...]:
        """Refuse a plan that does not fit the budget."""
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
        """Say why a release is refused, with spent, asked and cap."""
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
