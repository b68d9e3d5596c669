"""FedDP-Lloyds: without noise it is Lloyd's algorithm; contributions keep their bounds; the budget is kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.kmeans import lloyd
from cloister.privacy.units import Budget, Unit
from papers.feddp.lloyds import LONGEST, Bounds, bound_client_sums, run_feddp_lloyds, run_round


class Silent:
    """A sampler of zeros that remembers what it was asked for."""

    is_simulation = True

    def __init__(self) -> None:
        self.asked: list[tuple[object, int]] = []

    def draw(self, mechanism, entries, on_progress=None):
        self.asked.append((mechanism, entries))
        return np.zeros(entries, dtype=np.int64)


class Watching:
    """A desk that keeps the exact numbers and adds nothing."""

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
    desk = Watching()
    run_round([records], centres, bounds, desk)  # type: ignore[arg-type]
    sums, counts = desk.seen
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
