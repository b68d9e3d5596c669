"""The baselines start from the server's points, or from a packing of the cube as G.3 has it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from cloister.crypto import Stream
from papers.feddp.starts import find_start, pack_cube
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
