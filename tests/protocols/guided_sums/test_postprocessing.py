"""Swaps: a centre that two clusters share gets help from a cluster that has two, and nothing else moves."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.kmeans import nearest
from cloister.protocols.guided_sums.postprocessing import Sketch, swap_centres

PLACES = np.array([[-0.6, -0.6], [0.6, -0.6], [-0.6, 0.6], [0.5, 0.6], [0.8, 0.6]])
STD = 0.04


def make_points(places=PLACES, *, each=300, std=STD):
    noise = np.random.default_rng(3).standard_normal((len(places), each, places.shape[1]))
    return (places[:, None] + std * noise).reshape(-1, places.shape[1])


def swap(centres, points, *, error=1e-4, cells=None, seed=1):
    """Swap by what a round without noise would release."""
    k = len(centres)
    found = nearest(points, centres)
    counts = np.maximum(np.bincount(found.labels, minlength=k), 1.0)
    variances = np.bincount(found.labels, weights=found.squared_distances, minlength=k) / counts
    cells = points if cells is None else cells
    return swap_centres(
        centres,
        counts=counts,
        variances=variances,
        errors=np.full(k, error),
        sketch=Sketch(points=cells, weights=np.ones(len(cells))),
        stream=Stream.from_seed(seed, "swaps"),
    )


def crowd(places=PLACES):
    """Two centres on the first cluster, one between the last two, one on each other."""
    aside = np.full(places.shape[1], 0.02)
    between = (places[-2] + places[-1]) / 2
    return np.vstack([places[0] - aside, places[0] + aside, places[1:-2], between])


@pytest.mark.parametrize(
    "places",
    [PLACES, np.array([[-0.8], [-0.5], [0.0], [0.5], [0.8]]), np.hstack([PLACES, -PLACES[::-1]])],
    ids=["2-d", "1-d", "4-d"],
)
def test_a_shared_centre_is_split_and_a_spare_one_is_used_for_it(places):
    points, start = make_points(places), crowd(places)
    moved = swap(start, points)
    found = nearest(places, moved)
    assert sorted(found.labels) == list(range(len(places)))
    assert found.squared_distances.max() < 0.05**2
    assert nearest(places, start).squared_distances.max() > 0.14**2
    still = [2, 3]  # the others stay where they are, to the bit; of the two twins one stays
    np.testing.assert_array_equal(moved[still], start[still])
    assert sum(np.array_equal(moved[twin], start[twin]) for twin in (0, 1)) == 1


def test_two_shared_centres_are_both_helped():
    far = np.array([[-0.9, 0.0], [0.9, 0.0]])
    places = np.vstack([PLACES, far, [[0.0, -0.7], [0.0, -0.9]], [[0.0, 0.9], [0.2, -0.1], [-0.3, 0.1]]])
    start = np.vstack([crowd(PLACES), far[0] - 0.02, far[0] + 0.02, far[1], [[0.0, -0.8]], places[-3:]])
    assert len(start) == len(places)
    found = nearest(places, swap(start, make_points(places, std=0.02)))
    assert sorted(found.labels) == list(range(len(places)))
    assert found.squared_distances.max() < 0.05**2


def test_clusters_that_each_have_a_centre_keep_it():
    np.testing.assert_array_equal(swap(PLACES, make_points()), PLACES)


def test_nothing_moves_on_the_word_of_noise():
    """The excess of the shared centre is 0.15^2; two standard deviations are not enough."""
    excess = 0.15**2
    np.testing.assert_array_equal(swap(crowd(), make_points(), error=0.7 * excess), crowd())
    assert not np.array_equal(swap(crowd(), make_points(), error=0.3 * excess), crowd())


def test_nothing_moves_where_no_centre_can_be_spared():
    """One cluster is wider than the others, and giving up any centre would cost more than splitting it saves."""
    points = make_points()
    points[:300] = PLACES[0] + 2 * (points[:300] - PLACES[0])
    np.testing.assert_array_equal(swap(PLACES, points), PLACES)


@pytest.mark.parametrize("k", [1, 2])
def test_fewer_than_three_centres_have_nobody_to_spare(k):
    centres = np.array([[0.3, 0.0], [0.31, 0.0]])[:k]
    np.testing.assert_array_equal(swap(centres, make_points()), centres)


def test_all_parties_make_the_same_swaps():
    points = make_points()
    np.testing.assert_array_equal(swap(crowd(), points), swap(crowd(), points))
    # With one cell or none there, nothing tells the direction, and the common stream decides it.
    cells = PLACES[:3]
    first, again, other = (swap(crowd(), points, cells=cells, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.isfinite(first).all()


def test_split_centres_stay_in_the_domain():
    places = PLACES.copy()
    places[-2:] = [[0.999, 0.2], [0.999, 0.8]]
    points = np.clip(make_points(places), -1, 1)
    moved = swap(crowd(places), points, cells=PLACES[:3])
    assert not np.array_equal(moved, crowd(places))
    assert np.abs(moved).max() <= 1
