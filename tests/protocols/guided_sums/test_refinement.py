"""The rounds: clear steps are made, noise is not followed, and a bad start is repaired."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.kmeans import nearest
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.postprocessing import Sketch
from cloister.protocols.guided_sums.refinement import _COUNT_PART, choose_rounds, refine_centres
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis.grid_plan import widen_radii
from tests.protocols.synopsis.steps import answer, make_settings


def refine(points, centres, *, rounds, epsilon, radius=0.3, seed=1, noisy=True, unit=Unit.RECORD, parties=1, **options):
    """Rounds from these centres; the histogram has counted the clusters badly, unless told otherwise."""
    k, d = centres.shape
    public = make_settings(
        clusters=k, dimensions=d, epsilon=epsilon, unit=unit, parties=parties, rounds_min=rounds, rounds_max=rounds
    )
    n = float(len(points))
    start = {
        "weights": np.full(k, n / k),
        "weight_variances": np.full(k, n**2),
        "centre_variances": np.full((k, d), 0.01),
    }
    start |= options
    asking = refine_centres(
        public,
        l2_squared=BUDGET_UNITS,
        records=n,
        centres=centres,
        radii=np.full(k, radius),
        sketch=Sketch(points=points[:300], weights=np.ones(len(points[:300]))),
        stream=Stream.from_seed(1, "swaps"),
        **start,
    )
    parts = np.array_split(points, parties)
    return answer(asking, parts, noise_std=public.noise_std if noisy else 0.0, seed=seed)


def make_clusters(k, d, *, each=200, std=0.05, seed=0):
    rng = np.random.default_rng(seed)
    places = rng.uniform(-0.7, 0.7, (k, d))
    points = (places[:, None] + std * rng.standard_normal((k, each, d))).reshape(-1, d)
    return np.clip(points, -1, 1)[rng.permutation(k * each)], places


# --- steps --------------------------------------------------------------------------------------------------------


def raw_steps(answered, k, d):
    """What the last round says, its noise not allowed for, in radii."""
    released = answered.totals[-1].reshape(k, d + 2)
    scale = (answered.queries[-1].l2_squared / (1 + 2 / _COUNT_PART**2)) ** 0.5
    return released[:, :d] / scale / np.maximum(released[:, -1:] / (scale / _COUNT_PART), 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_steps_that_are_all_noise_are_not_made(seed):
    points, places = make_clusters(10, 8)
    centres = np.array([points[nearest(points, places).labels == j].mean(axis=0) for j in range(10)])
    answered = refine(points, centres, rounds=1, epsilon=0.5, seed=seed)
    moved = np.linalg.norm(answered.found.centres - centres)
    noise = 0.3 * np.linalg.norm(raw_steps(answered, 10, 8))
    assert noise > 0.1
    assert moved < 0.25 * noise


def test_steps_that_are_clear_are_made():
    points, places = make_clusters(4, 2, each=1000)
    means = np.array([points[nearest(points, places).labels == j].mean(axis=0) for j in range(4)])
    for rounds in (1, 3):
        found = refine(points, means + np.array([0.06, -0.04]), rounds=rounds, epsilon=8.0).found
        np.testing.assert_allclose(found.centres, means, atol=0.004)
        np.testing.assert_allclose(found.counts, 1000, atol=15)
        assert found.rounds == rounds


def test_between_the_two_a_shrunk_step_is_nearer_than_the_raw_one():
    points, places = make_clusters(12, 8)
    means = np.array([points[nearest(points, places).labels == j].mean(axis=0) for j in range(12)])
    start = means + np.random.default_rng(5).normal(scale=0.005, size=means.shape)
    answered = refine(points, start, rounds=1, epsilon=1.0)
    raw = start + 0.3 * raw_steps(answered, 12, 8)
    assert np.linalg.norm(answered.found.centres - means) < 0.85 * np.linalg.norm(raw - means)


def test_no_step_is_longer_than_the_radius_and_none_leaves_the_domain():
    points = np.ones((50, 2))
    found = refine(points, np.array([[0.0, 0.0]]), rounds=1, epsilon=50.0, radius=0.2).found
    assert 0.19 < np.linalg.norm(found.centres) <= 0.2 + 1e-9
    found = refine(points, np.array([[0.9, 0.9]]), rounds=6, epsilon=2.0, radius=0.5, weights=np.array([1e-3])).found
    assert np.abs(found.centres).max() <= 1.0


def test_the_first_rounds_counts_are_combined_with_the_histograms():
    """By inverse variances: a histogram that is sure is believed, one that is not is not."""
    points, places = make_clusters(2, 2, each=400)
    for variance, least, most in ((1e-6, 499, 501), (1e12, 350, 450)):
        weights = {"weights": np.full(2, 500.0), "weight_variances": np.full(2, variance)}
        found = refine(points, places, rounds=1, epsilon=2.0, **weights).found
        assert ((least < found.counts) & (found.counts < most)).all()


def test_clients_histograms_are_rescaled_before_they_are_combined():
    points, places = make_clusters(2, 2, each=3000)
    sure = {"weights": np.full(2, 1e6), "weight_variances": np.full(2, 1e-6)}
    options = {"rounds": 1, "unit": Unit.CLIENT, "parties": 300}
    found = refine(points, places + 0.1, epsilon=20.0, **options, **sure).found
    np.testing.assert_allclose(found.centres, places, atol=0.02)  # a count of 10^6 would leave them where they are


def test_rounds_that_are_not_needed_cost_nothing_and_the_others_share_the_budget_equally():
    points, places = make_clusters(3, 2)
    public = make_settings(clusters=3, epsilon=0.2, rounds_min=2, rounds_max=6)
    asking = refine_centres(
        public,
        l2_squared=BUDGET_UNITS,
        records=600.0,
        centres=places,
        radii=np.full(3, 0.3),
        weights=np.full(3, 200.0),
        weight_variances=np.full(3, 100.0),
        centre_variances=np.full(places.shape, 0.01),
        sketch=Sketch(points=points, weights=np.ones(len(points))),
        stream=Stream.from_seed(1, "swaps"),
    )
    answered = answer(asking, [points], noise_std=public.noise_std)
    assert [query.length for query in answered.queries] == [12, 12, 0, 0, 0, 0]
    assert len({query.l2_squared for query in answered.queries[:2]}) == 1
    assert answered.queries[0].question != answered.queries[1].question
    assert 0.99 * BUDGET_UNITS < answered.l2_squared <= BUDGET_UNITS


# --- swaps in the rounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_start_with_two_centres_on_one_cluster_is_repaired(seed):
    places = np.array([[-0.7, -0.7], [0.7, -0.7], [-0.7, 0.7], [0.0, 0.0], [0.4, 0.7], [0.8, 0.7]])
    rng = np.random.default_rng(seed)
    points = (places[:, None] + 0.04 * rng.standard_normal((6, 500, 2))).reshape(-1, 2)[rng.permutation(3000)]
    start = np.vstack([places[0] + 0.02, places[0] - 0.02, places[1:4], (places[4] + places[5]) / 2])
    found = refine(points, start, rounds=5, epsilon=2.0, seed=seed).found
    near = nearest(places, found.centres)
    assert sorted(near.labels) == list(range(6))
    assert near.squared_distances.max() < 0.03**2
    np.testing.assert_allclose(found.counts, 500, rtol=0.15)


def test_the_last_round_swaps_nothing():
    """Nobody would look at the result: a centre that was just moved has made no step."""
    points, places = make_clusters(5, 2, seed=3)
    start = np.vstack([places[0] + 0.01, places[0] - 0.01, places[1:3], (places[3] + places[4]) / 2])
    found = refine(points, start, rounds=1, epsilon=20.0, radius=0.1).found
    assert (np.linalg.norm(found.centres - start, axis=1) <= 0.1 + 1e-9).all()


# --- how many rounds, and how wide --------------------------------------------------------------------------------


def test_the_less_noise_the_more_rounds_within_the_limits():
    public = make_settings(clusters=4, dimensions=4, rounds_min=2, rounds_max=7)
    sizes = np.geomspace(10.0, 1e7, 40)
    rounds = [choose_rounds(public, l2_squared=BUDGET_UNITS, records=size, clusters=4) for size in sizes]
    assert rounds == sorted(rounds)
    assert rounds[0] == 2
    assert rounds[-1] == 7
    assert len(set(rounds)) > 2
    middle = {"l2_squared": BUDGET_UNITS, "records": 2500.0}
    assert 2 < choose_rounds(public, clusters=4, **middle) < 7
    assert choose_rounds(public, clusters=40, **middle) < choose_rounds(public, clusters=4, **middle)
    assert choose_rounds(public, l2_squared=BUDGET_UNITS // 100, records=2500.0, clusters=4) == 2


def test_radii_are_widened_where_noise_is_small_and_narrowed_a_little_where_it_is_large():
    radii = np.array([0.1, 0.3])
    for d, grows in ((2, 2.0), (60, 1.05)):
        public = make_settings(clusters=2, dimensions=d)
        widened = [widen_radii(public, radii, l2_squared=BUDGET_UNITS, records=10.0**power) for power in range(1, 10)]
        factors = [found / radii for found in widened]
        assert all(np.ptp(factor) < 1e-12 for factor in factors)
        first = [factor[0] for factor in factors]
        assert first == sorted(first)
        assert 0.7 - 1e-9 <= first[0] < 1.0
        assert first[5] > grows
    assert first[-1] < 1.6  # with many columns lengths concentrate, and little is clipped as it is


def test_wider_radii_bring_a_lopsided_clusters_centre_nearer_to_its_mean():
    """Which is why: the mean of clipped offsets is not that of the records."""
    points = np.clip(np.random.default_rng(0).exponential(0.1, (20_000, 2)) - 0.5, -1, 1)
    mean, radius = points.mean(axis=0), points.std() * 2**0.5
    public = make_settings(clusters=1, epsilon=5.0)
    wide = widen_radii(public, np.array([radius]), l2_squared=BUDGET_UNITS, records=20_000.0)[0]
    gaps = [
        np.linalg.norm(refine(points, mean[None] - 0.02, rounds=8, epsilon=5.0, radius=r).found.centres[0] - mean)
        for r in (radius, wide)
    ]
    assert gaps[1] < 0.4 * gaps[0]
