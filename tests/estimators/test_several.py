"""Estimators of several tables: simulated, and as one party of a session between organisations."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as Lloyd

from cloister import FederatedKMeans, KMeans, SecureKMeans, VerticalKMeans
from cloister.errors import ConfigError
from tests.estimators.tables import BOUNDS, CENTRES, draw_table, sort

TABLE = draw_table()
TABLES = {"north": TABLE[:3000], "south": TABLE[3000:5000], "east": TABLE[5000:]}


def test_parties_find_the_clusters_together():
    fitted = FederatedKMeans(3, bounds=BOUNDS).fit(TABLES)
    assert np.abs(sort(fitted.cluster_centers_) - sort(CENTRES)).max() < 0.1
    assert fitted.result_.party_names == tuple(TABLES)
    assert {name: len(labels) for name, labels in fitted.labels_.items()} == {"north": 3000, "south": 2000, "east": 1000}
    assert np.array_equal(fitted.predict(TABLES["south"]), fitted.labels_["south"])
    assert "any one of the 3 parties" in fitted.privacy_card_.protects_against
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "labels_")
    assert fitted.fit_predict(list(TABLES.values())).keys() == {"party1", "party2", "party3"}


def test_a_whole_party_can_be_the_unit():
    tables = {f"clinic{i}": draw_table(100, i) for i in range(20)}
    fitted = FederatedKMeans(2, epsilon=8.0, unit="client", bounds=BOUNDS).fit(tables)
    assert fitted.privacy_card_.unit == "client"


def test_exact_sums_find_what_one_joint_table_finds():
    fitted = SecureKMeans(3, bounds=BOUNDS).fit(TABLES)
    joint = Lloyd(3, init=sort(fitted.cluster_centers_), n_init=1).fit(TABLE)
    assert np.abs(sort(fitted.cluster_centers_) - sort(joint.cluster_centers_)).max() < 1e-3
    assert fitted.privacy_card_ is None
    assert not fitted.__sklearn_tags__().non_deterministic
    assert "the coordinator" in {row.role for row in fitted.result_.leakage}


def test_columns_can_be_at_different_parties():
    frames = {"bank": pd.DataFrame(TABLE[:, :1], columns=["income"]), "telco": pd.DataFrame(TABLE[:, 1:], columns=["use"])}
    bounds = {"use": (0, 5), "income": (0, 10)}
    fitted = VerticalKMeans(3, bounds=bounds).fit(frames)
    assert np.abs(sort(fitted.cluster_centers_) - sort(CENTRES)).max() < 0.3
    assert list(fitted.feature_names_in_) == ["income", "use"]
    assert np.array_equal(fitted.predict(frames), fitted.labels_)
    assert fitted.privacy_card_.private
    arrays = VerticalKMeans(3, bounds=BOUNDS).fit({"bank": TABLE[:, :1], "telco": TABLE[:, 1:]})
    assert np.array_equal(arrays.predict(TABLE), arrays.labels_)


@pytest.mark.parametrize("kind", [FederatedKMeans, SecureKMeans, VerticalKMeans])
def test_one_table_is_for_another_estimator(kind):
    with pytest.raises(ConfigError, match=r"cloister\.KMeans"):
        kind(3, bounds=BOUNDS).fit(TABLE)
    with pytest.raises(ConfigError, match=r"two tables or more; got 1. One alone: cloister\.KMeans"):
        kind(3, bounds=BOUNDS).fit([TABLE])
    with pytest.raises(ConfigError, match="bounds must be given"):
        kind(3).fit(TABLES)


@pytest.mark.parametrize("kind", [KMeans, FederatedKMeans, SecureKMeans, VerticalKMeans])
def test_parameters_are_cloned(kind):
    estimator = kind(4, bounds=BOUNDS)
    assert clone(estimator).get_params() == estimator.get_params()
    assert "n_clusters=4" in repr(estimator)


def test_accounts_must_be_of_parties():
    with pytest.raises(ConfigError, match="accounts must be named after the parties; got 'west'"):
        FederatedKMeans(3, bounds=BOUNDS, accounts={"west": None}).fit(TABLES)
