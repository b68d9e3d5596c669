"""Estimators of several tables: simulated, and as one party of a session between organisations."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as Lloyd

from cloister import FederatedKMeans, KMeans, SecureKMeans, Setup, VerticalKMeans
from cloister.credentials import make_keys
from cloister.deployment import serve
from cloister.deployment.joining import open_end
from cloister.errors import ConfigError
from cloister.jobfile import load_job
from cloister.runtime.remote.hub import Deadlines
from tests.estimators.tables import BOUNDS, CENTRES, draw_table, pass_on, sort

TABLE = draw_table()
TABLES = {"north": TABLE[:3000], "south": TABLE[3000:5000], "east": TABLE[5000:]}


def test_parties_find_the_clusters_together():
    fitted = FederatedKMeans(3, bounds=BOUNDS).fit(TABLES)
    assert np.abs(sort(fitted.cluster_centers_) - sort(CENTRES)).max() < 0.1
    assert fitted.result_.party_names == tuple(TABLES)
    assert {name: len(labels) for name, labels in fitted.labels_.items()} == {
        "north": 3000,
        "south": 2000,
        "east": 1000,
    }
    assert np.array_equal(fitted.predict(TABLES["south"]), fitted.labels_["south"])
    assert "any one of the 3 parties" in fitted.privacy_card_.protects_against
    assert not hasattr(pass_on(fitted), "labels_")
    assert fitted.fit_predict(list(TABLES.values())).keys() == {"party1", "party2", "party3"}


def test_a_whole_party_can_be_the_unit():
    tables = {f"clinic{i}": draw_table(100, i) for i in range(20)}
    fitted = FederatedKMeans(2, epsilon=8.0, unit="client", bounds=BOUNDS).fit(tables)
    assert fitted.privacy_card_.unit == "client"


def test_exact_sums_find_what_one_joint_table_finds():
    start, bounds = [[1.0, 1.0], [6.0, 1.0], [6.0, 4.0]], [(0, 10), (0, 10)]  # on one scale, as scikit-learn has it
    fitted = SecureKMeans(3, bounds=bounds, init=start).fit(TABLES)
    joint = Lloyd(3, init=start, n_init=1).fit(TABLE)
    assert np.abs(fitted.cluster_centers_ - joint.cluster_centers_).max() < 1e-3
    assert fitted.privacy_card_ is None
    assert fitted.__sklearn_tags__().non_deterministic
    assert "the coordinator" in {row.role for row in fitted.result_.leakage}


def test_columns_can_be_at_different_parties():
    frames = {
        "bank": pd.DataFrame(TABLE[:, :1], columns=["income"]),
        "telco": pd.DataFrame(TABLE[:, 1:], columns=["use"]),
    }
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


def test_exact_sums_keep_the_best_of_several_starts(monkeypatch):
    scores = []
    score = SecureKMeans.score
    monkeypatch.setattr(SecureKMeans, "score", lambda self, X: scores.append(score(self, X)) or scores[-1])
    fitted = SecureKMeans(3, bounds=BOUNDS, n_init=4, max_iter=5).fit(TABLES)
    assert len(scores) == 4
    assert score(fitted, TABLE) == pytest.approx(max(scores))


@pytest.mark.parametrize(
    ("options", "message"), [({"n_init": 0}, "n_init must be at least 1"), ({"init": "k-means++"}, "init must be")]
)
def test_starts_that_nobody_can_make_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        SecureKMeans(3, bounds=BOUNDS, **options).fit(TABLES)


@pytest.mark.parametrize("kind", [SecureKMeans, VerticalKMeans])
def test_bounds_are_needed_where_nothing_finds_them(kind):
    tables = TABLES if kind is SecureKMeans else {"bank": TABLE[:, :1], "telco": TABLE[:, 1:]}
    with pytest.raises(ConfigError, match="public bounds"):
        kind(3).fit(tables)


@pytest.mark.parametrize("kind", [KMeans, FederatedKMeans, SecureKMeans, VerticalKMeans])
def test_parameters_are_cloned(kind):
    estimator = kind(4, bounds=BOUNDS)
    assert clone(estimator).get_params() == estimator.get_params()
    assert "n_clusters=4" in repr(estimator)


def test_accounts_must_be_of_parties():
    with pytest.raises(ConfigError, match="accounts must be named after the parties; got 'west'"):
        FederatedKMeans(3, bounds=BOUNDS, accounts={"west": None}).fit(TABLES)


# --- between organisations

CONTRACT = """
name = "together"
[clusters]
k = 3
[budget]
epsilon = 1.0
delta = 1e-6
[columns]
length = { low = 0, high = 10 }
width = { low = 0, high = 5 }
"""


def write_job(folder):
    """Make keys for everybody, and a job that names them."""
    keys = {name: make_keys(name, folder).public.fingerprint for name in (*TABLES, "coordinator")}
    lines = [CONTRACT, "[coordinator]", f'identity = "{keys["coordinator"]}"']
    for name in TABLES:
        lines += ["[[parties]]", f'name = "{name}"', f'identity = "{keys[name]}"']
    (folder / "job.toml").write_text("\n".join(lines) + "\n")
    return folder / "job.toml"


def test_the_same_object_takes_part_in_a_session_between_organisations(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = write_job(tmp_path)
    job, port = load_job(path), Future()
    _, end = open_end(job, str(tmp_path / "coordinator.key"), None, Deadlines(start_s=60.0, step_s=60.0))
    with ThreadPoolExecutor(1 + len(TABLES)) as pool:
        course = pool.submit(serve, Setup(job=job), end, listen="127.0.0.1:0", on_listening=port.set_result)
        address = f"127.0.0.1:{port.result(60)}"
        joined = {
            name: pool.submit(
                FederatedKMeans().join,
                path,
                keys=str(tmp_path / f"{name}.key"),
                table=table,
                address=address,
                out=tmp_path / f"result-{name}",
            )
            for name, table in TABLES.items()
        }
        fitted = {name: one.result(120) for name, one in joined.items()}
        course.result(60)
    first = fitted["north"]
    assert all(np.array_equal(one.cluster_centers_, first.cluster_centers_) for one in fitted.values())
    assert np.abs(sort(first.cluster_centers_) - sort(CENTRES)).max() < 0.1
    assert first.result_.ran == "between organisations"
    assert not hasattr(first, "labels_")
    assert len(first.predict(pd.DataFrame(TABLES["north"], columns=["length", "width"]))) == 3000
    assert len(list(tmp_path.glob("result-*/result.json"))) == 3
    assert len(list(tmp_path.glob("data/cloister/*.ledger"))) == 3


def test_a_coordinators_keys_are_no_partys(tmp_path):
    with pytest.raises(ConfigError, match="these are the coordinator's"):
        FederatedKMeans().join(write_job(tmp_path), keys=str(tmp_path / "coordinator.key"), table=TABLE)
