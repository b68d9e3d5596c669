"""The start: noise is taken out of the histogram, and its cells give centres where the records are."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.kmeans import nearest
from cloister.protocols.guided_sums.postprocessing import estimate_counts
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.protocols.synopsis.histogram import Histogram, cluster_cells, release_histogram
from cloister.protocols.synopsis.questions import Grid
from tests.protocols.synopsis.steps import answer, make_settings

PLACES = np.array([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.6]])


def spoil(counts, noise_std, seed=0):
    return counts + noise_std * np.random.default_rng(seed).standard_normal(len(counts))


def test_empty_cells_are_emptied_and_full_ones_kept():
    counts = np.repeat([0.0, 200.0], [950, 50])
    posterior = estimate_counts(spoil(counts, 10.0), 10.0, level=10.0)
    assert posterior.means[:950].max() < 5
    assert posterior.means[:950].mean() < 1  # what a cut at 0 leaves of the noise has mean 4
    np.testing.assert_allclose(posterior.means[950:], 200.0, atol=30)
    assert (posterior.occupied[:950] < 0.1).all()
    assert (posterior.occupied[950:] > 0.99).all()
    assert posterior.means.sum() == pytest.approx(counts.sum(), rel=0.06)


def test_cells_that_are_all_alike_are_shrunk_to_their_mean():
    noisy = spoil(np.full(1000, 20.0), 10.0)
    posterior = estimate_counts(noisy, 10.0, level=10.0)
    assert posterior.means.mean() == pytest.approx(20.0, rel=0.03)
    assert posterior.means.std() < 3
    assert (posterior.occupied > 0.5).mean() > 0.99


def test_counts_of_many_sizes_are_nearer_than_what_was_released():
    counts = np.random.default_rng(4).gamma(0.3, 60.0, 3000)
    noisy = spoil(counts, 15.0)
    means = estimate_counts(noisy, 15.0, level=15.0).means
    assert ((means - counts) ** 2).mean() < 0.8 * ((np.maximum(noisy, 0) - counts) ** 2).mean()
    assert means.sum() == pytest.approx(counts.sum(), rel=0.03)
    order = np.argsort(noisy)
    assert (np.diff(means[order]) > -1e-9).all()  # more was released where more is believed


@pytest.mark.parametrize("noisy", [np.zeros(1), np.zeros(9), np.full(9, -50.0), np.array([2.0**52, -(2.0**52), 0.0])])
def test_whatever_was_released_there_is_a_count_for_each_cell(noisy):
    posterior = estimate_counts(noisy, 3.0, level=3.0)
    assert posterior.means.shape == posterior.occupied.shape == noisy.shape
    assert np.isfinite(posterior.means).all()
    assert (posterior.means >= 0).all()
    assert ((posterior.occupied >= 0) & (posterior.occupied <= 1 + 1e-9)).all()


# --- the histogram ------------------------------------------------------------------------------------------------


def make_blobs(n=3000, d=2):
    rng = np.random.default_rng(1)
    points = PLACES[rng.integers(3, size=n)] + 0.05 * rng.standard_normal((n, 2))
    return np.hstack([points, 0.05 * rng.standard_normal((n, d - 2))])


def make_histogram(points, *, subspace=False, epsilon=1.0, clusters=3, bins=30, seed=1):
    d = points.shape[1]
    public = make_settings(clusters=clusters, dimensions=d, epsilon=epsilon)
    where = Subspace(origin=np.zeros(d), axes=np.ascontiguousarray(np.eye(d)[:, :2])) if subspace else None
    grid = Grid(low=np.full(2, -1.0), high=np.ones(2), bins=np.full(2, bins), subspace=where)
    share = BUDGET_UNITS // 2
    asking = release_histogram(public, grid, l2_squared=share, records=float(len(points)))
    return answer(asking, [points], noise_std=public.noise_std, seed=seed), share


@pytest.mark.parametrize("subspace", [False, True], ids=["columns", "subspace"])
def test_the_cells_that_are_kept_are_those_with_records(subspace):
    points = make_blobs(d=7 if subspace else 2)
    answered, share = make_histogram(points, subspace=subspace)
    histogram = answered.found
    distances = nearest(histogram.points, PLACES).squared_distances ** 0.5
    near = distances < 0.25
    assert near.mean() > (0.2 if subspace else 0.9)  # in a subspace more is kept, and weighs little
    assert histogram.weights[near].sum() > 0.95 * histogram.weights.sum()
    assert histogram.weights.sum() == pytest.approx(len(points), rel=0.12)
    assert 0.99 * share < answered.l2_squared <= share
    side = 2 / 30
    assert histogram.cell_variance == pytest.approx(2 * side**2 / 12)


def test_some_cells_are_kept_where_nothing_is_clear():
    histogram = make_histogram(make_blobs(5), epsilon=0.05, clusters=7)[0].found
    assert len(histogram.points) >= 28
    assert (histogram.weights > 0).all()


def test_the_variance_of_a_weight_is_that_of_the_noise():
    answered, share = make_histogram(np.zeros((0, 2)), epsilon=1.0, clusters=225, bins=30)
    height = share**0.5
    assert answered.found.variance == pytest.approx((answered.totals[0] / height).var(), rel=0.25)


# --- the clusters of the cells ------------------------------------------------------------------------------------


def test_clusters_of_cells_are_where_the_records_are():
    points = make_blobs()
    histogram = make_histogram(points, epsilon=5.0)[0].found
    start = cluster_cells(histogram, 3, restarts=5, stream=Stream.from_seed(1, "cells"))
    labels = nearest(PLACES, start.centres).labels
    assert sorted(labels) == [0, 1, 2]
    np.testing.assert_allclose(start.centres[labels], PLACES, atol=0.03)
    np.testing.assert_allclose(start.weights, 1000, rtol=0.12)
    # The median: a far cell that the noise let stay may widen one of them.
    assert np.median(start.variances) == pytest.approx(2 * 0.05**2, rel=0.4)
    assert start.loss == pytest.approx(start.weights @ start.variances / start.weights.sum())


def test_the_noise_of_a_cluster_is_that_of_its_cells_and_a_cell_has_a_width():
    cells = np.array([[-0.5], [-0.4], [-0.3], [0.7]])
    histogram = Histogram(points=cells, weights=np.array([1.0, 2.0, 1.0, 5.0]), variance=4.0, cell_variance=0.01)
    start = cluster_cells(histogram, 2, restarts=3, stream=Stream.from_seed(1, "cells"))
    order = np.argsort(start.centres[:, 0])
    np.testing.assert_allclose(start.centres[order, 0], [-0.4, 0.7])
    np.testing.assert_allclose(start.weights[order], [4, 5])
    np.testing.assert_allclose(start.weight_variances[order], [12, 4])
    np.testing.assert_allclose(start.variances[order], [0.01 / 2 + 0.01, 0.01])
    assert start.loss == pytest.approx(4 / 9 * 0.005 + 0.01)
