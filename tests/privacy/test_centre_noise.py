"""Variances of quotients, of weighted means and of blended centres, against simulation."""

import numpy as np
import pytest

from cloister.privacy.centre_noise import UNKNOWN, blend, blur_means, blur_weighted_means

RUNS = 100_000


def test_a_noisy_sum_over_a_noisy_count_varies_as_stated():
    rng = np.random.default_rng(1)
    sums, counts = np.array([[300.0, -600.0], [20.0, 0.0]]), np.array([1000.0, 400.0])
    sum_std, count_std = 8.0, np.array([15.0, 12.0])
    quotients = (sums + sum_std * rng.standard_normal((RUNS, 2, 2))) / (
        counts + count_std * rng.standard_normal((RUNS, 2))
    )[:, :, None]
    stated = blur_means(sums / counts[:, None], counts, sum_std=sum_std, count_variances=count_std**2)
    assert np.sqrt(stated) == pytest.approx(quotients.std(axis=0), rel=0.02)
    without_counts = blur_means(sums / counts[:, None], counts, sum_std=sum_std, count_variances=0.0)
    assert without_counts[0, 1] < 0.7 * stated[0, 1], "the noise of counts is a part that shows"


def test_a_mean_over_noisy_weights_varies_as_stated():
    rng = np.random.default_rng(2)
    points, labels = rng.uniform(-0.5, 0.5, (40, 3)), np.arange(40) % 2
    weights, std = rng.uniform(100, 300, 40), 10.0
    noisy = weights + std * rng.standard_normal((RUNS // 10, 40))
    means = [(noisy[:, labels == j] @ points[labels == j]) / noisy[:, labels == j].sum(axis=1)[:, None] for j in (0, 1)]
    centres = np.stack([weights[labels == j] @ points[labels == j] / weights[labels == j].sum() for j in (0, 1)])
    stated = blur_weighted_means(points, labels, weights, centres, std**2)
    assert np.sqrt(stated) == pytest.approx(np.stack(means).std(axis=1), rel=0.04)


def test_of_a_cluster_without_points_nothing_is_known():
    stated = blur_weighted_means(np.zeros((1, 2)), np.zeros(1, dtype=np.int32), np.ones(1), np.zeros((2, 2)), 1.0)
    assert stated.tolist() == [[0, 0], [UNKNOWN, UNKNOWN]]


def test_steps_keep_a_part_of_earlier_noise_and_take_a_part_of_the_new():
    left, fresh = np.array([[0.01, 0.04]]), np.array([[0.09, 0.09]])
    assert blend(left, fresh, 0.0).tolist() == left.tolist()
    assert blend(left, fresh, 1.0).tolist() == fresh.tolist()
    assert blend(left, fresh, np.array([[0.5]])) == pytest.approx(np.array([[0.025, 0.0325]]))
    rng = np.random.default_rng(3)
    walked, variance = np.zeros(RUNS), np.zeros((1, 1))
    for gain in (1.0, 0.7, 0.3, 0.5):
        walked = (1 - gain) * walked + gain * 0.2 * rng.standard_normal(RUNS)
        variance = blend(variance, np.array([[0.04]]), gain)
    assert walked.std() == pytest.approx(float(np.sqrt(variance[0, 0])), rel=0.02)


@pytest.mark.parametrize("fresh", [1.0, 1e300, np.inf])
def test_nothing_is_less_certain_than_a_coordinate_of_which_only_the_range_is_known(fresh):
    assert blend(np.array([[0.1]]), np.array([[fresh]]), 1.0).tolist() == [[UNKNOWN]]
    assert np.isfinite(blend(np.array([[0.1]]), np.array([[fresh]]), 0.0)).all()
    assert np.random.default_rng(4).uniform(-1, 1, RUNS).var() == pytest.approx(UNKNOWN, rel=0.02)
