"""Parquet and Arrow, in files and in memory."""

import datetime
import sys
from decimal import Decimal

import numpy as np
import pytest

from cloister.data import open_table, parse_bounds, to_original
from cloister.errors import DataError, MissingExtraError
from cloister.numeric import FixedPoint

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.feather  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

COLUMNS = parse_bounds({"age": (0, 100), "bmi": (0, 100)})
TABLE = pa.table({"id": ["a", "b", "c"], "age": [1, 2, 3], "bmi": [4.0, 5.0, 6.0]})
VALUES = [[1, 4], [2, 5], [3, 6]]


def read(source, **options):
    table = open_table(source, COLUMNS, fixed_point=FixedPoint(30), **options)
    return np.round(to_original(np.concatenate(list(table.batches())), COLUMNS), 6).tolist()


def refuse(source, **options):
    with pytest.raises(DataError) as caught:
        read(source, **options)
    return str(caught.value)


@pytest.mark.parametrize("batch_rows", [None, 1, 2])
def test_every_container_gives_the_same_records(tmp_path, batch_rows):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(TABLE, tmp_path / "t.feather")
    folder = tmp_path / "folder"
    (folder / "deeper").mkdir(parents=True)
    pq.write_table(TABLE.slice(0, 1), folder / "deeper" / "0.parquet")
    pq.write_table(TABLE.slice(1), folder / "part-1.parquet", row_group_size=1)
    for leftover in ("README", "_SUCCESS", ".part-0.parquet", "_part-0.parquet"):
        (folder / leftover).write_text("not data")
    sources = [TABLE, TABLE.to_reader(), tmp_path / "t.parquet", str(tmp_path / "t.feather"), folder]
    for source in sources:
        assert read(source, batch_rows=batch_rows) == VALUES
    for path in sources[2:]:
        assert read(path, batch_rows=batch_rows, memory_budget_bytes=0) == VALUES


def test_columns_are_matched_by_name():
    turned = TABLE.select(["bmi", "age"])
    assert read(turned) == VALUES
    assert "found 'bmi', 'age'" in refuse(turned, match="order")
    assert "'bmi' is not among its 2 columns" in refuse(TABLE.drop(["bmi"]))
    assert "'age' 2 times" in refuse(pa.table([[1], [2], [3]], names=["age", "age", "bmi"]))


@pytest.mark.parametrize(
    "ages",
    [
        pa.array([1, 2, 3], pa.uint8()),
        pa.array([1, 2, 3], pa.float16()),
        pa.array([1, 2, 3]).dictionary_encode(),
        pa.array([Decimal(1), Decimal(2), Decimal(3)]),
    ],
)
def test_every_number_type(ages):
    assert read(pa.table({"age": ages, "bmi": [4, 5, 6]})) == VALUES


@pytest.mark.parametrize(
    ("ages", "finding"),
    [
        (
            pa.array([1, None, 2**60]),
            "1 cell is not a number (1 empty) and 1 cell is out of range (1 integer beyond 2^53)",
        ),
        (pa.array([1.0, np.nan, np.inf]), "1 cell is not a number (1 NaN) and 1 cell is out of range (1 infinite)"),
        (pa.array(["x", None, "1"]), "3 cells are not numbers (2 text, 1 empty)"),
        (pa.array(["x", None, "1"], pa.large_string()), "3 cells are not numbers (2 text, 1 empty)"),
        (pa.array(["x", "y", "y"]).dictionary_encode(), "3 cells are not numbers (3 text)"),
        (pa.array([True, None, False]), "3 cells are not numbers (1 empty, 2 boolean)"),
        (pa.array([datetime.date(2020, 1, 1)] * 3), "3 cells are not numbers (3 date or time)"),
        (pa.array([datetime.timedelta(1)] * 3), "3 cells are not numbers (3 date or time)"),
        (pa.array([[1], None, [2]]), "3 cells are not numbers (1 empty, 2 nested)"),
        (pa.array([{"a": 1}] * 3), "3 cells are not numbers (3 nested)"),
        (pa.nulls(3), "3 cells are not numbers (3 empty)"),
    ],
)
def test_cells_that_are_not_numbers_are_counted(tmp_path, ages, finding):
    table = pa.table({"age": ages, "bmi": [4, 5, 6]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, table.to_reader(), tmp_path / "t.parquet"):
        assert f"column 'age': {finding}" in refuse(source, batch_rows=2)


def test_a_stream_that_is_spent_says_so():
    table = open_table(pa.table({"age": [None, 1], "bmi": [1, 2]}).to_reader(), COLUMNS)
    with pytest.raises(DataError, match="1 empty"):
        table.check()
    with pytest.raises(DataError, match="a stream must be unread"):
        table.check()


def test_files_that_are_not_what_their_name_says(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "t.arrow").write_bytes(b"ARROW no")
    assert "readable Parquet file" in refuse(tmp_path / "t.parquet")
    assert "readable Arrow file" in refuse(tmp_path / "t.arrow")
    (tmp_path / "none").mkdir()
    assert "at least one .parquet file" in refuse(tmp_path / "none")


def test_a_file_damaged_in_the_middle(tmp_path):
    path = tmp_path / "t.parquet"
    numbers = np.random.default_rng(0).uniform(0, 100, 5000)
    pq.write_table(pa.table({"age": numbers, "bmi": numbers}), path, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    assert "a part is damaged" in refuse(path)


def test_a_file_of_a_folder_is_named(tmp_path):
    pq.write_table(TABLE, tmp_path / "good.parquet")
    pq.write_table(TABLE.drop(["bmi"]), tmp_path / "short.parquet")
    assert "(short.parquet): " in refuse(tmp_path)


def test_without_pyarrow_the_message_says_what_to_install(tmp_path, monkeypatch):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"reading Parquet needs .* pip install 'cloister\[parquet\]'"):
        open_table(tmp_path / "t.parquet", COLUMNS)
    (tmp_path / "t.csv").write_text("age,bmi\n1,2\n")
    assert open_table(tmp_path / "t.csv", COLUMNS).check().records == 1
