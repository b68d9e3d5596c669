"""The algorithm: Lloyd exactly where there is no noise (A12), and something sensible whatever is released."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.kmeans import cluster_sums
from cloister.kmeans.lloyd import update_centres
from cloister.protocols.vertical.pipeline import run_vertical
from cloister.protocols.vertical.query import HistogramQuery
from cloister.protocols.vertical.statistics import align_records
from tests.protocols.vertical.tables import make, mixture, rehearse

COMMON = Stream.from_seed(1, "test vertical").child("common")


def quantised_lloyd(table, centres, codebooks, layout, rounds):
    """The reference: assign by representatives, move to the means of the records themselves. Job's column order."""
    cells = align_records(table, layout, codebooks).exact_cells
    seen = table.copy()
    seen[:, layout.order[layout.alice_count :]] = codebooks.reps[cells]
    for _ in range(rounds):
        distances = ((seen[:, None] - centres) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        counts = np.bincount(labels, minlength=len(centres))
        sums = np.stack([np.bincount(labels, weights=column, minlength=len(centres)) for column in table.T], axis=1)
        centres = update_centres(sums, counts, centres)
    return centres


@pytest.mark.parametrize("start", ["synopsis", "random"])
@pytest.mark.parametrize(
    ("alice", "encrypted"), [((0,), [(1,)]), ((), [(1, 0)]), ((3, 1), [(0, 2)]), ((4, 0), [(5, 1, 3, 2)])]
)
def test_without_noise_it_is_lloyd_with_a_quantised_decision_exactly(start, alice, encrypted):
    d = len(alice) + sum(map(len, encrypted))
    table = mixture(800, d, 4, seed=d)
    public = make(800, alice=alice, encrypted=encrypted, clusters=4, epsilon=None, start=start, rounds=6)
    rehearsal = rehearse(public, table)
    asking = run_vertical(public, rehearsal.codebooks, COMMON)
    query = next(asking)
    if isinstance(query, HistogramQuery):
        query = asking.send(rehearsal.totals[0])
    expected = quantised_lloyd(table, public.layout.to_job(query.centres), rehearsal.codebooks, public.layout, 6)
    assert np.array_equal(rehearsal.finding.centres, expected)
    assert rehearsal.finding.weights.sum() == 800
    assert rehearsal.releases == ()


@pytest.mark.parametrize("residuals", [None, True])
@pytest.mark.parametrize(("alice", "encrypted"), [((0,), [(1,)]), ((0, 1), [(2, 3)]), ((0, 1, 2), [(3, 4, 5)])])
def test_with_little_noise_the_clusters_are_found(alice, encrypted, residuals):
    d = len(alice) + sum(map(len, encrypted))
    table = mixture(6000, d, 4, seed=3)
    floor = cluster_sums(
        table, rehearse(make(6000, alice=alice, encrypted=encrypted, clusters=4, epsilon=None), table).finding.centres
    )
    found = rehearse(
        make(6000, alice=alice, encrypted=encrypted, clusters=4, epsilon=4.0, residuals=residuals), table
    ).finding
    assert cluster_sums(table, found.centres).loss < 1.05 * floor.loss
    assert abs(found.weights.sum() - 6000) < 1e-6 * 6000
    exact = cluster_sums(table, found.centres).counts
    assert np.abs(found.weights - exact).max() < 0.1 * 6000
    assert found.rounds == 2
    assert 0 < found.centre_noise < 0.1


def test_it_does_not_matter_how_the_jobs_columns_are_numbered():
    """Whoever holds which column: centres come back in the job's order."""
    table = mixture(1500, 3, 3, seed=8)
    expected = None
    for order in permutations(range(3)):
        place = [order.index(column) for column in range(3)]
        public = make(1500, alice=(place[0],), encrypted=[(place[1], place[2])], epsilon=5.0)
        centres = rehearse(public, table[:, order]).finding.centres[:, place]
        expected = centres if expected is None else expected
        assert np.array_equal(centres, expected)


@pytest.mark.parametrize("start", ["synopsis", "random"])
@pytest.mark.parametrize("value", [0, 2**62, -(2**62), 1])
def test_whatever_is_released_there_are_k_different_centres_in_the_domain(value, start):
    table = mixture(50, 4, 2, seed=1)
    public = make(50, alice=(0,), encrypted=[(1, 2, 3)], clusters=7, start=start, rounds=3)
    asking = run_vertical(public, rehearse(public, table).codebooks, COMMON)
    query = next(asking)
    try:
        while True:
            query = asking.send(np.full(query.length, value))
    except StopIteration as stop:
        finding = stop.value
    assert len(np.unique(finding.centres, axis=0)) == 7
    assert np.abs(finding.centres).max() <= 1
    assert np.isfinite(finding.weights).all()
    assert (finding.weights >= 0).all()


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_a_handful_of_records(n, epsilon):
    public = make(n, alice=(0,), encrypted=[(1,)], clusters=5, epsilon=epsilon)
    found = rehearse(public, mixture(n, 2, 1, seed=n)).finding
    assert len(np.unique(found.centres, axis=0)) == 5


def test_three_holders_and_many_clusters():
    table = mixture(4000, 3, 4, seed=6)
    public = make(4000, alice=(), encrypted=[(0,), (1,), (2,)], clusters=4, epsilon=8.0)
    assert public.joint_cells == 512
    found = rehearse(public, table).finding
    best = rehearse(make(4000, alice=(0, 1), encrypted=[(2,)], clusters=4, epsilon=None), table).finding
    assert cluster_sums(table, found.centres).loss < 1.3 * cluster_sums(table, best.centres).loss
    crowded = make(4000, alice=(0, 1), encrypted=[(2,)], clusters=100)
    assert len(rehearse(crowded, table).finding.centres) == 100


@pytest.mark.parametrize("radius", [None, 10**6])
def test_a_private_round_refuses_residuals_without_a_bound(radius):
    public = make(100, residuals=True)
    codebooks = rehearse(public, mixture(100, 2, 2, seed=1)).codebooks
    loose = replace(codebooks, holders=(replace(codebooks.holders[0], residual_radius=radius),))
    asking = run_vertical(public, loose, COMMON)
    query = next(asking)
    with pytest.raises(LocalProtocolError, match="residuals of at most"):
        asking.send(np.zeros(query.length, dtype=np.int64))
