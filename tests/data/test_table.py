"""A table: scaled, clipped, on the grid, in bounded batches, encoded once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cloister.data import Column, Table, TableCheck, open_table, parse_bounds, to_unit
from cloister.errors import ConfigError, DataError
from cloister.numeric import FixedPoint

COLUMNS = parse_bounds({"age": (0, 100), "bmi": (10, 50)})


def write_csv(path, rows):
    path.write_text("age,bmi\n" + "".join(f"{a},{b}\n" for a, b in rows))
    return path


@given(
    arrays(np.float64, st.tuples(st.integers(1, 40), st.just(2)), elements=st.floats(-1e3, 1e3)),
    st.integers(1, 45),
    st.integers(1, 30),
)
def test_batches_hold_the_clipped_records_on_the_grid_in_order(values, batch_rows, bits):
    fixed = FixedPoint(bits)
    table = open_table(values, COLUMNS, fixed_point=fixed, batch_rows=batch_rows)
    batches = list(table.batches())
    assert all(batch.flags.c_contiguous and batch.dtype == np.float64 for batch in batches)
    assert [len(batch) for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    points = np.concatenate(batches)
    np.testing.assert_array_equal(points, fixed.quantise(np.clip(to_unit(values, COLUMNS), -1, 1)))
    check = table.check()
    assert (check.records, check.batches) == (len(values), len(batches))
    outside = (values < [0, 10]) | (values > [100, 50])
    assert check.clipped == tuple(outside.sum(axis=0))


@given(st.integers(1, 60), st.integers(1, 70))
def test_a_streamed_file_and_a_kept_one_give_the_same_batches(tmp_path_factory, count, batch_rows):
    path = write_csv(tmp_path_factory.mktemp("t") / "t.csv", [(row, 10 + row / 3) for row in range(count)])
    kept = open_table(path, COLUMNS, batch_rows=batch_rows)
    streamed = open_table(path, COLUMNS, batch_rows=batch_rows, memory_budget_bytes=0)
    assert kept.check() == streamed.check()
    for _ in range(2):
        for one, other in zip(kept.batches(), streamed.batches(), strict=True):
            np.testing.assert_array_equal(one, other)


class Chunks:
    """A source that gives records in pieces of any size up to the one asked for."""

    label = "chunks"
    in_memory = False
    read_once = False
    id_column = None

    def __init__(self, values, lengths):
        self.values, self.lengths = values, lengths

    def read(self, faults, most_rows, id_cells=None):
        start = 0
        for length in itertools.cycle(self.lengths):
            if start >= len(self.values):
                return
            piece = self.values[start : start + min(length, most_rows)]
            start += len(piece)
            yield piece


@given(st.integers(1, 50), st.lists(st.integers(0, 9), min_size=1).filter(any), st.integers(1, 12))
def test_batches_do_not_depend_on_how_the_source_cuts_its_records(count, lengths, batch_rows):
    values = np.arange(2.0 * count).reshape(count, 2)
    for budget in (0, 1 << 20):
        table = Table(
            Chunks(values, lengths),
            COLUMNS,
            fixed_point=FixedPoint(),
            batch_rows=batch_rows,
            memory_budget_bytes=budget,
        )
        expected = open_table(values, COLUMNS, batch_rows=batch_rows)
        assert table.check() == expected.check()
        for one, other in zip(table.batches(), expected.batches(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_an_empty_party_is_refused():
    with pytest.raises(DataError, match="at least one record; got none"):
        open_table(np.empty((0, 2)), COLUMNS).check()


@pytest.mark.parametrize("name", ["array", "file"])
def test_an_empty_party_is_accepted_where_a_refusal_would_tell(tmp_path, name):
    source = np.empty((0, 2)) if name == "array" else write_csv(tmp_path / "t.csv", [])
    table = open_table(source, COLUMNS, may_be_empty=True, memory_budget_bytes=0)
    assert table.check() == TableCheck(records=0, clipped=(0, 0), batches=0)
    assert list(table.batches()) == list(table.raw_batches()) == []
    with pytest.raises(DataError, match="1 cell is not a number"):  # other faults are faults still
        open_table(np.array([[1.0, np.nan]]), COLUMNS, may_be_empty=True).check()


def test_batches_check_the_table_first():
    with pytest.raises(DataError, match="column 'bmi': 1 cell is not a number"):
        next(open_table(np.array([[1.0, np.nan]]), COLUMNS).batches())


def test_a_small_file_is_read_once_and_a_large_one_in_every_round(tmp_path):
    path = write_csv(tmp_path / "t.csv", [(1, 20), (2, 30)])
    kept = open_table(path, COLUMNS)
    streamed = open_table(path, COLUMNS, memory_budget_bytes=31)  # two records take 32 bytes
    kept.check()
    streamed.check()
    path.unlink()
    assert np.concatenate(list(kept.batches())).shape == (2, 2)
    with pytest.raises(DataError, match="must be readable"):
        next(streamed.batches())


@pytest.mark.parametrize("rows", [[(1, 20)], [(1, 20), (2, 30), (3, 40)]])
def test_a_file_that_changes_between_rounds_is_noticed(tmp_path, rows):
    path = write_csv(tmp_path / "t.csv", [(1, 20), (2, 30)])
    table = open_table(path, COLUMNS, memory_budget_bytes=0)
    table.check()
    write_csv(path, rows)
    with pytest.raises(DataError, match="its numbers have changed since"):
        list(table.batches())


def test_a_fault_that_appears_between_rounds_is_noticed(tmp_path):
    path = write_csv(tmp_path / "t.csv", [(1, 20), (2, 30)])
    table = open_table(path, COLUMNS, memory_budget_bytes=0)
    table.check()
    write_csv(path, [(1, 20), ("x", 30)])
    with pytest.raises(DataError, match="column 'age': 1 cell is not a number"):
        list(table.batches())


def test_default_batches_are_bounded_by_rows_and_bytes():
    narrow = open_table(np.zeros((70_000, 2)), COLUMNS)
    assert [len(batch) for batch in narrow.batches()] == [65_536, 70_000 - 65_536]
    wide_columns = parse_bounds({f"c{j}": (0, 1) for j in range(512)})
    wide = open_table(np.zeros((5_000, 512)), wide_columns)
    assert max(batch.nbytes for batch in wide.batches()) == 16 << 20


def test_what_the_table_says_about_itself():
    table = open_table(np.zeros((1, 2)), COLUMNS, fixed_point=FixedPoint(8), label="north")
    assert (table.columns, table.dimensions, table.fixed_point, table.label) == (
        COLUMNS,
        2,
        FixedPoint(8),
        "north",
    )


@pytest.mark.parametrize("options", [{"batch_rows": 0}, {"memory_budget_bytes": -1}, {"separator": ";"}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ConfigError):
        open_table(np.zeros((1, 2)), COLUMNS, **options)


def test_wrong_sources_are_refused(tmp_path):
    with pytest.raises(DataError, match="nothing is there"):
        open_table(tmp_path / "none.csv", COLUMNS)
    wrong = tmp_path / "table.xlsx"
    wrong.touch()
    with pytest.raises(DataError, match=r"must end in .csv.*got '.xlsx'"):
        open_table(wrong, COLUMNS)
    with pytest.raises(DataError, match="got list"):
        open_table([[1, 2]], COLUMNS)
    with pytest.raises(ConfigError, match="at least one column"):
        open_table(np.zeros((1, 2)), ())
    with pytest.raises(ConfigError, match="must differ"):
        open_table(np.zeros((1, 2)), COLUMNS[:1] * 2)


def test_bounds_can_be_given_as_a_mapping_and_must_be_given():
    points = np.array([[1.0, 20.0], [2.0, 30.0]])
    by_bounds = open_table(points, bounds={"a": (0, 4), "b": (10, 50)})
    by_columns = open_table(points, [Column(name="a", low=0, high=4), Column(name="b", low=10, high=50)])
    np.testing.assert_array_equal(next(by_bounds.batches()), next(by_columns.batches()))
    with pytest.raises(ConfigError, match="two people's records"):
        open_table(points)
    with pytest.raises(ConfigError, match="given once"):
        open_table(points, by_columns.columns, bounds={"a": (0, 4)})


@pytest.mark.parametrize("memory_budget_bytes", [0, 1 << 20])
def test_a_file_of_the_same_length_with_other_numbers_is_noticed(tmp_path, memory_budget_bytes):
    path = write_csv(tmp_path / "t.csv", [(1, 20), (2, 30)])
    table = open_table(path, COLUMNS, memory_budget_bytes=memory_budget_bytes)
    table.check()
    write_csv(path, [(1, 20), (2, 31)])
    with pytest.raises(DataError, match="must stay the same"):
        list(table.raw_batches())
