"""A whole grid search as one purchase: priced before its first fit, and refused with nothing spent.

A record is in all training tables of a candidate but one, in one held-out part, and in the refit. So a search of C
candidates over F folds costs it C (F - 1) fits, C scores and one refit, whatever the number of fits that are run.
Each gets an equal part of the budget. The price is held in the ledger before anything is read, so no other job can
spend it in between, and it is settled at the end. docs/proofs/search.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

from cloister.crypto import SystemEntropy
from cloister.errors import BudgetError, ConfigError, LedgerError
from cloister.estimators.account import Account
from cloister.estimators.base import make_budget, name_columns, open_sides
from cloister.estimators.bounds import make_columns
from cloister.estimators.folds import RecordFolds
from cloister.estimators.kmeans import KMeans
from cloister.job import Budget, OwnSide
from cloister.privacy.accounting import Accountant
from cloister.privacy.calibration import SLACK, rho_for
from cloister.privacy.costs import epsilon_of_rho
from cloister.privacy.ledger import LedgerSession
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.release import NoiseDuty, release
from cloister.privacy.samplers import ExactSampler
from cloister.privacy.units import Sensitivity, Unit
from cloister.protocol import PublicInput, find_protocol, placeholder_directory

_LESS = 1 - 1e-6  # of an equal part: ten tenths are more than one in doubles
_WHOLE = 2**20
"""What a record adds to a score at most, in the integer units of the noise."""
_RADIUS = 0.5  # of a column's half range, for each column: a distance that counts in full
_PARTS = ("epsilon", "delta", "account", "private", "random_state")


def search(
    estimator: GridSearchCV, X: Any, account: Account, budget: Budget, *, radius: float | None = None
) -> GridSearchCV:
    """Run a grid search that costs what is said, or is refused with nothing spent.

    Parameters
    ----------
    estimator
        A `GridSearchCV` of a `KMeans`; it is not changed. ``cv`` is left out, a number of folds, or `RecordFolds`;
        ``scoring`` is left out. What the estimator says of epsilon, delta and account does not count.
    X
        The table.
    account
        What the search is charged to.
    budget
        What all its fits and scores may cost together.
    radius
        Public: the distance from its centre at which a held-out record counts in full, where a column runs from -1 to
        1; by default half of sqrt(d). A score is minus the sum of min(distance^2 / radius^2, 1), with noise.

    Returns
    -------
    GridSearchCV
        Fitted. ``cv_results_`` has no times, which are exact; ``best_estimator_`` is charged to the account if it is
        fitted again.

    Raises
    ------
    BudgetError
        If the search does not fit what is left in the account. Nothing was fitted or spent.
    ConfigError
        If the search is not one that can be priced.

    Privacy
    -------
    Neighbours: one record added or removed. Sensitivity: each fit's as in docs/proofs/synopsis.md; a score's is
    `_WHOLE`. Event: all fits and scores that the record is in. Theorem: docs/proofs/search.md, claim 2.
    """
    _check_search(estimator)
    open_sides({"the search": account})
    if budget.unit is not Unit.RECORD:
        raise ConfigError(f"the budget of a search must be for one record; got one {budget.unit.value}.")
    folds = estimator.cv if isinstance(estimator.cv, RecordFolds) else RecordFolds(estimator.cv or 5)
    plan = _Plan.make(estimator, folds.n_splits, _check_table(estimator.estimator, X), budget, radius)
    session = LedgerSession(
        account.open(),
        dataset=account.dataset,
        job="search",
        session=SystemEntropy().bytes(16),
        budget=budget,
    )
    with session.ledger:
        what = f"a search: {plan.candidates} candidates, {plan.folds} folds"
        held = session.hold(plan.releases, what=what)  # before the first fit, or never
        paid = Held(account, held)
        fitted = clone(estimator).set_params(
            estimator=clone(estimator.estimator).set_params(
                epsilon=plan.part.epsilon, delta=budget.delta, account=paid
            ),
            cv=folds,
            scoring=PaidScore(paid, plan.score, plan.radius),
            error_score="raise",
        )
        fitted.fit(X)
        plan.check_run(fitted)
        session.settle(held, plan.releases)
    fitted.best_estimator_.set_params(account=account)
    fitted.cv_results_ = {name: kept for name, kept in fitted.cv_results_.items() if not name.endswith("_time")}
    fitted.refit_time_ = float("nan")
    return fitted


class Held:
    """What a search's fits are charged to: its hold, which has paid for them, as long as it is open.

    Parameters
    ----------
    account, hold
        Whose, and the hold's number in the ledger.
    """

    def __init__(self, account: Account, hold: int) -> None:
        self._account, self._hold = account, hold

    def __sklearn_clone__(self) -> Held:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Held:
        return self

    def open_side(self) -> OwnSide:
        """Return that a fit charges no ledger: the hold has paid."""
        self.check()
        return OwnSide()

    def charge(self, release: Release) -> None:
        """Let a release that the hold has paid for pass."""
        self.check()

    def check(self) -> None:
        """Refuse to go on once the hold is settled."""
        with self._account.open() as ledger:
            if not ledger.is_held(self._account.dataset, self._hold):
                raise LedgerError(
                    "fits and scores of a search must run while it lasts; it is over, and its price is settled. "
                    "Set the estimator's account, or use its own score."
                )


@dataclass(frozen=True, eq=False)
class PaidScore:
    """The score of held-out records as a release, for a search.

    Parameters
    ----------
    paid
        The search's hold.
    event
        What one score costs.
    radius
        From here on a record counts in full.
    """

    paid: Held
    event: Release
    radius: float

    def __call__(self, estimator: KMeans, X: Any, y: object = None) -> float:
        """Return minus the noisy sum of min(distance^2 / radius^2, 1).

        Privacy
        -------
        Neighbours: one record added or removed. Sensitivity: a record adds an integer from 0 to `_WHOLE`. Event:
        ``event``, a discrete Gaussian. The hold is asked before the noise is drawn.
        """
        lost = np.minimum(estimator._measure(estimator._read(X)).min(axis=1) / self.radius**2, 1.0)
        exact = np.array([np.floor(lost * _WHOLE).astype(np.int64).sum()])
        noisy = release(exact, self.event, duty=NoiseDuty(charger=self.paid, sampler=ExactSampler()))
        return -float(noisy[0]) / _WHOLE


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What a search costs: all that one record takes part in."""

    candidates: int
    folds: int
    part: Budget
    score: Release
    radius: float
    releases: tuple[Release, ...]

    @classmethod
    def make(cls, search: GridSearchCV, folds: int, names: list[str], budget: Budget, radius: float | None) -> _Plan:
        """Price a search from its grid and its folds; no record is read."""
        candidates = list(ParameterGrid(search.param_grid))
        parts = len(candidates) * folds + 1
        rho = rho_for(budget) / parts * _LESS
        part = Budget(epsilon=epsilon_of_rho(rho, budget.delta), delta=budget.delta, unit=budget.unit)
        score = Release(
            name="score of held-out records",
            mechanism=DiscreteGaussian(sigma=_WHOLE / sqrt(2 * rho) * SLACK),
            sensitivity=Sensitivity(l1=_WHOLE, l2_squared=_WHOLE**2),
            entries=1,
        )
        fits = [list(_price_fit(search.estimator, candidate, names, part)) for candidate in candidates]
        releases = [
            *(release for fit in fits for release in fit * (folds - 1)),
            *[score] * len(candidates),
            *max(fits, key=lambda fit: Accountant(budget).would_spend(fit).epsilon),
        ]
        if Accountant(budget).would_spend(releases).epsilon > budget.epsilon:
            raise BudgetError("a search must fit its own budget; this one does not: this is a bug. Nothing was spent.")
        chosen = _RADIUS * sqrt(len(names)) if radius is None else radius
        if not (np.isfinite(chosen) and chosen > 0):
            raise ConfigError(f"radius must be a positive number; got {chosen}.")
        return cls(
            candidates=len(candidates),
            folds=folds,
            part=part,
            score=score,
            radius=chosen,
            releases=tuple(releases),
        )

    def check_run(self, fitted: GridSearchCV) -> None:
        """Refuse a search that ran more than was priced; its whole hold stays spent."""
        ran = len(fitted.cv_results_["params"]), fitted.n_splits_
        if ran != (self.candidates, self.folds):
            raise LedgerError(f"a search must run what was priced, {self.candidates} x {self.folds}; it ran {ran}.")


def _price_fit(estimator: KMeans, candidate: Mapping[str, Any], names: list[str], part: Budget) -> Iterator[Release]:
    """Yield what one fit of a candidate is charged before its first round."""
    made = clone(estimator).set_params(**candidate, epsilon=part.epsilon, delta=part.delta)
    job = made.make_job(make_columns(made.bounds, names))
    protocol = find_protocol(job)
    charges = protocol.charges(protocol.agree(job, placeholder_directory(job), PublicInput()))
    assert charges is not None  # a private fit has a budget
    assert make_budget(made) == charges.budget
    yield from charges.prepaid


def _check_table(estimator: KMeans, X: Any) -> list[str]:
    """Refuse a table that no fit would take, before anything is held; return its columns' names."""
    probe = clone(estimator)
    return name_columns(probe, probe._read_table(X, reset=True).shape[1])


def _check_search(search: Any) -> None:
    """Refuse what cannot be priced, or would release something unpaid."""
    if type(search) is not GridSearchCV:
        raise ConfigError(f"a search must be a GridSearchCV, whose candidates are known; got {type(search).__name__}.")
    if type(search.estimator) is not KMeans:
        raise ConfigError(
            "a search must be over a cloister.KMeans itself: other steps would read the records unpaid; "
            f"got {type(search.estimator).__name__}."
        )
    if not search.estimator.private:
        raise ConfigError("a search must be over private fits; got private=False. Use GridSearchCV.fit for a study.")
    grids = search.param_grid if isinstance(search.param_grid, list | tuple) else [search.param_grid]
    named = sorted({name for grid in grids for name in grid if name in _PARTS})
    if named:
        raise ConfigError(f"a search must not be over {named[0]}: it divides its own budget. Leave it out of the grid.")
    if search.scoring is not None or search.return_train_score:
        raise ConfigError(
            "scoring and return_train_score must be left out: scores are paid releases here, on held-out records."
        )
    if search.refit is not True:
        raise ConfigError(f"refit must be True; got {search.refit!r}. The price includes one refit.")
    if not (search.cv is None or isinstance(search.cv, int) or type(search.cv) is RecordFolds):
        raise ConfigError(
            "cv must be cloister.RecordFolds, a number of folds, or left out: other splitters go by position, so one "
            f"record that is removed moves others to other folds; got {type(search.cv).__name__}."
        )
