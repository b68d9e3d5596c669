"""KMeans: scikit-learn's contract on an instance that protects nobody, and what a private one promises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans as Lloyd
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
from sklearn.utils.estimator_checks import parametrize_with_checks

from cloister import KMeans
from cloister.errors import ConfigError, DataError
from cloister.estimators import NotPrivateWarning, kmeans
from tests.estimators.tables import BOUNDS, CENTRES, draw_table, pass_on, sort

STUDY = KMeans(2, epsilon=1e6, bounds=(-10, 10), weight_max=100, private=False, random_state=0)
"""Seeded, with next to no noise: checks compare fits, and cluster 50 records."""
KNOWN = {"check_sample_weight_equivalence_on_dense_data": "a weight is a chance to take part, not a number of copies"}


@pytest.mark.filterwarnings("ignore::cloister.estimators.base.NotPrivateWarning")
@parametrize_with_checks([STUDY], expected_failed_checks=lambda estimator: KNOWN)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_no_check_is_expected_to_fail_that_scikit_learns_own_passes():
    assert set(KNOWN) <= set(PER_ESTIMATOR_XFAIL_CHECKS[Lloyd])


def test_a_fit_finds_the_clusters_in_original_units():
    table = draw_table()
    fitted = KMeans(3, bounds=BOUNDS).fit(table)
    assert np.abs(sort(fitted.cluster_centers_) - sort(CENTRES)).max() < 0.1
    assert (np.abs(sort(fitted.cluster_centers_) - sort(CENTRES)) < 10 * fitted.cluster_centers_noise_.max()).all()
    counts = np.bincount(fitted.labels_)
    assert (np.abs(fitted.cluster_sizes_ - counts) < 8 * fitted.cluster_sizes_noise_).all()
    assert np.array_equal(fitted.labels_, fitted.predict(table))
    assert np.array_equal(fitted.labels_, fitted.transform(table).argmin(axis=1))
    assert fitted.score(table) == pytest.approx(-(fitted.transform(table).min(axis=1) ** 2).sum())
    assert not hasattr(fitted, "inertia_")


def test_the_card_says_what_the_fit_promises_and_the_result_holds_nothing_exact():
    fitted = KMeans(3, epsilon=0.5, bounds=BOUNDS).fit(draw_table())
    assert fitted.privacy_card_.private
    assert fitted.privacy_card_.epsilon <= 0.5
    assert "Whoever sees the result" in fitted.privacy_card_.protects_against
    assert fitted.result_.evaluation is None


def test_pickles_leave_the_labels_out():
    fitted = KMeans(3, bounds=BOUNDS).fit(draw_table())
    passed_on = pass_on(fitted)
    assert not hasattr(passed_on, "labels_")
    assert np.array_equal(passed_on.predict(draw_table()), fitted.labels_)


@pytest.mark.parametrize("bounds", [None, "private", {"x0": (0, 10), "x1": "private"}, [(0, 10), "private"]])
def test_bounds_that_nobody_knows_are_paid_for(bounds):
    fitted = KMeans(3, bounds=bounds).fit(draw_table())
    assert np.abs(sort(fitted.cluster_centers_) - sort(CENTRES)).max() < 0.2
    assert fitted.privacy_card_.epsilon <= 1.0
    assert [column.bounds for column in fitted.result_.columns][-1] == "private"
    assert np.array_equal(fitted.predict(draw_table()), fitted.labels_)


def test_too_few_records_do_not_show_bounds():
    with pytest.raises(ConfigError, match="must come with more records"):
        KMeans(3).fit(draw_table(50))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"a": (0, 1)}, "got none for 'b'"),
        ({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, "some for 'c', which is no column"),
        ([(0, 1)], "one for each of 2 columns; got 1"),
        ("auto", 'or "private"; got .auto.'),
        ([(0, 1), (0, 1, 2)], "'b' must be a pair of numbers; got 3"),
        ((1, 0), r"greater than low|low < high"),
    ],
)
def test_bounds_must_be_of_the_columns(bounds, message):
    with pytest.raises(ConfigError, match=message):
        KMeans(3, bounds=bounds).fit(pd.DataFrame(draw_table(), columns=["a", "b"]))


def test_frames_keep_their_names_and_outputs_can_be_frames():
    table = pd.DataFrame(draw_table(), columns=["length", "width"])
    fitted = KMeans(3, bounds={"width": (0, 5), "length": (0, 10)}).set_output(transform="pandas").fit(table)
    assert [column.name for column in fitted.result_.columns] == ["length", "width"]
    assert list(fitted.transform(table).columns) == ["kmeans0", "kmeans1", "kmeans2"]
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(table[["width", "length"]])


def test_it_takes_part_in_a_pipeline_with_weights_routed():
    with config_context(enable_metadata_routing=True):
        step = KMeans(3, bounds=BOUNDS).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), step)
        table = draw_table()
        pipeline.fit(table, sample_weight=(table[:, 1] < 3).astype(float))
    found = pipeline[-1].cluster_centers_
    assert (found[:, 1] < 3).all()


def test_a_seed_is_refused_where_the_fit_is_private():
    with pytest.raises(ConfigError, match="random_state must be left out of a private fit"):
        KMeans(3, bounds=BOUNDS, random_state=0).fit(draw_table())


def test_a_study_says_so():
    study = KMeans(3, bounds=BOUNDS, private=False, random_state=np.random.RandomState(1))
    with pytest.warns(NotPrivateWarning):
        fitted = study.fit(draw_table())
    assert not fitted.privacy_card_.private
    with pytest.warns(NotPrivateWarning):
        other = KMeans(3, bounds=BOUNDS, private=False).fit(draw_table())
    with pytest.warns(NotPrivateWarning):
        again = KMeans(3, bounds=BOUNDS, private=False).fit(draw_table())
    assert not np.array_equal(other.cluster_centers_, again.cluster_centers_)


def test_what_is_not_fitted_or_not_finite_is_refused():
    with pytest.raises(NotFittedError):
        KMeans().predict(draw_table())
    with pytest.raises((ValueError, DataError)):
        KMeans(3, bounds=BOUNDS).fit([[1.0, np.nan]])


def test_it_can_choose_k():
    fitted = KMeans(6, choose_k=True, bounds=BOUNDS).fit(draw_table())
    assert len(fitted.cluster_centers_) == fitted.transform(draw_table(5)).shape[1] <= 6


# --- weights


def test_a_weight_is_a_chance_to_take_part():
    table = draw_table(20_000)
    fitted = KMeans(3, bounds=BOUNDS, weight_max=4).fit(table, sample_weight=np.full(20_000, 1.0))
    total, noise = fitted.result_.sizes.total, fitted.result_.sizes.total_noise
    assert abs(total - 5000) < 8 * (noise + np.sqrt(20_000 * 0.25 * 0.75))
    assert len(fitted.labels_) == 20_000


@pytest.mark.parametrize("weight", [-0.1, 1.1, np.inf, np.nan])
def test_weights_beyond_the_public_maximum_are_refused(weight):
    weights = np.ones(6000)
    weights[17] = weight
    with pytest.raises(ValueError, match=r"weight_max|finite|NaN|infinity"):
        KMeans(3, bounds=BOUNDS).fit(draw_table(), sample_weight=weights)


@pytest.mark.parametrize("weight_max", [0, -1, np.inf])
def test_the_maximum_must_be_a_positive_number(weight_max):
    with pytest.raises(ConfigError, match="weight_max must be a positive number"):
        KMeans(3, bounds=BOUNDS, weight_max=weight_max).fit(draw_table(), sample_weight=np.ones(6000))


def test_a_coin_belongs_to_its_record():
    """Removing the last record, or changing its weight, changes nobody else's coin."""
    table, weights = draw_table(500), np.linspace(0, 1, 500)
    kept = kmeans._toss(table, weights, 1.0, 7)
    assert np.array_equal(kmeans._toss(table[:-1], weights[:-1], 1.0, 7), kept[:-1])
    assert np.array_equal(kmeans._toss(table, np.append(weights[:-1], 0), 1.0, 7)[:-1], kept[:-1])
    assert not kept[0]
    assert kept[-1]
    secret = [kmeans._toss(table, weights, 1.0, None) for _ in range(2)]
    assert not np.array_equal(*secret)


def test_parameters_are_kept_as_they_are_given():
    estimator = KMeans(3, bounds=BOUNDS, epsilon=2.0)
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.get_params()["bounds"] is BOUNDS
