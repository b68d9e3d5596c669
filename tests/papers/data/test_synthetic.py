"""The papers' mixtures, and clusters at a given separation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.forecast.families import scale_to_domain
from papers.data.mixtures import feddp_mixture, gaussian_mixture, nearest_centres, s1_like
from papers.data.separation import place_centres, separated_clusters, separation_index, time_synth

GENERATORS = {
    "gaussian_mixture": lambda stream: gaussian_mixture(stream, n=300, k=4, d=5),
    "feddp_mixture": lambda stream: feddp_mixture(stream, clients=5, points_per_client=40).sample,
    "s1_like": s1_like,
    "separated_clusters": lambda stream: separated_clusters(stream, 4, 3, 0.21),
    "time_synth": lambda stream: time_synth(stream, 1000, 5, 2),
}


def stream(seed=7):
    return Stream.from_seed(seed, "test data")


def random_covariance(rng, d):
    root = rng.normal(size=(d, d)) + 0.3 * np.eye(d)
    return root @ root.T


@pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS)
def test_a_seed_names_a_data_set(generate):
    first, again, other = generate(stream()), generate(stream()), generate(stream(8))
    np.testing.assert_array_equal(first.points, again.points)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.points.shape != other.points.shape or not np.array_equal(first.points, other.points)


@pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS)
def test_every_cluster_has_points_and_scaling_fills_the_domain(generate):
    sample = generate(stream())
    assert np.unique(sample.labels).tolist() == list(range(len(sample.centres)))
    scaled = scale_to_domain(sample)
    np.testing.assert_array_equal(scaled.points.min(axis=0), -1)
    np.testing.assert_array_equal(scaled.points.max(axis=0), 1)
    np.testing.assert_array_equal(scaled.labels, sample.labels)


def test_the_nearest_centre_is_another_than_the_components_where_gaussians_overlap():
    sample = gaussian_mixture(stream(), n=2000, k=4, d=3, deviation=6.0)
    nearest = nearest_centres(sample.points, sample.centres)
    distances = np.linalg.norm(sample.points[:, None] - sample.centres, axis=2)
    np.testing.assert_array_equal(nearest, distances.argmin(axis=1))
    assert 0.1 < np.mean(nearest != sample.labels) < 0.75
    assert np.abs(sample.centres).max() <= 10


def test_the_secfc_mixture_has_the_papers_deviation():
    sample = gaussian_mixture(stream(), deviation=1.0)  # far apart in 100 columns: the label is the component
    assert sample.points.shape == (10_000, 100)
    residual = sample.points - sample.centres[sample.labels]
    assert abs(residual.std() - 1.0) < 5 / np.sqrt(2 * residual.size)


def test_the_feddp_mixture_is_as_appendix_g1_says():
    drawn = feddp_mixture(stream(), clients=20, points_per_client=50)
    sample = drawn.sample
    assert sample.centres.shape == (10, 100)
    assert 0 <= sample.centres.min() < 0.01
    assert 0.99 < sample.centres.max() <= 1
    assert [rows.size for rows in drawn.clients] == [50] * 20
    np.testing.assert_array_equal(np.concatenate(drawn.clients), np.arange(1000))
    residual = sample.points - sample.centres[sample.labels]
    assert abs(residual.var() - 0.5) < 5 * 0.5 * np.sqrt(2 / residual.size)
    assert drawn.server_points.shape == (300, 100)
    uniform = drawn.server_points[200:]
    assert 0 <= uniform.min() <= uniform.max() <= 1
    inside = drawn.server_points[:200].reshape(10, 20, 100).mean(axis=1)
    assert np.abs(inside - sample.centres).max() < 6 * np.sqrt(0.5 / 20)


def test_the_feddp_mixture_has_one_server_for_any_number_of_clients():
    few, many = (feddp_mixture(stream(), clients=clients, points_per_client=10) for clients in (3, 7))
    np.testing.assert_array_equal(few.server_points, many.server_points)
    np.testing.assert_array_equal(few.sample.centres, many.sample.centres)


def test_s1_like_is_15_clusters_in_the_plane():
    for seed in range(20):
        sample = s1_like(stream(seed))
        assert sample.points.shape == (5000, 2)
        gaps = np.linalg.norm(sample.centres[:, None] - sample.centres, axis=2) + 1e7 * np.eye(15)
        assert gaps.min() >= 160_000
    assert len(s1_like(stream(), n=400, k=40).centres) == 40


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_the_separation_index_is_the_best_over_all_directions(d, seed):
    rng = np.random.default_rng(seed)
    covariances = random_covariance(rng, d), random_covariance(rng, d)
    difference = rng.normal(size=d) * 5
    z = 1.959963984540054

    def along(direction):
        tails = z * sum(np.sqrt(direction @ covariance @ direction) for covariance in covariances)
        return (direction @ difference - tails) / (direction @ difference + tails)

    index = separation_index(np.zeros(d), covariances[0], difference, covariances[1])
    directions = rng.normal(size=(200, d))
    directions *= np.sign(directions @ difference)[:, None]
    best = max(map(along, directions))
    assert best <= index + 1e-9
    start = np.linalg.solve(covariances[0] + covariances[1], difference)
    found = minimize(lambda a: -along(a / np.linalg.norm(a)), start, method="BFGS", options={"gtol": 1e-9})
    assert index == pytest.approx(-found.fun, abs=1e-5)


def test_the_separation_index_of_two_clusters_on_a_line():
    # Two standard normals 6 apart: the R package calls this 0.21.
    one = np.eye(1)
    assert separation_index([0.0], one, [6.0], one) == pytest.approx(0.21, abs=0.001)
    assert separation_index([0.0], one, [0.0], one) == pytest.approx(-1.0)


def test_scaling_the_columns_leaves_the_index_as_it_is():
    rng = np.random.default_rng(3)
    one, other, scale = random_covariance(rng, 4), random_covariance(rng, 4), np.diag([1, 10, 0.01, 3])
    mean = rng.normal(size=4) * 4
    plain = separation_index(np.zeros(4), one, mean, other)
    scaled = separation_index(np.zeros(4), scale @ one @ scale, scale @ mean, scale @ other @ scale)
    assert scaled == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize("target", [-0.2, 0.21, 0.70])
@pytest.mark.parametrize(("k", "d"), [(2, 2), (12, 2), (12, 8)])
def test_each_clusters_nearest_neighbour_is_at_the_target(target, k, d):
    rng = np.random.default_rng(k * d)
    covariances = np.stack([random_covariance(rng, d) for _ in range(k)])
    centres = place_centres(stream(), covariances, target)
    index = np.full((k, k), np.inf)
    for i in range(k):
        for j in range(i):
            index[i, j] = index[j, i] = separation_index(centres[i], covariances[i], centres[j], covariances[j])
    np.testing.assert_allclose(index.min(axis=1), target, atol=1e-9)


def test_drawn_clusters_meet_the_target_as_measured_from_their_points():
    for target in (0.21, 0.70):
        sample = separated_clusters(stream(), 6, 4, target)
        sizes = np.bincount(sample.labels)
        assert 0.75 * 10_000 / 6 <= sizes.min() <= sizes.max() <= 1.25 * 10_000 / 6
        own = [sample.points[sample.labels == cluster] for cluster in range(6)]
        nearest = [
            min(separation_index(a.mean(axis=0), np.cov(a.T), b.mean(axis=0), np.cov(b.T)) for b in own if b is not a)
            for a in own
        ]
        np.testing.assert_allclose(nearest, target, atol=0.05)


def test_time_synth_has_exact_sizes():
    np.testing.assert_array_equal(np.bincount(time_synth(stream(), 10_000, 5, 2).labels), [2000] * 5)
    with pytest.raises(ConfigError, match="multiple of k"):
        time_synth(stream(), 10_001, 5, 2)


def test_wrong_sizes_and_separations_are_refused():
    for call in (
        lambda: gaussian_mixture(stream(), n=0),
        lambda: separated_clusters(stream(), 3, 2, 1.0),
        lambda: separated_clusters(stream(), 3, 0, 0.2),
        lambda: separated_clusters(stream(), 3, 2, 0.2, average_size=0),
        lambda: feddp_mixture(stream(), clients=0),
    ):
        with pytest.raises(ConfigError):
            call()
