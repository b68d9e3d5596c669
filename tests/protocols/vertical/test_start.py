"""The start: groups that cover all cells, counts without their noise, clusters where the records are."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.protocols.vertical.pipeline import run_vertical
from cloister.protocols.vertical.query import HistogramQuery
from cloister.protocols.vertical.start import _fill_groups, find_start
from cloister.protocols.vertical.statistics import align_records, exact_total
from tests.protocols.vertical.tables import make, mixture, rehearse

COMMON = Stream.from_seed(4, "common")
LAYOUTS = [((0,), [(1,)]), ((), [(0, 1)]), ((0, 1), [(2, 3)]), ((0, 1, 2), [(3, 4, 5)]), ((0,), [(1,), (2,), (3,)])]


def take_start(public, codebooks, total):
    """Run the start alone; return what it found."""
    asking = find_start(public, codebooks, COMMON)
    next(asking)
    with pytest.raises(StopIteration) as stop:
        asking.send(total)
    return stop.value.value


@pytest.mark.parametrize(("alice", "encrypted"), LAYOUTS)
@pytest.mark.parametrize("clusters", [2, 20])
@pytest.mark.parametrize("epsilon", [0.3, None])
def test_every_cell_is_in_one_group_and_no_group_is_empty(alice, encrypted, clusters, epsilon):
    d = len(alice) + sum(map(len, encrypted))
    public = make(500, alice=alice, encrypted=encrypted, clusters=clusters, epsilon=epsilon)
    codebooks = rehearse(public, mixture(500, d, 3, seed=d)).codebooks
    query = next(run_vertical(public, codebooks, COMMON))
    assert isinstance(query, HistogramQuery)
    assert query.group_of.shape == (public.joint_cells,)
    assert set(query.group_of) == set(range(query.groups))
    assert (query.alice_cells == 1) == (not alice)
    if len(encrypted) == 1:
        assert query.length <= 1.5 * max(public.knobs.start_cells_most, 16 * clusters)


@pytest.mark.parametrize(("alice", "encrypted"), LAYOUTS)
def test_centres_and_widths_are_those_of_the_records(alice, encrypted):
    """From exact counts: what is found is what the cells can tell."""
    d = len(alice) + sum(map(len, encrypted))
    rng = np.random.default_rng(1)
    middles = np.array([np.full(d, -0.5), np.full(d, 0.5)])
    labels = rng.integers(2, size=4000)
    table = np.round((middles[labels] + 0.1 * rng.uniform(-1, 1, (4000, d))) * 2**16) / 2**16
    public = make(4000, alice=alice, encrypted=encrypted, clusters=2, epsilon=10.0)
    codebooks = rehearse(public, table).codebooks
    query = next(find_start(public, codebooks, COMMON))
    records = align_records(table, public.layout, codebooks)
    start = take_start(public, codebooks, exact_total(query, records, codebooks))
    order = np.argsort(start.centres[:, 0])
    assert np.abs(start.centres[order] - middles).max() < 0.1
    assert np.abs(start.weights[order] - np.bincount(labels)).max() < 200
    spread = 0.1**2 / 3  # of a uniform column
    cell = 0.25**2  # no cell here is wider
    assert start.variance_encrypted < public.layout.encrypted_count * (spread + cell)
    assert start.variance_alice < public.layout.alice_count * (spread + cell) + 1e-12
    assert (start.variance_alice > 0) == bool(alice)


def test_noise_alone_leaves_enough_cells_for_every_cluster():
    public = make(100, clusters=9, epsilon=0.1)
    codebooks = rehearse(public, mixture(100, 2, 3, seed=1)).codebooks
    query = next(find_start(public, codebooks, COMMON))
    noise = np.rint(np.random.default_rng(2).normal(0, public.total_std(query.sigma), query.length)).astype(np.int64)
    start = take_start(public, codebooks, noise)
    assert len(np.unique(start.centres, axis=0)) == 9
    assert start.weights.sum() == pytest.approx(100)


def test_how_many_groups_the_histogram_has_does_not_follow_from_records():
    filled = _fill_groups(np.array([0, 0, 3, 3, 3, 0]), 4)
    assert sorted(set(filled.tolist())) == [0, 1, 2, 3]
    whole = np.array([2, 1, 0, 1])
    assert np.array_equal(_fill_groups(whole, 3), whole)
