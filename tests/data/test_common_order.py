"""Aligned tables: the rows of a table at their places, whatever the order and however the table is read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cloister.data import open_table, parse_bounds
from cloister.data.common_order import AlignedTable
from cloister.errors import DataError
from cloister.records import iterate_chunks

COLUMNS = parse_bounds({"age": (0, 100), "bmi": (10, 50)})


def open_rows(values, **options):
    return open_table(np.asarray(values, dtype=float), COLUMNS, **options)


@given(
    values=hnp.arrays(np.float64, st.tuples(st.integers(1, 40), st.just(2)), elements=st.floats(0, 50)),
    batch_rows=st.integers(1, 9),
    data=st.data(),
)
def test_each_place_has_the_row_that_the_alignment_names(values, batch_rows, data):
    order = data.draw(st.permutations(range(len(values))))
    rows = np.array(order[: data.draw(st.integers(0, len(values)))], dtype=np.int64)
    table = open_rows(values, batch_rows=batch_rows)
    aligned = AlignedTable(table, rows)
    whole = np.concatenate(list(table.batches()))
    np.testing.assert_array_equal(aligned.points, whole[rows])
    assert (aligned.records, aligned.dimensions, aligned.columns) == (len(rows), 2, COLUMNS)


def test_a_file_that_is_streamed_gives_the_same(tmp_path):
    path = tmp_path / "t.csv"
    values = np.random.default_rng(1).uniform(10, 50, (500, 2)).round(2)
    path.write_text("bmi,age\n" + "".join(f"{b},{a}\n" for a, b in values))
    rows = np.random.default_rng(2).permutation(500)[:321]
    streamed = open_table(path, COLUMNS, match="name", memory_budget_bytes=0, batch_rows=7)
    np.testing.assert_array_equal(AlignedTable(streamed, rows).points, AlignedTable(open_rows(values), rows).points)


def test_batches_are_the_points_in_their_order_and_read_only():
    rows = np.random.default_rng(3).permutation(150_000)
    values = np.stack([rows % 100, rows % 40 + 10], axis=1)
    aligned = AlignedTable(open_rows(values), rows)
    for _ in range(2):  # every pass starts again
        batches = list(aligned.batches())
        assert len(batches) > 1
        assert all(batch.flags.c_contiguous for batch in batches)
        np.testing.assert_array_equal(np.concatenate(batches), aligned.points)
    assert sum(map(len, iterate_chunks(aligned))) == aligned.records == 150_000
    with pytest.raises(ValueError, match="read-only"):
        aligned.points[0, 0] = 0.0


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_the_table_does_not_have_are_refused(row):
    with pytest.raises(DataError, match="which has 3; this one names others"):
        AlignedTable(open_rows([[1, 20]] * 3), np.array([0, row]))


def test_the_ledger_sees_the_whole_table_whoever_it_is_aligned_with():
    values = [[1.5, 20], [200, 30], [3, 40]]
    aligned = AlignedTable(open_rows(values), np.array([2]))
    np.testing.assert_array_equal(np.concatenate(list(aligned.raw_batches())), values)  # and values as they are


def test_a_party_without_columns_has_records_without_numbers():
    aligned = AlignedTable(None, np.arange(5))
    assert (aligned.points.shape, aligned.columns, aligned.dimensions) == ((5, 0), (), 0)
    assert [batch.shape for batch in aligned.batches()] == [(5, 0)]
    assert list(aligned.raw_batches()) == []
