"""Assignment methods: feasible, optimal, and clear about what cannot be met."""

from __future__ import annotations

import builtins
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cloister.errors import ConfigError, DataError, InfeasibleError, MissingExtraError
from cloister.kmeans import (
    Assignment,
    ConstrainedEExclusive,
    ConstrainedExclusive,
    ConstrainedNonExclusive,
    DistanceConstrained,
    Membership,
    Unconstrained,
    cluster_sums,
)
from cloister.records import ArrayRecords


def instance(seed: int, n: int, k: int, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.uniform(-1, 1, (n, d)), generator.uniform(-1, 1, (k, d))


def cost(pairs: Membership, points: np.ndarray, centres: np.ndarray) -> float:
    return float(((points[pairs.rows] - centres[pairs.clusters]) ** 2).sum())


def sizes(pairs: Membership, k: int) -> np.ndarray:
    return np.bincount(pairs.clusters, minlength=k)


def memberships(pairs: Membership, n: int) -> np.ndarray:
    assert len(set(zip(pairs.rows, pairs.clusters, strict=True))) == len(pairs.rows)
    return np.bincount(pairs.rows, minlength=n)


ALL: list[Assignment] = [
    Unconstrained(),
    ConstrainedNonExclusive(size_min=4),
    ConstrainedExclusive(size_min=4, size_max=12),
    ConstrainedEExclusive(size_min=9, size_max=12, memberships_max=2),
    DistanceConstrained(size_min=1, size_max=12, radius=1.2),
]


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
def test_sums_are_the_sums_of_the_assigned_pairs(method: Assignment) -> None:
    points, centres = instance(1, 30, 4)
    points = np.round(points * 2**16) * 2.0**-16
    pairs = method.assign(points, centres)
    for records in (points, ArrayRecords(points)):
        parts = method.sums(records, centres)
        for j in range(4):
            mine = points[pairs.rows[pairs.clusters == j]]
            np.testing.assert_array_equal(parts.sums[j], mine.sum(axis=0))
            assert parts.counts[j] == len(mine)
        assert parts.loss == pytest.approx(cost(pairs, points, centres))
        assert parts.excluded == 30 - len(np.unique(pairs.rows))


def test_unconstrained_is_the_kernel() -> None:
    points, centres = instance(2, 200, 5)
    expected = cluster_sums(points, centres)
    np.testing.assert_array_equal(Unconstrained().sums(points, centres).sums, expected.sums)
    assert cost(Unconstrained().assign(points, centres), points, centres) == pytest.approx(expected.loss)


def test_non_exclusive_takes_the_nearest_of_each_cluster_and_ties_in_order() -> None:
    points = np.array([[0.0], [0.2], [0.2], [0.2], [0.9]])
    pairs = ConstrainedNonExclusive(size_min=3).assign(points, np.array([[0.0], [1.0]]))
    taken = [pairs.rows[pairs.clusters == j].tolist() for j in (0, 1)]
    assert taken == [[0, 1, 2], [1, 2, 4]]
    assert ConstrainedNonExclusive(size_min=3).sums(points, np.array([[0.0]])).excluded == 2


@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), k=st.integers(1, 6), data=st.data())
@settings(max_examples=50, deadline=None)
def test_exclusive_holds_its_constraints(seed: int, n: int, k: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, n // k))
    high = data.draw(st.integers(-(-n // k), n))
    points, centres = instance(seed, n, k)
    pairs = ConstrainedExclusive(size_min=low, size_max=high).assign(points, centres)
    assert (memberships(pairs, n) == 1).all()
    assert (sizes(pairs, k) >= low).all()
    assert (sizes(pairs, k) <= high).all()


@given(seed=st.integers(0, 2**32), n=st.integers(1, 20), k=st.integers(1, 6), data=st.data())
@settings(max_examples=50, deadline=None)
def test_e_exclusive_holds_its_constraints(seed: int, n: int, k: int, data: st.DataObject) -> None:
    most = data.draw(st.integers(1, k))
    low = data.draw(st.integers(0, min(n, n * most // k)))
    high = data.draw(st.integers(max(low, -(-n // k)), n))
    points, centres = instance(seed, n, k)
    method = ConstrainedEExclusive(size_min=low, size_max=high, memberships_max=most)
    pairs = method.assign(points, centres)
    assert (memberships(pairs, n) >= 1).all()
    assert (memberships(pairs, n) <= most).all()
    assert (sizes(pairs, k) >= low).all()
    assert (sizes(pairs, k) <= high).all()


@pytest.mark.parametrize("seed", range(5))
def test_exclusive_is_optimal_against_linear_assignment(seed: int) -> None:
    points, centres = instance(seed, 24, 4, 3)
    method = ConstrainedExclusive(size_min=6, size_max=6)
    slots = np.repeat(cdist(points, centres, "sqeuclidean"), 6, axis=1)
    rows, columns = linear_sum_assignment(slots)
    best = slots[rows, columns].sum()
    assert cost(method.assign(points, centres), points, centres) == pytest.approx(best, rel=1e-7)


def least_cost(squared: np.ndarray, low: int, high: int, most: int, radius: float | None) -> tuple[int, float]:
    """By trying everything: the fewest records left out, and the least cost among those assignments."""
    n, k = squared.shape
    subsets = [s for size in range(most + 1) for s in itertools.combinations(range(k), size)]
    best = (n + 1, np.inf)
    for choice in itertools.product(subsets, repeat=n):
        out = sum(not subset for subset in choice)
        if radius is None and out:
            continue
        count = np.bincount([j for subset in choice for j in subset], minlength=k)
        if (count < low).any() or (count > high).any():
            continue
        terms = [squared[i, j] for i, subset in enumerate(choice) for j in subset]
        if radius is not None and any(term > radius**2 for term in terms):
            continue
        best = min(best, (out, sum(terms)))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_e_exclusive_is_optimal_against_brute_force(seed: int) -> None:
    points, centres = instance(seed, 5, 3)
    method = ConstrainedEExclusive(size_min=3, size_max=4, memberships_max=2)
    pairs = method.assign(points, centres)
    _, best = least_cost(cdist(points, centres, "sqeuclidean"), 3, 4, 2, None)
    assert cost(pairs, points, centres) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_distance_constrained_is_optimal_against_brute_force(seed: int) -> None:
    points, centres = instance(seed, 7, 3)
    squared = cdist(points, centres, "sqeuclidean")
    for radius, low, high in ((0.6, 0, 7), (0.9, 1, 2), (1.1, 1, 3)):
        method = DistanceConstrained(size_min=low, size_max=high, radius=radius)
        out, best = least_cost(squared, low, high, 1, radius)
        if out > 7:
            with pytest.raises(InfeasibleError):
                method.assign(points, centres)
            continue
        pairs = method.assign(points, centres)
        assert 7 - len(pairs.rows) == out
        assert cost(pairs, points, centres) == pytest.approx(best, rel=1e-7, abs=1e-9)


def test_distance_constrained_leaves_outliers_out_and_keeps_the_boundary() -> None:
    points = np.array([[0.0], [0.5], [0.51], [1.0]])
    pairs = DistanceConstrained(radius=0.5).assign(points, np.array([[0.0]]))
    assert pairs.rows.tolist() == [0, 1]


def test_ratios_follow_equation_8_and_are_always_feasible() -> None:
    method = ConstrainedExclusive(alpha_min=1.25, alpha_max=1.25)
    limits = method.limits(1000, 15)
    assert (limits.size_min, limits.size_max) == (53, 84)  # floor(1000 / 18.75), ceil(1250 / 15)
    for n, k in ((1, 5), (7, 3), (100, 7), (0, 2)):
        points, centres = instance(n, n, k)
        tight = ConstrainedExclusive(alpha_min=1.0, alpha_max=1.0).sums(points, centres)
        assert tight.counts.sum() == n
        assert tight.counts.max() - tight.counts.min() <= 1 or n == 0


@pytest.mark.parametrize(
    ("method", "n", "message"),
    [
        (ConstrainedExclusive(size_min=4), 11, "need 12 memberships.*at most 11; got 11 records, 3 clusters.*to 3"),
        (ConstrainedExclusive(size_max=3), 10, "hold at most 9; got 10 records.*size_max to 4"),
        (ConstrainedExclusive(size_min=3, size_max=2), 10, "size_min must be at most size_max"),
        (ConstrainedEExclusive(memberships_max=4), 10, "between 1 and 3"),
        (ConstrainedEExclusive(memberships_max=0), 10, "between 1 and 3"),
        (ConstrainedEExclusive(size_min=7, memberships_max=2), 10, "need 21 memberships.*at most 20"),
        (ConstrainedEExclusive(size_min=11, size_max=12, memberships_max=3), 10, "at most once.*to 10 or less"),
        (ConstrainedNonExclusive(size_min=11), 10, "at most once"),
        (DistanceConstrained(size_min=1, radius=1e-9), 10, "3 clusters have fewer than size_min records"),
    ],
)
def test_infeasible_constraints_are_refused_with_the_numbers(method: Assignment, n: int, message: str) -> None:
    points, centres = instance(3, n, 3)
    with pytest.raises(InfeasibleError, match=message):
        method.assign(points, centres)


def test_infeasible_only_in_combination_is_found_by_the_solver() -> None:
    # Each of two clusters has the one record within its radius, but they have the same one.
    points, centres = np.array([[0.0], [0.9], [-0.9]]), np.array([[0.1], [-0.1]])
    with pytest.raises(InfeasibleError, match=r"all be met at once within the radius 0\.2"):
        DistanceConstrained(size_min=1, radius=0.2).assign(points, centres)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConstrainedExclusive(size_min=1, alpha_min=1.25),
        lambda: ConstrainedExclusive(size_min=-1),
        lambda: ConstrainedExclusive(alpha_max=0.0),
        lambda: ConstrainedExclusive(alpha_max=float("nan")),
        lambda: DistanceConstrained(radius=-1.0),
        lambda: DistanceConstrained(radius=float("nan")),
        lambda: ConstrainedNonExclusive(size_min=-1),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()


def test_records_must_be_finite() -> None:
    with pytest.raises(DataError):
        ConstrainedExclusive().assign(np.array([[np.nan]]), np.array([[0.0]]))


def test_coinciding_points_and_centres() -> None:
    pairs = ConstrainedExclusive(size_min=2, size_max=2).assign(np.zeros((6, 2)), np.zeros((3, 2)))
    assert sizes(pairs, 3).tolist() == [2, 2, 2]


def test_the_solver_missing_is_an_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *args: object, **kwargs: object) -> object:
        if name.startswith("ortools"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"cloister\[papers\]"):
        ConstrainedExclusive().assign(np.zeros((2, 1)), np.zeros((1, 1)))
