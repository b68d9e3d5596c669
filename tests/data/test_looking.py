"""A first look at a table: names from the header, kinds from the cells, and no value that was not asked for."""

import gzip

import pytest

from cloister.data.looking import look_at_columns, read_header
from cloister.errors import ConfigError

ROWS = 100


def write(tmp_path, columns, *, separator=",", name="t.csv"):
    rows = [separator.join(columns), *(separator.join(cells) for cells in zip(*columns.values(), strict=True))]
    path = tmp_path / name
    text = "\n".join(rows).encode() + b"\n"
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def look(path):
    return {one.name: one for one in look_at_columns(path, read_header(path))}


def guess(tmp_path, name, cells):
    return look(write(tmp_path, {name: cells, "x": ["1.5"] * len(cells)}))[name].guess


@pytest.mark.parametrize(
    ("name", "cells", "wanted"),
    [
        ("age", [str(i % 90) for i in range(ROWS)], "number"),
        ("age", ["NA", "", *[str(i % 90) for i in range(ROWS)], "?"], "number"),
        ("bmi", [f"{i / 7:.4f}" for i in range(ROWS)], "number"),  # all differ, but no one is whole
        ("bmi", [f"{i / 7:.1f}".replace(".", ",") for i in range(ROWS)], "number"),
        ("visit", [str(1000 + i) for i in range(ROWS)], "id"),
        ("patient_id", [str(i % 40) for i in range(ROWS)], "id"),
        ("Patient", ["P1", "P2"] * 50, "id"),
        ("code", [f"x{i}" for i in range(ROWS)], "id"),
        ("smoker", ["yes", "no"] * 50, "boolean"),
        ("flag", ["0", "1"] * 50, "boolean"),
        ("seen", ["2024-01-02", "2024-01-03 12:00"] * 50, "date"),
        ("seen", ["31.12.2024"] * ROWS, "date"),
        ("seen", ["12/31/2024", "12/30/2024", "12/29/2024"] * 40, "levels"),  # could be another day elsewhere
        ("ward", ["a", "b", "c", "a"] * 25, "levels"),
        ("note", [f"seen on ward {i}" for i in range(ROWS)], "text"),
        ("word", [f"w{i % 30}" for i in range(ROWS)], "text"),
        ("gone", ["", "NA"] * 50, "empty"),
    ],
)
def test_kinds_are_guessed(tmp_path, name, cells, wanted):
    if "," not in "".join(cells):
        assert guess(tmp_path, name, cells) == wanted
    found = look(write(tmp_path, {name: cells, "x": ["1.5"] * len(cells)}, separator=";"))[name]
    assert found.guess == wanted
    assert found.has_gaps is any(cell in ("", "NA") for cell in cells)
    assert found.decimal_commas is (wanted == "number" and "," in "".join(cells))


def test_levels_are_those_that_many_rows_have(tmp_path):
    cells = ["often"] * 60 + ["rare"] * 19 + ["enough"] * 20
    assert look(write(tmp_path, {"ward": cells, "x": ["1.5"] * 99}))["ward"].levels == ("enough", "often")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv"])
def test_an_index_of_pandas_is_no_column(tmp_path, name):
    separator = "\t" if "tsv" in name else ","
    path = write(tmp_path, {"": list("0123"), "age": list("4567")}, separator=separator, name=name)
    assert read_header(path).names == ("age",)
    assert set(look(path)) == {"age"}


def test_parquet_and_arrow_have_headers_too(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"age": [1.5] * ROWS, "ward": ["a", "b"] * 50, "smoker": [True, False] * 50})
    frame.index = range(7, 7 + ROWS)
    frame["seen"] = pd.Timestamp("2024-01-02")
    frame.loc[8, "age"] = None
    frame.to_parquet(tmp_path / "t.parquet", index=True)
    found = look(tmp_path / "t.parquet")
    assert {name: one.guess for name, one in found.items()} == {
        "age": "number",
        "ward": "levels",
        "smoker": "boolean",
        "seen": "date",
    }
    assert found["age"].has_gaps
    assert not found["ward"].has_gaps


def test_a_damaged_table_is_told(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(b"not packed")
    with pytest.raises(ConfigError, match="must be readable"):
        read_header(tmp_path / "t.csv.gz")
    with pytest.raises(ConfigError, match="must be readable"):
        read_header(tmp_path / "gone.parquet")
