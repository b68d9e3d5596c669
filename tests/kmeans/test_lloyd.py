"""Lloyd's algorithm against scikit-learn, and weighted k-means against its promises."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans import lloyd, nearest, random_records, update_centres, weighted_kmeans
from cloister.kmeans.lloyd import _fit_once
from cloister.records import ArrayRecords


def blobs(seed: int = 0, n: int = 600) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, 2)) * 0.1 + generator.uniform(-1, 1, (6, 2))[generator.integers(0, 6, n)]


@pytest.mark.parametrize("weighted", [False, True])
def test_same_centres_as_scikit_learn_from_the_same_start(weighted: bool) -> None:
    points = blobs()
    weights = np.random.default_rng(1).uniform(0, 3, len(points)) if weighted else None
    start = random_records(Stream.from_seed(1, "start"), points, 6)
    reference = KMeans(6, init=start, n_init=1, max_iter=200, tol=0.0, algorithm="lloyd")
    reference.fit(points, sample_weight=weights)
    fit = lloyd(points, start, iterations=200, weights=weights)
    assert fit.converged
    np.testing.assert_allclose(fit.centres, reference.cluster_centers_, atol=1e-10)
    assert fit.loss == pytest.approx(reference.inertia_, rel=1e-10)


def test_records_and_arrays_give_the_same() -> None:
    points, start = blobs(), blobs()[:6]
    np.testing.assert_array_equal(
        lloyd(ArrayRecords(points), start, iterations=5).centres, lloyd(points, start, iterations=5).centres
    )


def test_equal_weights_change_nothing_and_integer_weights_repeat() -> None:
    points, start = blobs(n=200), blobs(n=200)[:4]
    repeats = np.random.default_rng(2).integers(0, 4, 200)
    plain = lloyd(np.repeat(points, repeats, axis=0), start, iterations=50)
    weighted = lloyd(points, start, iterations=50, weights=repeats.astype(float))
    np.testing.assert_allclose(weighted.centres, plain.centres, atol=1e-12)
    assert weighted.loss == pytest.approx(plain.loss)


def test_loss_is_that_of_the_returned_centres_and_falls() -> None:
    points, start = blobs(), blobs()[:6]
    losses = [lloyd(points, start, iterations=t).loss for t in range(8)]
    assert losses == sorted(losses, reverse=True)
    fit = lloyd(points, start, iterations=3)
    assert fit.iterations == 3
    assert not fit.converged
    distances = ((points[:, None] - fit.centres) ** 2).sum(axis=2)
    assert fit.loss == pytest.approx(distances.min(axis=1).sum())


def test_tolerance_stops_early() -> None:
    points, start = blobs(), blobs()[:6]
    exact, loose = lloyd(points, start, iterations=300), lloyd(points, start, iterations=300, tolerance=0.05)
    assert loose.converged
    assert loose.iterations < exact.iterations


def test_empty_clusters_keep_their_centre() -> None:
    fit = lloyd(np.array([[0.0], [0.2]]), np.array([[0.0], [9.0]]), iterations=10)
    np.testing.assert_allclose(fit.centres, [[0.1], [9.0]])
    previous = np.array([[1.0], [2.0]])
    np.testing.assert_allclose(update_centres(np.array([[6.0], [0.0]]), np.array([2, 0]), previous), [[3.0], [2.0]])
    assert previous.tolist() == [[1.0], [2.0]]


def test_arguments_are_checked() -> None:
    points = blobs()
    for options in ({"iterations": -1}, {"iterations": 1, "tolerance": -1.0}, {"iterations": 1, "tolerance": np.nan}):
        with pytest.raises(ConfigError):
            lloyd(points, points[:2], **options)
    with pytest.raises(ConfigError, match="at least 0"):
        lloyd(points, points[:2], iterations=1, weights=np.full(600, -1.0))
    with pytest.raises(ConfigError, match="one array"):
        lloyd(ArrayRecords(points), points[:2], iterations=1, weights=np.ones(600))
    with pytest.raises(ConfigError, match="restarts"):
        weighted_kmeans(points, 2, Stream.from_seed(0, "x"), restarts=0)


def test_weighted_kmeans_is_as_good_as_scikit_learn() -> None:
    generator = np.random.default_rng(4)
    points, weights = generator.uniform(-1, 1, (1500, 2)), generator.uniform(0, 5, 1500)
    reference = KMeans(30, n_init=20, random_state=0).fit(points, sample_weight=weights)
    fit = weighted_kmeans(points, 30, Stream.from_seed(3, "fit"), weights=weights)
    assert fit.loss < 1.02 * reference.inertia_
    again = weighted_kmeans(points, 30, Stream.from_seed(3, "fit"), weights=weights)
    np.testing.assert_array_equal(fit.centres, again.centres)


def test_more_restarts_are_never_worse() -> None:
    losses = [
        weighted_kmeans(blobs(), 6, Stream.from_seed(5, "fit"), restarts=restarts).loss for restarts in (1, 2, 5, 20)
    ]
    assert losses == sorted(losses, reverse=True)


def far_start(points: np.ndarray) -> np.ndarray:
    return np.vstack([points[:2], np.full((4, 2), 50.0) + np.arange(4)[:, None]])


def test_idle_centres_are_moved_to_the_loss_and_lloyd_goes_on() -> None:
    points = blobs()
    fit = _fit_once(points, np.ones(len(points)), far_start(points), 100)
    assert fit.converged
    assert np.bincount(nearest(points, fit.centres).labels, minlength=6).min() > 0
    assert fit.loss < 0.2 * lloyd(points, far_start(points), iterations=100).loss


def test_centres_differ_even_where_repairs_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # The package has a function of the module's name, so the module must be asked for.
    monkeypatch.setattr(importlib.import_module("cloister.kmeans.lloyd"), "_REPAIRS", 0)
    points = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    fit = _fit_once(points, np.ones(5), np.zeros((4, 1)), 100)  # the first centre takes all and stays
    assert len(np.unique(fit.centres)) == 4


@given(
    values=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=12),
    k=st.integers(1, 8),
    seed=st.integers(0, 1000),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_k_different_centres_whenever_there_are_k_different_points(
    values: list[tuple[int, int]], k: int, seed: int, data: st.DataObject
) -> None:
    points = np.array(values, dtype=float)
    weights = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 1e-9, 1.0, 50.0]), min_size=len(values), max_size=len(values)))
    )
    fit = weighted_kmeans(points, k, Stream.from_seed(seed, "k"), weights=weights, restarts=2)
    assert fit.centres.shape == (k, 2)
    different = len(np.unique(points, axis=0))
    assert len(np.unique(fit.centres, axis=0)) >= min(k, different)
    if different <= k:
        assert fit.loss == pytest.approx(0.0, abs=1e-12)
