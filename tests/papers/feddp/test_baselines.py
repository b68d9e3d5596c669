"""Starts read no client; FedDP-Lloyds without noise is Lloyd's algorithm, and contributions keep their bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from cloister.crypto import Stream
from cloister.kmeans import lloyd
from cloister.privacy.units import Budget, Unit
from papers.feddp.baselines import (
    LONGEST,
    Bounds,
    bound_client_sums,
    find_start,
    pack_cube,
    run_feddp_lloyds,
    run_round,
)
from papers.lab.scores import nicv


def stream() -> Stream:
    return Stream.from_seed(1, "starts")


@pytest.fixture
def server() -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.concatenate([centre + rng.normal(0, 0.3, (30, 3)) for centre in rng.uniform(-4, 4, (5, 3))])


def test_kmeans_plus_plus_takes_server_points(server: np.ndarray) -> None:
    centres = find_start("server-kmeans++", server, 5, stream())
    assert {tuple(centre) for centre in centres} <= {tuple(point) for point in server}
    assert len({tuple(centre) for centre in centres}) == 5


def test_lloyds_clusters_the_server(server: np.ndarray) -> None:
    found = find_start("server-lloyds", server, 5, stream())
    assert nicv(server, found) < 3 * 0.3**2 * 1.2
    assert nicv(server, found) <= nicv(server, find_start("server-kmeans++", server, 5, stream()))


def test_sphere_packing_sees_the_radius_only(server: np.ndarray) -> None:
    turned = -server[::-1]
    one, two = (find_start("sphere-packing", points, 5, stream()) for points in (server, turned))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one).max() <= np.linalg.norm(server, axis=1).max()


@pytest.mark.parametrize(("clusters", "dimensions"), [(1, 2), (4, 2), (10, 3), (10, 100)])
def test_a_packing_keeps_its_distances(clusters: int, dimensions: int) -> None:
    centres = pack_cube(stream(), clusters, dimensions, 2.5)
    corners = np.linalg.norm(2.5 - np.abs(centres), axis=1).min()
    apart = pdist(centres).min() / 2 if clusters > 1 else np.inf
    feasible = min(corners, apart)
    # random points are closer: ten in the cube of 100 dimensions are all about sqrt(200 / 3) radii apart
    drawn = [
        min(np.linalg.norm(2.5 - np.abs(points), axis=1).min(), pdist(points).min() / 2 if clusters > 1 else np.inf)
        for points in 2.5 * (2 * stream().uniform(200, clusters, dimensions) - 1)
    ]
    assert feasible > np.mean(drawn)
    assert np.abs(centres).max() <= 2.5


class Silent:
    """A sampler of zeros that remembers what it was asked for."""

    is_simulation = True

    def __init__(self) -> None:
        self.asked: list[tuple[object, int]] = []

    def draw(self, mechanism, entries, on_progress=None):
        self.asked.append((mechanism, entries))
        return np.zeros(entries, dtype=np.int64)


class Watching:
    """Noise that keeps the exact numbers and adds nothing."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def release(self, exact: np.ndarray) -> np.ndarray:
        self.seen.append(exact.copy())
        return exact


@pytest.fixture
def points() -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.concatenate([centre + rng.normal(0, 0.2, (40, 3)) for centre in rng.uniform(-1, 1, (4, 3))])


@pytest.mark.parametrize("unit", list(Unit))
def test_without_noise_it_is_lloyds_algorithm(points: np.ndarray, unit: Unit) -> None:
    parts = np.array_split(np.random.default_rng(2).permutation(points), 8)
    bounds = Bounds(unit=unit, sums=1e3 if unit is Unit.CLIENT else 10.0, counts=20)
    budget = Budget(epsilon=1.0, delta=1e-6, unit=unit)
    sampler = Silent()
    found = run_feddp_lloyds(parts, points[::40], bounds, budget=budget, rounds=3, count_share=0.5, sampler=sampler)
    np.testing.assert_allclose(found, lloyd(points, points[::40], iterations=3).centres, atol=1e-5)
    assert [entries for _, entries in sampler.asked] == [12, 4] * 3


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 30), stretch=st.floats(0.0, 100.0), unit=st.sampled_from(Unit))
def test_a_unit_adds_no_more_than_its_bounds(seed: int, size: int, stretch: float, unit: Unit) -> None:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, 3))
    bounds = Bounds(unit=unit, sums=2.0, counts=5 if unit is Unit.CLIENT else 1)
    records = stretch * rng.normal(size=(size if unit is Unit.CLIENT else 1, 3))
    noise = Watching()
    run_round([records], centres, bounds, noise)  # type: ignore[arg-type]
    sums, counts = noise.seen
    assert sum(int(value) ** 2 for value in sums.ravel()) <= LONGEST**2
    assert np.abs(counts).sum() <= bounds.counts
    if unit is Unit.RECORD:
        assert set(np.flatnonzero(sums.any(axis=1))) <= set(np.flatnonzero(counts))


@pytest.mark.parametrize("unit", list(Unit))
def test_contributions_of_units_add_up(points: np.ndarray, unit: Unit) -> None:
    """Otherwise a bound for one unit would say nothing of the sum over all."""
    bounds = Bounds(unit=unit, sums=1.0, counts=3)
    units = np.array_split(points, 20 if unit is Unit.CLIENT else len(points))
    together, alone = Watching(), Watching()
    run_round(units, points[::40], bounds, together)  # type: ignore[arg-type]
    for one in units:
        run_round([one], points[::40], bounds, alone)  # type: ignore[arg-type]
    for place in (0, 1):
        np.testing.assert_array_equal(together.seen[place], sum(alone.seen[place::2]))
    if unit is Unit.RECORD:  # however records are held
        whole = Watching()
        run_round([points], points[::40], bounds, whole)  # type: ignore[arg-type]
        np.testing.assert_array_equal(whole.seen[0], together.seen[0])


def test_the_bound_of_clients_comes_from_the_servers_points(points: np.ndarray) -> None:
    bound = bound_client_sums(points, points[::40], 50, Stream.from_seed(1, "bound"))
    assert bound == bound_client_sums(points, points[::40], 50, Stream.from_seed(1, "bound"))
    assert bound_client_sums(2 * points, 2 * points[::40], 50, Stream.from_seed(1, "bound")) == pytest.approx(2 * bound)
