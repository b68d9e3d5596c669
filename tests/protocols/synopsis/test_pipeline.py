"""The whole synopsis: near k-means without privacy where the budget is generous, and always with k centres."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.kmeans import cluster_sums, weighted_kmeans
from cloister.numeric import FixedPoint
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.records import ArrayRecords
from tests.protocols.synopsis.sessions import rehearse
from tests.protocols.synopsis.steps import make_settings
from tests.sessions import split


def make_mixture(k, d, *, n=3000, std=0.04, seed=0):
    """Clusters of different sizes; no two of their places are near each other."""
    rng = np.random.default_rng([seed, k, d])
    places = rng.uniform(-0.8, 0.8, (1, d))
    while len(places) < k:
        place = rng.uniform(-0.8, 0.8, (1, d))
        if np.linalg.norm(places - place, axis=1).min() > 0.9 * d**0.5 / k:
            places = np.vstack([places, place])
    parts = rng.dirichlet(np.full(k, 5.0))
    return np.clip(places[rng.choice(k, p=parts, size=n)] + std * rng.standard_normal((n, d)), -1, 1)


def find(points, k, *, epsilon=10.0, seed=1, parties=3, restarts=5, **options):
    parts = [ArrayRecords(FixedPoint(16).quantise(part)) for part in split(points, parties)]
    public = make_settings(
        clusters=k, dimensions=points.shape[1], epsilon=epsilon, parties=parties, restarts=restarts, **options
    )
    sampler = SimulationSampler(Stream.from_seed(seed, "noise"))
    return rehearse(public, parts, sampler=sampler, stream=Stream.from_seed(seed, "common"))


def compare(points, centres):
    """The loss over that of k-means without privacy."""
    best = weighted_kmeans(points, len(centres), Stream.from_seed(0, "best"), restarts=10).loss
    return cluster_sums(points, centres).loss / best


@pytest.mark.parametrize(
    ("k", "d", "route"),
    [
        (5, 2, "direct"),
        (3, 4, "direct"),
        (6, 1, "direct"),
        (1, 2, "direct"),
        (1, 1, "direct"),
        (5, 10, "projected"),
        (1, 8, "projected"),
    ],
)
def test_with_a_generous_budget_it_is_k_means(k, d, route):
    points = make_mixture(k, d)
    run = find(points, k)
    assert run.finding.layout.route == route
    assert compare(points, run.finding.centres) < 1.05
    assert run.finding.sizes.total == pytest.approx(3000, rel=0.02)
    assert sum(run.finding.sizes.clusters) == pytest.approx(run.finding.sizes.total)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_bounds_that_are_ten_times_too_wide_cost_little(d):
    points = 0.6 + 0.1 * make_mixture(4, d)
    assert compare(points, find(points, 4).finding.centres) < 1.05


def test_bounds_that_are_ten_times_too_wide_cost_little_in_a_subspace():
    points = 0.6 + 0.1 * make_mixture(4, 10)
    assert compare(points, find(points, 4).finding.centres) < 1.05


def test_with_clients_as_units_many_clients_find_the_clusters():
    points = make_mixture(4, 2, n=4000, seed=2)
    run = find(points, 4, parties=400, unit=Unit.CLIENT, epsilon=10.0)
    assert compare(points, run.finding.centres) < 1.15


def test_more_budget_is_better_and_little_is_still_an_answer():
    points = make_mixture(5, 2)
    ratios = [
        np.mean([compare(points, find(points, 5, epsilon=epsilon, seed=seed).finding.centres) for seed in (1, 2)])
        for epsilon in (0.02, 0.2, 5.0)
    ]
    assert ratios[0] > ratios[1] > ratios[2]
    assert np.isfinite(ratios[0])


# --- always k centres ---------------------------------------------------------------------------------------------

HOSTILE = {
    "zeros": lambda length: np.zeros(length, dtype=np.int64),
    "huge": lambda length: np.full(length, 2**62),
    "hugely negative": lambda length: np.full(length, -(2**62)),
    "alternating": lambda length: np.where(np.arange(length) % 2, 2**40, -(2**40)),
    "one cell": lambda length: np.where(np.arange(length) == length // 2, 2**50, 0),
}


@pytest.mark.parametrize("mood", HOSTILE)
@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
@pytest.mark.parametrize(("k", "d"), [(1, 1), (7, 1), (40, 2), (5, 8)])
def test_there_are_k_different_centres_in_the_domain_whatever_was_released(mood, unit, k, d):
    """Huge steps push all centres into one corner, where they would be equal."""
    public = make_settings(clusters=k, dimensions=d, unit=unit, restarts=1, cells_max=64, rounds_max=3)
    asking = run_synopsis(public, Stream.from_seed(3, "common"))
    query, spent = next(asking), 0
    while True:
        spent += query.l2_squared
        try:
            query = asking.send(HOSTILE[mood](query.length))
        except StopIteration as stop:
            finding = stop.value
            break
    assert finding.centres.shape == (k, d)
    assert len(np.unique(finding.centres, axis=0)) == k
    assert np.abs(finding.centres).max() <= 1
    assert spent <= BUDGET_UNITS


@pytest.mark.parametrize("n", [1, 3])
def test_fewer_records_than_centres_still_give_different_centres(n):
    centres = find(np.full((n, 2), 0.25), 6, epsilon=500.0, parties=1).finding.centres
    assert len(np.unique(centres, axis=0)) == 6
    assert np.linalg.norm(centres - 0.25, axis=1).min() < 0.1
