"""The fused kernel: right, the same for every split and thread count, and strict about its arguments."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from cloister.errors import ConfigError, DataError
from cloister.kmeans import ClusterSums, cluster_sums, kernel, nearest
from cloister.records import ArrayRecords

GRID = 2.0**-16


def on_grid(seed: int, n: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**16), 2**16 + 1, (n, d)) * GRID


class SplitRecords:
    """Records that come in batches of given sizes."""

    def __init__(self, points: np.ndarray, cuts: list[int]) -> None:
        self._parts = np.split(points, cuts)
        self.dimensions = points.shape[1]

    def batches(self) -> Iterator[np.ndarray]:
        yield from (np.ascontiguousarray(part) for part in self._parts)


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 700),
    d=st.integers(1, 19),
    k=st.integers(1, 23),
    single=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_agrees_with_all_distances(seed: int, n: int, d: int, k: int, single: bool) -> None:
    points = on_grid(seed, n, d).astype(np.float32 if single else np.float64)
    centres = np.random.default_rng(seed + 1).uniform(-1, 1, (k, d))
    all_distances = cdist(points.astype(float), centres, "sqeuclidean")
    found = nearest(points, centres)
    tolerance = 1e-5 if single else 1e-13
    chosen = all_distances[np.arange(n), found.labels]
    np.testing.assert_allclose(chosen, all_distances.min(axis=1), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.squared_distances, chosen, rtol=tolerance, atol=tolerance)

    parts = cluster_sums(points, centres)
    one_hot = np.eye(k)[found.labels]
    np.testing.assert_array_equal(parts.sums, one_hot.T @ points)  # exact: both sides are sums of grid points
    np.testing.assert_array_equal(parts.counts, np.bincount(found.labels, minlength=k))
    assert parts.loss == pytest.approx(found.squared_distances.sum(), rel=1e-12)
    assert parts.excluded == 0


@given(cuts=st.lists(st.integers(0, 9000), max_size=6), d=st.integers(1, 9), k=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_split_and_threads_change_no_bit(cuts: list[int], d: int, k: int) -> None:
    points = on_grid(5, 9000, d)
    centres = np.random.default_rng(6).uniform(-1, 1, (k, d))
    whole = cluster_sums(points, centres, threads=1)
    split = cluster_sums(SplitRecords(points, sorted(cuts)), centres)
    np.testing.assert_array_equal(split.sums, whole.sums)
    np.testing.assert_array_equal(split.counts, whole.counts)
    assert split.loss == pytest.approx(whole.loss, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_thread_count_changes_no_bit_even_off_the_grid(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_NANOSECONDS_PER_THREAD", 1)  # use every thread asked for
    points = np.random.default_rng(0).normal(size=(30_011, 7)).astype(dtype)
    centres = np.random.default_rng(1).normal(size=(11, 7))
    one = cluster_sums(points, centres, threads=1, radius=2.0)
    for threads in (2, 3, 8):
        many = cluster_sums(points, centres, threads=threads, radius=2.0)
        np.testing.assert_array_equal(many.sums, one.sums)
        np.testing.assert_array_equal(many.counts, one.counts)
        assert (many.loss, many.excluded) == (one.loss, one.excluded)


def test_label_and_distance_do_not_depend_on_the_records_beside() -> None:
    points = np.random.default_rng(2).normal(size=(1000, 5))
    centres = np.random.default_rng(3).normal(size=(6, 5))
    whole = nearest(points, centres)
    for first in range(0, 1000, 37):
        part = nearest(points[first : first + 37], centres)
        np.testing.assert_array_equal(part.labels, whole.labels[first : first + 37])
        np.testing.assert_array_equal(part.squared_distances, whole.squared_distances[first : first + 37])


def test_ties_go_to_the_lowest_index() -> None:
    for low, high in itertools.combinations(range(9), 2):
        centres = np.full((9, 2), 5.0)
        centres[low], centres[high] = [1.0, 0.0], [0.0, -1.0]
        assert nearest(np.zeros((3, 2)), centres).labels.tolist() == [low] * 3


def test_small_distances_survive_large_coordinates() -> None:
    points = np.full((3, 4), 1e8)
    centres = np.array([np.full(4, 1e8), np.full(4, 1e8 + 1e-7)])
    assert nearest(points, centres).squared_distances.tolist() == [0.0, 0.0, 0.0]


def test_radius_excludes_what_lies_further_and_keeps_the_boundary() -> None:
    points = np.array([[0.0], [0.5], [0.5 + GRID], [-1.0]])
    parts = cluster_sums(points, np.array([[0.0]]), radius=0.5)
    assert parts.counts.tolist() == [2]
    assert parts.sums.tolist() == [[0.5]]
    assert (parts.loss, parts.excluded) == (0.25, 2)


def test_radius_per_centre() -> None:
    points = np.array([[0.1], [0.3], [0.8], [1.0]])
    parts = cluster_sums(points, np.array([[0.0], [1.0]]), radius=np.array([0.2, 0.05]))
    assert parts.counts.tolist() == [1, 1]
    assert parts.excluded == 2


def test_sums_add_up_and_zero_is_neutral() -> None:
    points, centres = on_grid(1, 500, 3), on_grid(2, 4, 3)
    first, second = cluster_sums(points[:200], centres), cluster_sums(points[200:], centres)
    total = first + second + ClusterSums.zero(4, 3)
    whole = cluster_sums(ArrayRecords(points), centres)
    np.testing.assert_array_equal(total.sums, whole.sums)
    np.testing.assert_array_equal(total.counts, whole.counts)
    with pytest.raises(ConfigError, match=r"same shape.*\(4, 3\) and \(3, 3\)"):
        first + ClusterSums.zero(3, 3)


def test_no_records() -> None:
    centres = np.zeros((2, 3))
    empty = cluster_sums(np.empty((0, 3)), centres)
    assert (empty.counts.tolist(), empty.loss, empty.excluded) == ([0, 0], 0.0, 0)
    assert nearest(np.empty((0, 3)), centres).labels.shape == (0,)


def test_arrays_need_not_be_contiguous() -> None:
    points, centres = on_grid(1, 300, 4), on_grid(2, 3, 4)
    np.testing.assert_array_equal(
        cluster_sums(np.asfortranarray(points), centres).sums, cluster_sums(points, centres).sums
    )
    frozen = points.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(cluster_sums(frozen, centres).sums, cluster_sums(points, centres).sums)
    assert points.flags.writeable
    np.testing.assert_array_equal(
        cluster_sums(points[::2], centres).counts, cluster_sums(points[::2].copy(), centres).counts
    )


def test_calls_from_many_threads_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_NANOSECONDS_PER_THREAD", 1)  # use every thread asked for
    points, centres = on_grid(1, 40_000, 3), on_grid(2, 5, 3)
    expected = cluster_sums(points, centres, threads=1)
    results: list[ClusterSums] = []

    def call() -> None:
        results.append(cluster_sums(points, centres, threads=4))

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(results) == 8
    for result in results:
        np.testing.assert_array_equal(result.sums, expected.sums)


@pytest.mark.parametrize(
    ("points", "centres", "options", "message"),
    [
        (np.zeros((3, 2)), np.zeros((2, 3)), {}, r"shape \(n, 3\).*got \(3, 2\)"),
        (np.zeros(3), np.zeros((2, 3)), {}, r"got \(3,\)"),
        (np.zeros((3, 2), dtype=int), np.zeros((2, 2)), {}, "float64 or float32; got int64"),
        (np.zeros((3, 2)), np.zeros(2), {}, r"\(k, d\)"),
        (np.zeros((3, 2)), np.zeros((0, 2)), {}, "at least one centre"),
        (np.zeros((3, 2)), np.array([[0.0, np.nan]]), {}, "centres must be finite"),
        (np.zeros((3, 2)), np.zeros((2, 2)), {"radius": -1.0}, "radius"),
        (np.zeros((3, 2)), np.zeros((2, 2)), {"radius": np.nan}, "radius"),
        (np.zeros((3, 2)), np.zeros((2, 2)), {"radius": np.ones(3)}, "2 of them"),
        (np.zeros((3, 2)), np.zeros((2, 2)), {"threads": 0}, "threads must be at least 1"),
    ],
)
def test_arguments_that_do_not_fit(
    points: np.ndarray, centres: np.ndarray, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster_sums(points, centres, **options)


def test_with_a_radius_a_record_that_is_not_finite_is_excluded() -> None:
    parts = cluster_sums(np.array([[0.0], [np.nan], [np.inf]]), np.zeros((1, 1)), radius=1.0)
    assert (parts.counts.tolist(), parts.loss, parts.excluded) == ([1], 0.0, 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 199])
def test_records_that_are_not_finite_are_refused_without_naming_them(bad: float, row: int) -> None:
    points = np.full((200, 2), 0.123456)
    points[row, 1] = bad
    for call in (cluster_sums, nearest):
        with pytest.raises(DataError, match="finite") as caught:
            call(points, np.zeros((3, 2)))
        assert "0.123456" not in str(caught.value)
