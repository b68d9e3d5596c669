"""Initial centres: where they lie, how often each is drawn, and that a stream determines them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chisquare

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans import (
    kmeans_plus_plus,
    random_in_domain,
    random_records,
    sphere_packing,
)

ALPHA = 1e-6


def stream(seed: int = 7) -> Stream:
    return Stream.from_seed(seed, "test")


def test_random_in_domain_fills_the_domain() -> None:
    centres = random_in_domain(stream(), 4000, 3)
    assert centres.min() >= -1
    assert centres.max() < 1
    counts = np.histogram(centres, bins=20, range=(-1, 1))[0]
    assert chisquare(counts).pvalue > ALPHA


def test_random_records_are_different_rows_all_alike() -> None:
    points = np.arange(10.0)[:, None]
    source = stream()
    drawn = [random_records(source, points, 3)[:, 0] for _ in range(2000)]
    assert all(len(set(rows)) == 3 for rows in drawn)
    assert chisquare(np.bincount(np.concatenate(drawn).astype(int), minlength=10)).pvalue > ALPHA
    with pytest.raises(ConfigError, match="at most the number of records, 10; got 11"):
        random_records(source, points, 11)


def test_kmeans_plus_plus_draws_by_weight_and_then_by_weighted_squared_distance() -> None:
    points = np.array([[0.0], [1.0], [3.0], [7.0]])
    weights = np.array([1.0, 2.0, 4.0, 0.0])
    source = stream()
    pairs = [kmeans_plus_plus(source, points, 2, weights)[:, 0] for _ in range(6000)]
    first = np.array([np.sum([pair[0] == value for pair in pairs]) for value in (0, 1, 3, 7)])
    assert first[3] == 0
    assert chisquare(first[:3], 6000 * np.array([1, 2, 4]) / 7).pvalue > ALPHA
    # After 3.0: masses 1 * 9 and 2 * 4; the point of zero weight never.
    second = np.array([np.sum([tuple(pair) == (3.0, value) for pair in pairs]) for value in (0, 1, 7)])
    assert second[2] == 0
    assert chisquare(second[:2], second.sum() * np.array([9, 8]) / 17).pvalue > ALPHA


@pytest.mark.parametrize("candidates", [1, 5])
def test_kmeans_plus_plus_finds_k_different_points_wherever_there_are(candidates: int) -> None:
    points = np.repeat(np.array([[0.0], [1e-9], [1.0], [0.5]]), 50, axis=0)
    weights = np.where(points[:, 0] == 0.5, 0.0, 1.0)
    for seed in range(30):
        centres = kmeans_plus_plus(stream(seed), points, 4, weights, candidates=candidates)
        assert len(np.unique(centres)) == 4
    assert kmeans_plus_plus(stream(), points, 6, weights, candidates=candidates).shape == (6, 1)


def test_greedy_kmeans_plus_plus_leaves_less_loss_on_average() -> None:
    points = np.random.default_rng(0).normal(size=(500, 2))

    def mean_loss(candidates: int) -> float:
        losses = []
        for seed in range(40):
            centres = kmeans_plus_plus(stream(seed), points, 12, candidates=candidates)
            losses.append(((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum())
        return float(np.mean(losses))

    assert mean_loss(5) < 0.9 * mean_loss(1)


@pytest.mark.parametrize("weights", [np.array([1.0, -1.0]), np.array([1.0]), np.array([1.0, np.nan])])
def test_weights_are_checked(weights: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="weights"):
        kmeans_plus_plus(stream(), np.zeros((2, 1)), 1, weights)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 1), (3, 1), (5, 2), (20, 3), (100, 2), (20, 800)])
def test_sphere_packing_keeps_its_distances(k: int, d: int) -> None:
    started = time.process_time()
    centres = sphere_packing(stream(), k, d)
    assert time.process_time() - started < 2.0  # about 0.1 s; more means the search has lost its bound
    to_boundary = 1.0 - np.abs(centres).max()
    apart = pdist(centres).min() if k > 1 else np.inf
    # Some radius a has boundary distance >= a and separation >= 2a; a tenth of the largest cube packing is easy.
    assert min(to_boundary, apart / 2) > 0.1 / np.ceil(k ** (1 / d))
    np.testing.assert_array_equal(centres, sphere_packing(stream(), k, d))
    assert k == 1 or (centres != sphere_packing(stream(8), k, d)).any()


def test_sphere_packing_spreads_more_than_chance() -> None:
    packed = [pdist(sphere_packing(stream(seed), 15, 2)).min() for seed in range(10)]
    chance = [pdist(random_in_domain(stream(seed), 15, 2)).min() for seed in range(10)]
    assert min(packed) > 0.33  # 15 squares of a 4 x 4 grid would give 0.5
    assert np.mean(packed) > 3 * np.mean(chance)


def test_counts_must_be_positive() -> None:
    for call in (random_in_domain, sphere_packing):
        for k, d in ((0, 1), (1, 0)):
            with pytest.raises(ConfigError, match="at least 1; got 0"):
                call(stream(), k, d)
