"""Booleans, dates, categories and missing cells, from every kind of source; and what their owner is told."""

import datetime
import gzip

import numpy as np
import pytest

from cloister.columns import UNKNOWN_LEVEL, Column, count_days
from cloister.data import open_table, read_ids
from cloister.errors import ConfigError, DataError
from cloister.numeric import FixedPoint

SEX = Column.category("sex", ["f", "m"])
WARD = Column.category("ward", ["1", "2", "other"])
SMOKER = Column.boolean("smoker")
ADMITTED = Column.dates("admitted", datetime.date(2020, 1, 1), datetime.date(2024, 12, 31))
AGE = Column(name="age", low=0, high=100)
COLUMNS = (AGE, SEX, WARD, SMOKER, ADMITTED)
HEADER = "age,sex,ward,smoker,admitted\n"


def write(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def read(source, columns=COLUMNS, **options):
    table = open_table(source, columns, **options)
    return np.concatenate([*table.raw_batches(), np.empty((0, len(columns)))]).tolist()


def refuse(source, columns=COLUMNS, **options):
    with pytest.raises(DataError) as caught:
        open_table(source, columns, **options).check()
    return str(caught.value)


DAY = count_days(datetime.date(2021, 3, 4))
WANTED = [[50, 1, 0, 1, DAY], [60, UNKNOWN_LEVEL, UNKNOWN_LEVEL, 0, DAY + 0.5]]
TEXT = HEADER + "50,m,1,yes,2021-03-04\n60,x,7,0,2021-03-04 12:00\n"


def test_cells_of_every_kind_are_read_from_text(tmp_path):
    assert read(write(tmp_path, TEXT)) == WANTED
    day = "04.03.2021"
    assert read(write(tmp_path, f"admitted\n{day}\n20210304\n"), [ADMITTED]) == [[DAY], [DAY]]
    words = ["1", "0", "TRUE", "false", "Yes", "no", "1.0", " t "]
    text = "smoker\n" + "\n".join(words) + "\n"
    assert read(write(tmp_path, text), [SMOKER]) == [[1], [0], [1], [0], [1], [0], [1], [1]]


def test_cells_of_every_kind_are_read_from_frames_and_files(tmp_path):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    pl, pq = pytest.importorskip("polars"), pytest.importorskip("pyarrow.parquet")
    moments = [datetime.datetime(2021, 3, 4), datetime.datetime(2021, 3, 4, 12)]
    frame = pd.DataFrame(
        {"smoker": [True, False], "age": [50, 60], "sex": ["m", "x"], "ward": [1, 7], "admitted": moments}
    )
    table = pa.Table.from_pandas(frame, preserve_index=True)
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    sources = [frame, frame.astype({"sex": "category", "ward": "float"}), table, table.to_reader(), pl.DataFrame(frame)]
    sources += [tmp_path / "t.parquet", tmp_path / "t.arrow"]
    for source in sources:
        assert read(source) == WANTED


def test_a_category_becomes_a_coordinate_for_each_level_on_the_grid(tmp_path):
    table = open_table(write(tmp_path, TEXT), COLUMNS)
    assert table.dimensions == 7
    points = np.concatenate(list(table.batches()))
    np.testing.assert_allclose(points[:, 2:5], [[0.25, 0, 0], [0, 0, 0.25]])
    assert points[1, 1] == pytest.approx(np.sqrt(2) / 8, abs=2**-16)  # unknown: half of each of two levels
    assert (FixedPoint().quantise(points) == points).all()
    assert table.check().clipped == (0, 1, 1, 0, 0)


def test_a_column_of_another_kind_says_what_to_do_with_it(tmp_path):
    rows = "".join(f"{i % 90},{'fm'[i % 2]},1,0,2021-01-01\n" for i in range(3000))
    path = write(tmp_path, HEADER + rows)

    def number(name):
        return Column(name=name, low=0, high=1)

    message = refuse(path, [number("sex")])
    assert "column 'sex': 3000 cells are not numbers (3000 text) (rows 1, 2, 3, ...)" in message
    assert "Leave 'sex' out of [columns], or give it levels" in message
    assert "Correct" not in message
    assert "give it dates: { from" in refuse(path, [number("admitted")])
    assert "give it levels" in refuse(path, [Column.boolean("sex")])
    text = write(tmp_path, "smoker\ntrue\nno\n", "u.csv")
    assert "write { boolean = true }" in refuse(text, [number("smoker")])
    assert "3000 cells are not dates" in refuse(path, [Column(name="age", low=0, high=1, kind="date")])


def test_a_few_bad_cells_are_counted_with_their_rows(tmp_path):
    rows = [f"{i}" for i in range(50)]
    rows[6] = rows[30] = "?"
    rows[8] = ""
    message = refuse(write(tmp_path, "age\n" + "\n".join(rows) + "\n"), [AGE])
    # a line without cells is no row
    assert "column 'age': 2 cells are not numbers (2 text) (rows 7, 30)" in message
    assert "Correct those cells, or leave out their rows." in message
    rows = [f"{i},0" for i in range(50)]
    rows[3], rows[4], rows[7], rows[9] = "1", ",0", "NA,1", "null,1"
    message = refuse(write(tmp_path, "age,bmi\n" + "\n".join(rows) + "\n"), [AGE])
    assert "1 row does not have as many cells as the header (row 4)" in message
    assert "column 'age': 3 cells are not numbers (3 empty) (rows 5, 8, 10)" in message
    assert 'write missing = "drop"' in message


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 100])
def test_dropping_leaves_out_records_with_missing_cells_and_their_ids(tmp_path, batch_rows):
    text = "id,age,sex\na,1,f\nb,,m\nc,3,\nd,4,m\ne,NaN,f\nf,6,f\n"
    table = open_table(
        write(tmp_path, text), (AGE, SEX), id_column="id", missing="drop", batch_rows=batch_rows, memory_budget_bytes=0
    )
    check = table.check()
    assert (check.records, check.dropped) == (3, 3)
    assert table.id_cells == ["a", "d", "f"]
    assert np.concatenate(list(table.raw_batches())).tolist() == [[1, 0], [4, 1], [6, 0]]
    assert sum(len(batch) for batch in table.batches()) == 3
    assert read_ids(tmp_path / "t.csv", "id") == list("abcdef")


def test_dropping_is_decided_record_by_record(tmp_path):
    """A 1-stable map: without any one record, the others stay what they were."""
    rows = ["1,f", ",m", "3,", "4,m", "5,f"]
    whole = read(write(tmp_path, "age,sex\n" + "\n".join(rows) + "\n"), (AGE, SEX), missing="drop")
    for out in range(len(rows)):
        left = "\n".join(row for i, row in enumerate(rows) if i != out)
        fewer = read(write(tmp_path, f"age,sex\n{left}\n"), (AGE, SEX), missing="drop")
        assert [row for row in whole if row in fewer] == fewer
        assert len(whole) - len(fewer) in (0, 1)


def test_dropping_does_not_hide_other_faults(tmp_path):
    assert "1 text" in refuse(write(tmp_path, "age\n1\n?\nNA\n"), [AGE], missing="drop")
    assert "got none" in refuse(write(tmp_path, "age,x\nNA,1\n"), [AGE], missing="drop")


def test_imputing_keeps_the_record_with_nan_in_the_cells_coordinates(tmp_path):
    path = write(tmp_path, "age,ward,sex\n,1,f\n50,,m\n50,2,\n")
    points = np.concatenate(list(open_table(path, (AGE, WARD, SEX), missing="impute").batches()))
    gaps = [[1, 0, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]]
    assert np.isnan(points).astype(int).tolist() == gaps
    assert points[0, 1:4].tolist() == [0.25, 0, 0]


def test_european_files_and_packed_ones(tmp_path):
    path = write(tmp_path, "age;bmi\n50,5;-1e1\n60;2,25\n")
    columns = (AGE, Column(name="bmi", low=0, high=100))
    assert read(path, columns, decimal=",") == [[50.5, -10], [60, 2.25]]
    message = refuse(path, columns)
    assert "with a decimal comma" in message
    assert 'write decimal = ","' in message
    assert "text" in refuse(write(tmp_path, "age;bmi\n1.000,5;2\n"), columns, decimal=",")
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(b"age|bmi\n1|2\n"))
    assert read(packed, columns) == [[1, 2]]
    packed.write_bytes(gzip.compress(b"age,bmi\n" + b"1,2\n" * 9999)[:-20])
    assert "readable to its end" in refuse(packed, columns)
    for options in ({"decimal": ";"}, {"separator": ",", "decimal": ","}):
        with pytest.raises(ConfigError, match="decimal must be"):
            open_table(path, columns, **options)


def test_the_separator_is_found_in_the_header_alone(tmp_path):
    columns = (AGE, Column(name="bmi", low=0, high=100))
    for sign in ",;|\t":
        text = f"x{sign}bmi{sign}age\n7{sign}2{sign}1\n"
        assert read(write(tmp_path, text), columns) == [[1, 2]]
    assert read(write(tmp_path, 'bmi;"age";"a,b,c,d"\n2;1;x\n'), columns) == [[1, 2]]
    assert read(write(tmp_path, ",bmi,age\n0,2,1\n1,3,4\n"), columns) == [[1, 2], [4, 3]]  # as pandas writes its index
