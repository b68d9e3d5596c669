"""On the papers' own data sets masked sums give scikit-learn's centres, whoever holds which records."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from cloister.crypto import Stream
from cloister.kmeans import kmeans_plus_plus
from cloister.numeric import FixedPoint
from papers.data.files import find_data
from tests.protocols.multiparty_lloyd.sessions import make_session, split

FOLDER = find_data()
ROUNDS = 8


@pytest.mark.skipif(FOLDER is None, reason="the papers' data sets are neither in CLOISTER_DATA nor beside the checkout")
@pytest.mark.parametrize(
    ("name", "clusters", "ring_bits"), [("iris", 3, 32), ("lsun", 3, 32), ("house", 3, 32), ("s1", 15, 32)]
)
def test_the_papers_data_sets_give_scikit_learns_centres(name, clusters, ring_bits):
    points = np.loadtxt(FOLDER / f"{name}.txt")
    low, high = points.min(axis=0), points.max(axis=0)
    grid = FixedPoint().quantise(2 * (points - low) / (high - low) - 1)
    start = kmeans_plus_plus(Stream.from_seed(1, name), grid, clusters)
    session = make_session(
        records=split(grid, 3), clusters=clusters, iterations=ROUNDS, initialisation="given", start=start
    )
    _, parties = session.run()
    expected = KMeans(clusters, init=start, n_init=1, max_iter=ROUNDS, tol=0, algorithm="lloyd").fit(grid)
    assert np.allclose(parties[0].centres, expected.cluster_centers_, rtol=0, atol=1e-10)
    assert session.agreement.ring.bits == ring_bits
