"""A search is priced before its first fit, refused with nothing spent, and pays for the scores of held-out records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.cluster import KMeans as Lloyd
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cloister import Account, Budget, KMeans, RecordFolds, search
from cloister.errors import BudgetError, ConfigError, DataError, LedgerError
from cloister.estimators import folds, grid_search
from cloister.privacy.accounting import Accountant
from cloister.privacy.calibration import rho_for
from tests.estimators.tables import BOUNDS, draw_table

BUDGET = Budget(epsilon=1.0, delta=1e-6)
GRID = {"n_clusters": [2, 3]}


@pytest.fixture
def account(tmp_path):
    account = Account(tmp_path / "own.ledger", "patients")
    account.set_cap(BUDGET, reason="a test")
    return account


def grid(**options):
    return GridSearchCV(KMeans(bounds=BOUNDS), GRID, **{"cv": 3} | options)


def count_fits(monkeypatch):
    fits = []
    fit = KMeans.fit

    def count(self, *arguments, **options):
        fits.append(self.n_clusters)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(KMeans, "fit", count)
    return fits


@pytest.mark.parametrize("processes", [1, 2])
def test_a_search_costs_its_budget_and_finds_the_clusters(account, processes):
    asked = grid(n_jobs=processes)
    fitted = search(asked, draw_table(), account, BUDGET)
    assert fitted.best_params_ == {"n_clusters": 3}
    spent = account.summarise()
    assert spent.held == 0
    assert 0.9999 < spent.epsilon <= 1.0
    assert spent.charges == 2 * 3 + 1
    assert not [name for name in fitted.cv_results_ if "time" in name]
    assert fitted.best_estimator_.account is account
    assert asked.estimator.account is None
    assert not hasattr(asked, "best_estimator_")


def test_each_part_has_an_equal_share_and_all_of_them_fit():
    plan = grid_search._Plan.make(grid(), 3, ["x0", "x1"], BUDGET, None)
    spent = Accountant(BUDGET).would_spend(plan.releases)
    assert spent.epsilon <= BUDGET.epsilon
    assert len(plan.releases) == 2 * 2 + 2 + 1  # fits but one of each candidate, a score of each, the refit
    costs = [Accountant(BUDGET).would_spend([release]).rho for release in plan.releases]
    assert costs == pytest.approx([rho_for(BUDGET) / 7] * 7, rel=1e-5)


def test_a_refused_search_fits_nothing_and_spends_nothing(account, monkeypatch):
    KMeans(2, epsilon=0.3, bounds=BOUNDS, account=account).fit(draw_table())
    before, fits = account.summarise(), count_fits(monkeypatch)
    with pytest.raises(BudgetError, match=r"spent 0\.3"):
        search(grid(), draw_table(), account, BUDGET)
    assert account.summarise() == before
    assert fits == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (grid(cv=KFold(3)), "other splitters go by position"),
        (grid(cv=KFold(3, shuffle=True, random_state=0)), "other splitters go by position"),
        (grid(scoring="neg_mean_squared_error"), "scores are paid releases"),
        (grid(scoring=lambda estimator, X, y: estimator.score(X)), "scores are paid releases"),
        (grid(return_train_score=True), "scores are paid releases"),
        (grid(refit=False), "refit must be True"),
        (GridSearchCV(KMeans(bounds=BOUNDS), {"epsilon": [1, 2]}), "must not be over epsilon"),
        (GridSearchCV(KMeans(bounds=BOUNDS, private=False), GRID), "over private fits"),
        (GridSearchCV(Lloyd(), GRID), "over a cloister.KMeans itself; *|over a cloister.KMeans itself"),
        (GridSearchCV(make_pipeline(StandardScaler(), KMeans(bounds=BOUNDS)), GRID), "read the records unpaid"),
        (RandomizedSearchCV(KMeans(bounds=BOUNDS), GRID), "must be a GridSearchCV"),
        (GridSearchCV(KMeans(bounds="auto"), GRID), "bounds must be pairs"),
    ],
)
def test_what_cannot_be_priced_is_refused_with_nothing_spent(account, asked, message):
    with pytest.raises(ConfigError, match=message):
        search(asked, draw_table(), account, BUDGET)
    assert (account.summarise().charges, account.summarise().held) == (0, 0)


class ByPosition(RecordFolds):
    def split(self, X, y=None, groups=None):
        yield from KFold(self.n_splits).split(X)


def test_a_splitter_that_only_looks_like_ours_is_refused(account):
    with pytest.raises(ConfigError, match="other splitters go by position"):
        search(grid(cv=ByPosition(3)), draw_table(), account, BUDGET)


def test_what_is_no_account_is_refused():
    with pytest.raises(ConfigError, match=r"must be a cloister\.Account; got str"):
        search(grid(), draw_table(), "own.ledger", BUDGET)


def test_a_search_protects_records_and_no_other_unit(account):
    with pytest.raises(ConfigError, match="for one record; got one client"):
        search(grid(), draw_table(), account, Budget(epsilon=1.0, delta=1e-6, unit="client"))


def test_numbers_of_clusters_may_be_numpys(account):
    asked = GridSearchCV(KMeans(bounds=BOUNDS), {"n_clusters": np.arange(2, 4)}, cv=RecordFolds(2))
    assert search(asked, draw_table(), account, BUDGET).best_params_ == {"n_clusters": 3}


def test_a_table_that_no_fit_takes_costs_nothing(account):
    with pytest.raises((ValueError, DataError)):
        search(grid(), [[1.0, np.nan]], account, BUDGET)
    assert (account.summarise().charges, account.summarise().held) == (0, 0)


def test_nobody_else_can_spend_the_price_while_the_search_runs(account, monkeypatch):
    fit, refused = KMeans.fit, []

    def interrupt(self, *arguments, **options):
        monkeypatch.setattr(KMeans, "fit", fit)
        with pytest.raises(BudgetError) as error:
            KMeans(2, epsilon=0.1, bounds=BOUNDS, account=account).fit(draw_table())
        refused.append(error)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(KMeans, "fit", interrupt)
    search(grid(), draw_table(), account, BUDGET)
    assert refused
    assert account.summarise().charges == 7


def test_a_search_that_fails_half_way_stays_spent_and_raises(account, monkeypatch):
    fit = KMeans.fit

    def fail(self, *arguments, **options):
        if self.n_clusters == 3:
            raise RuntimeError("a test")
        return fit(self, *arguments, **options)

    monkeypatch.setattr(KMeans, "fit", fail)
    with pytest.raises(RuntimeError, match="a test"):  # and not a score that is not a number
        search(grid(error_score=np.nan), draw_table(), account, BUDGET)
    assert account.summarise().held == 1
    assert account.summarise().epsilon > 0.9999


def test_nothing_runs_at_a_searchs_expense_after_its_end(account):
    fitted = search(grid(), draw_table(), account, BUDGET)
    with pytest.raises(LedgerError, match="it is over"):
        fitted.score(draw_table())
    held = fitted.scorer_.paid
    with pytest.raises(LedgerError, match="it is over"):
        KMeans(3, bounds=BOUNDS, account=held).fit(draw_table())
    with pytest.raises(BudgetError):
        fitted.best_estimator_.fit(draw_table())


# --- scores


class Kept:
    def __init__(self):
        self.charged = []

    def charge(self, release):
        self.charged.append(release)


def make_score(kept):
    plan = grid_search._Plan.make(grid(), 3, ["x0", "x1"], BUDGET, None)
    return grid_search.PaidScore(kept, plan.score, plan.radius)


def test_a_score_is_charged_and_noisy():
    kept, table = Kept(), draw_table(300)
    estimator = KMeans(3, bounds=BOUNDS).fit(table)
    score = make_score(kept)
    lost = np.minimum(estimator.transform(table).min(axis=1) ** 2 / score.radius**2, 1.0)
    off = np.array([score(estimator, table) + lost.sum() for _ in range(200)])
    assert kept.charged == [score.event] * 200
    noise = score.event.mechanism.sigma / 2**20
    assert stats.kstest(off / noise, "norm").pvalue > 1e-6
    assert noise == pytest.approx(1 / np.sqrt(2 * rho_for(BUDGET) / 7), rel=1e-4)


def test_a_record_adds_at_most_one_to_a_score(monkeypatch):
    """Whatever it is, and whatever the centres are: the exact sums of neighbours differ by 0 to 1."""
    monkeypatch.setattr(grid_search, "release", lambda exact, event, *, duty: exact)
    score, table = make_score(Kept()), draw_table(50)
    estimator = KMeans(3, bounds=BOUNDS).fit(table)
    for record in ([0.0, 0.0], [1e300, -1e300], [10.0, 5.0], [5.0, 4.0], [-1e9, 1e9]):
        step = score(estimator, table) - score(estimator, np.vstack([table, record]))
        assert -1e-9 <= step <= 1 + 1e-9


# --- folds


def test_every_record_is_held_out_once():
    parts = list(RecordFolds(4).split(np.zeros((1000, 2))))
    assert np.array_equal(np.sort(np.concatenate([held_out for _, held_out in parts])), np.arange(1000))
    assert all(not set(kept) & set(held_out) and len(kept) + len(held_out) == 1000 for kept, held_out in parts)


def test_folds_are_coins_and_not_positions():
    """Sizes scatter as coins do, and no two draws are equal: a splitter by position has fixed sizes or a seed."""
    sizes = np.array([np.bincount(folds.toss_folds(900, 3), minlength=3) for _ in range(300)])
    chi_squared = ((sizes - 300.0) ** 2 / 300.0).sum()
    assert 1e-6 < stats.chi2.sf(chi_squared, df=2 * 300) < 1 - 1e-6
    first, second = (folds.toss_folds(900, 3) for _ in range(2))
    assert 0.2 < (first == second).mean() < 0.5
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.25


def test_removing_a_record_moves_nobody(monkeypatch):
    monkeypatch.setattr(folds, "SystemEntropy", FixedEntropy)
    assert np.array_equal(folds.toss_folds(999, 3), folds.toss_folds(1000, 3)[:-1])


class FixedEntropy:
    def bytes(self, count):
        return bytes(range(count))


@pytest.mark.parametrize("n_splits", [1, 0, 2.5, True, None])
def test_the_number_of_folds_must_be_two_or_more(n_splits):
    with pytest.raises(ConfigError, match="n_splits must be an integer of at least 2"):
        RecordFolds(n_splits)


def test_a_seed_and_groups_are_refused():
    with pytest.raises(TypeError):
        RecordFolds(3, random_state=0)
    with pytest.raises(ConfigError, match="groups must be left out"):
        list(RecordFolds(3).split(np.zeros((10, 1)), groups=np.zeros(10)))
