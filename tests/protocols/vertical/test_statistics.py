"""What Alice decides and computes blindly for every cell adds up to the exact totals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.protocols.vertical.algorithm import run_vertical
from cloister.protocols.vertical.query import HistogramQuery
from cloister.protocols.vertical.statistics import align_records, decide_labels, exact_total, measure_weights
from tests.protocols.vertical.tables import make, mixture, rehearse

CASES = {
    "two columns": {},
    "residuals": {"residuals": True},
    "exact": {"epsilon": None},
    "Alice has none": {"alice": (), "encrypted": [(0, 1)]},
    "wide": {"alice": (0, 2, 4), "encrypted": [(1, 3, 5)], "residuals": True},
    "three holders": {"alice": (3,), "encrypted": [(0,), (2,), (1,)]},
    "random": {"start": "random", "rounds": 3},
}


# --- statistics -------------------------------------------------------------------------------------------------------


def columns_of(case):
    return sum(map(len, (case.get("alice", (0,)), *case.get("encrypted", [(1,)]))))


def walk(public, table, codebooks, totals):
    """Every query of a run."""
    asking = run_vertical(public, codebooks, Stream.from_seed(1, "test vertical").child("common"))
    query = next(asking)
    for total in totals:
        yield query
        try:
            query = asking.send(total)
        except StopIteration:
            return


def compute_blindly(query, table, public, codebooks):
    """The session's formula: plaintext weights times indicators and residuals, block by block, cell by cell."""
    records = align_records(table, public.layout, codebooks)
    indicators = records.exact_cells == np.arange(codebooks.cells)[:, None]
    if isinstance(query, HistogramQuery):
        histogram = np.zeros((query.alice_cells, query.groups), dtype=np.int64)
        for a in range(query.alice_cells):
            for c, group in enumerate(query.group_of):
                histogram[a, group] += ((records.alice_cells == a) & indicators[c]).sum()
        return histogram.ravel()
    k, columns = query.clusters, query.alice_count
    sums, counts = np.zeros((k, query.dimensions), dtype=np.int64), np.zeros(k, dtype=np.int64)
    for first in range(0, len(table), 128):
        block = slice(first, first + 128)
        weights = measure_weights(query, records.alice[block], codebooks.reps)
        for c in range(codebooks.cells):
            for i in range(k):
                joins = (weights.labels[c] == i) & indicators[c, block]
                counts[i] += joins.sum()
                sums[i, :columns] += (weights.offsets[i] * joins).sum(axis=1)
                sums[i, columns:] += query.constants[i, c] * joins.sum()
                sums[i, columns:] += (records.exact_residuals[block] * joins[:, None]).sum(axis=0)
    return np.concatenate([sums.ravel(), counts])


@pytest.mark.parametrize("name", CASES)
def test_blind_sums_are_the_exact_totals(name):
    case = CASES[name]
    table = mixture(300, columns_of(case), 3, seed=5)
    public = make(300, cells=6, **case)
    rehearsal = rehearse(public, table)
    records = align_records(table, public.layout, rehearsal.codebooks)
    for query in walk(public, table, rehearsal.codebooks, rehearsal.totals):
        total = exact_total(query, records, rehearsal.codebooks)
        assert total.dtype == np.int64
        assert total.shape == (query.length,)
        assert np.array_equal(compute_blindly(query, table, public, rehearsal.codebooks), total)
        counted = total if isinstance(query, HistogramQuery) else query.split_total(total)[1]
        assert counted.sum() == 300
        if not isinstance(query, HistogramQuery):
            assert measure_weights(query, records.alice, rehearsal.codebooks.reps).offsets.dtype == np.int32
            assert np.abs(query.constants).max(initial=0) <= public.weight_max


# --- decision ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([1, 3, 255, 256, 600]),
    columns=st.integers(0, 3),
    others=st.integers(1, 3),
    k=st.integers(2, 7),
    steps=st.sampled_from([2, 2**16]),
)
def test_labels_are_those_of_the_nearest_centre(seed, n, columns, others, k, steps):
    """On a coarse grid, distances are exact and ties are many."""
    rng = np.random.default_rng(seed)
    alice, reps, centres = (
        rng.integers(-steps, steps + 1, shape) / steps for shape in ((n, columns), (5, others), (k, columns + others))
    )
    labels = decide_labels(alice, reps, centres)
    assert labels.dtype == np.int16
    assert labels.shape == (5, n)
    for c, rep in enumerate(reps):
        points = np.concatenate([alice, np.broadcast_to(rep, (n, others))], axis=1)
        squares = ((points[:, None] - centres) ** 2).sum(axis=2)
        if steps == 2:
            assert np.array_equal(labels[c], squares.argmin(axis=1))
        chosen = squares[np.arange(n), labels[c]]
        assert np.allclose(chosen, squares.min(axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("columns", [0, 1, 5])
def test_a_label_depends_on_no_other_record(columns):
    rng = np.random.default_rng(7)
    alice, reps, centres = (
        rng.uniform(-1, 1, (700, columns)),
        rng.uniform(-1, 1, (9, 2)),
        rng.uniform(-1, 1, (6, columns + 2)),
    )
    together = decide_labels(alice, reps, centres)
    for n in (0, 1, 255, 256, 300, 699):
        assert np.array_equal(decide_labels(alice[n : n + 1], reps, centres)[:, 0], together[:, n])
        assert np.array_equal(decide_labels(alice[n:], reps, centres), together[:, n:])
