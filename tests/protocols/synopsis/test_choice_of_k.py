"""The choice of k: right where clusters are clear, the same for all parties, and never without an answer."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.numeric import FixedPoint
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.synopsis.choice_of_k import list_candidates, measure_silhouette
from cloister.protocols.synopsis.histogram import Histogram
from cloister.protocols.synopsis.settings import Settings
from cloister.records import ArrayRecords
from tests.protocols.synopsis.sessions import rehearse


def find_k(points, *, k_max=12, seed=1, epsilon=1.0, choose_k=True):
    settings = Settings(
        clusters=k_max,
        dimensions=points.shape[1],
        budget=Budget(epsilon=epsilon, delta=1e-6),
        parties=2,
        choose_k=choose_k,
    )
    records = ArrayRecords(FixedPoint(16).quantise(np.clip(points, -1.0, 1.0)))
    sampler = SimulationSampler(Stream.from_seed(seed, "noise"))
    return rehearse(settings, [records], sampler=sampler, stream=Stream.from_seed(seed, "start")).finding


def make_corners(k, d, *, n=20_000, std=0.06, seed=0):
    """k clusters of one size, at different corners of a cube."""
    rng = np.random.default_rng([seed, k, d])
    corners = set()
    while len(corners) < k:
        corners.add(tuple(rng.choice([-0.6, 0.0, 0.6] if d < 5 else [-0.6, 0.6], d)))
    return np.array(sorted(corners))[rng.integers(k, size=n)] + std * rng.standard_normal((n, d))


@pytest.mark.parametrize("k", [2, 4, 7])
@pytest.mark.parametrize(("d", "route"), [(2, "direct"), (20, "projected")])
def test_clear_clusters_are_counted(k, d, route):
    finding = find_k(make_corners(k, d))
    assert finding.layout.route == route
    assert finding.centres.shape == (k, d)
    assert len(finding.sizes.clusters) == k
    assert np.array(finding.sizes.clusters) == pytest.approx(20_000 / k, rel=0.25)


def test_the_curve_holds_every_k_and_the_chosen_one_scores_best():
    curve = find_k(make_corners(4, 2)).curve
    assert [tried.k for tried in curve] == list(range(2, 13))
    best = max(curve, key=lambda tried: tried.score)
    assert best.k == 4
    assert all(np.isfinite([tried.loss, tried.score]).all() for tried in curve)
    losses = [tried.loss for tried in curve]
    assert losses[0] > 2 * losses[2]
    assert losses[-1] < losses[2]  # the loss alone would always take the most clusters


def test_all_parties_choose_alike_and_other_noise_may_choose_otherwise():
    points = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    first, second, other = (find_k(points, seed=seed) for seed in (1, 1, 2))
    assert first.curve == second.curve
    assert (first.centres == second.centres).all()
    assert first.curve != other.curve


@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("std", [0.0, 0.2])
def test_one_cluster_is_cut_into_something(d, std):
    points = 0.3 + std * np.random.default_rng(0).standard_normal((5000, d))
    finding = find_k(points, k_max=6)
    assert 2 <= len(finding.centres) <= 6
    assert len(np.unique(finding.centres, axis=0)) == len(finding.centres)


def test_two_at_most_is_two():
    finding = find_k(make_corners(5, 2), k_max=2)
    assert finding.centres.shape == (2, 2)
    assert [tried.k for tried in finding.curve] == [2]


def test_references_lower_k_where_there_are_no_clusters():
    """A bell of 1,000 records in 3-d: median 10 or less, about 20 without references. In 2-d they help little."""
    chosen = [
        len(find_k(0.2 * np.random.default_rng(seed).standard_normal((1000, 3)), k_max=20, seed=seed).centres)
        for seed in range(5)
    ]
    assert np.median(chosen) <= 10


def test_a_given_k_has_no_curve():
    finding = find_k(make_corners(4, 2), k_max=5, choose_k=False)
    assert finding.curve == ()
    assert finding.centres.shape == (5, 2)


@pytest.mark.parametrize("k_max", [2, 3, 30, 31, 100, 1000])
def test_candidates_rise_to_the_most_with_small_gaps(k_max):
    ks = list_candidates(k_max)
    assert (ks[0], ks[-1]) == (2, k_max)
    gaps = np.diff(ks)
    assert (gaps >= 1).all()
    assert (gaps <= np.maximum(1, 0.1 * np.array(ks[:-1]))).all()
    assert len(ks) <= 80


def test_the_silhouette_of_a_cell_is_not_perfect_and_coinciding_centres_count_nothing():
    points = np.array([[0.0], [1.0]])
    cells = Histogram(points=points, weights=np.array([1.0, 3.0]), variance=1.0, cell_variance=0.0)
    assert measure_silhouette(cells, points) == 1.0
    assert measure_silhouette(cells, np.zeros((2, 1))) == 0.0
    wide = Histogram(points=points, weights=np.array([1.0, 3.0]), variance=1.0, cell_variance=1 / 3)
    assert measure_silhouette(wide, points) == pytest.approx(1 - np.sqrt((1 / 3) / (4 / 3)))
