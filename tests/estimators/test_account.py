"""Accounts do not lose count: whatever scikit-learn copies, pickles or sends to workers, it is one file by one name."""

from __future__ import annotations

import copy
import pickle
import shutil

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from cloister import Account, Budget, FederatedKMeans, KMeans
from cloister.errors import AbsentError, BudgetError, ConfigError, LedgerError
from cloister.privacy.ledger import Ledger, default_ledger
from tests.estimators.tables import BOUNDS, draw_table, pass_on


@pytest.fixture
def account(tmp_path):
    return Account(tmp_path / "own.ledger", "patients")


def test_copies_are_the_same_account(account):
    estimator = KMeans(3, bounds=BOUNDS, account=account)
    assert clone(estimator).account is account
    assert copy.deepcopy(estimator).account is account
    assert copy.copy(account) is account
    again = pass_on(account)
    assert again == account
    assert hash(again) == hash(account)
    assert again.path == account.path
    assert repr(account) == f"Account({str(account.path)!r}, 'patients')"


def test_every_fit_is_charged_before_it_releases(account):
    estimator = KMeans(3, epsilon=1.0, bounds=BOUNDS, account=account)
    for fits, fitted in enumerate((estimator, clone(estimator), pass_on(estimator)), start=1):
        fitted.fit(draw_table(1000 * fits))  # other records are the same data set by name
        assert account.summarise().charges == fits
    assert 1.5 < account.summarise().epsilon < 3.0


def test_a_cap_refuses_the_fit_that_would_pass_it(account):
    account.set_cap(Budget(epsilon=1.2, delta=1e-6), reason="a test")
    estimator = KMeans(3, bounds=BOUNDS, account=account).fit(draw_table())
    with pytest.raises(BudgetError, match="spent 1"):
        clone(estimator).fit(draw_table())
    assert account.summarise().charges == 1


def test_without_a_path_it_has_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    account = Account(None, "patients")
    KMeans(3, bounds=BOUNDS, account=account).fit(draw_table())
    assert account.path == default_ledger("patients")
    assert Account(None, "patients").summarise().charges == 1


def test_a_missing_file_is_never_made_anew(account, tmp_path):
    fitted = KMeans(3, bounds=BOUNDS, account=account).fit(draw_table())
    sent = pickle.dumps(fitted)
    shutil.move(account.path, tmp_path / "elsewhere")
    passed_on = pickle.loads(sent)  # noqa: S301
    assert len(passed_on.predict(draw_table(5))) == 5
    with pytest.raises(LedgerError):
        passed_on.fit(draw_table())
    assert not account.path.exists()


def test_another_ledger_in_its_place_is_refused(account):
    account.path.unlink()
    Ledger(account.path).close()
    with pytest.raises(LedgerError, match="the ledger that this account was made with; it is another"):
        KMeans(3, bounds=BOUNDS, account=account).fit(draw_table())


@pytest.mark.parametrize("processes", [1, 2])
def test_a_plain_grid_search_charges_every_fit(account, processes):
    search = GridSearchCV(
        KMeans(bounds=BOUNDS, account=account), {"n_clusters": [2, 3]}, cv=3, n_jobs=processes, error_score="raise"
    )
    search.fit(draw_table())
    assert account.summarise().charges == 2 * 3 + 1


@pytest.mark.parametrize("account", ["own.ledger", 3])
def test_what_is_no_account_is_refused(account):
    with pytest.raises(ConfigError, match=r"the account of owner must be a cloister\.Account; got"):
        KMeans(3, bounds=BOUNDS, account=account).fit(draw_table())


def test_a_seeded_fit_is_noted_and_never_charged(account):
    study = KMeans(3, bounds=BOUNDS, account=account, private=False, random_state=0)
    with pytest.warns(UserWarning, match="protects nobody"):
        study.fit(draw_table())
    assert account.summarise().epsilon == 0
    assert account.summarise().seeded == 1


def test_parties_have_accounts_of_their_own(tmp_path):
    accounts = {name: Account(tmp_path / f"{name}.ledger", "patients") for name in ("north", "south")}
    tables = {"north": draw_table(2000), "south": draw_table(1000, 1), "east": draw_table(500, 2)}
    estimator = FederatedKMeans(3, bounds=BOUNDS, accounts=accounts).fit(tables)
    assert [account.summarise().charges for account in accounts.values()] == [1, 1]
    accounts["south"].set_cap(Budget(epsilon=1.0, delta=1e-6), reason="a test")
    with pytest.raises(AbsentError, match="'south' is not"):
        estimator.fit(tables)
    assert [account.summarise().charges for account in accounts.values()] == [1, 1]
    assert np.isfinite(estimator.cluster_centers_).all()
