"""NumPy arrays and pandas frames."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from cloister.data import open_table, parse_bounds, to_original
from cloister.errors import DataError
from cloister.numeric import FixedPoint

COLUMNS = parse_bounds({"age": (0, 100), "bmi": (0, 100)})


def read(source, **options):
    table = open_table(source, COLUMNS, fixed_point=FixedPoint(30), **options)
    return np.round(to_original(np.concatenate(list(table.batches())), COLUMNS), 6).tolist()


def refuse(source, **options):
    with pytest.raises(DataError) as caught:
        read(source, **options)
    return str(caught.value)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "g", "i1", "i8", "u1", "u8", "O"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_every_number_type(dtype, order):
    assert read(np.array([[1, 2], [3, 4]], dtype=dtype, order=order)) == [[1, 2], [3, 4]]


def test_the_callers_array_is_left_as_it_was():
    values = np.array([[-5.0, 200.0]])
    assert read(values) == [[0, 100]]
    assert values.tolist() == [[-5.0, 200.0]]


@pytest.mark.parametrize(
    "array", [np.zeros(2), np.zeros((2, 3)), np.zeros((2, 1)), np.zeros((1, 2, 1)), np.zeros((2, 2), "f8,f8")]
)
def test_an_array_must_have_exactly_the_jobs_columns(array):
    assert "exactly the job's 2 columns" in refuse(array)


@pytest.mark.parametrize(
    ("array", "finding"),
    [
        (np.array([[True, False]]), "column 'age': 1 cell is not a number (1 boolean)"),
        (np.array([["1", ""]]), "column 'bmi': 1 cell is not a number (1 empty)"),
        (np.array([["1", ""]]), "column 'age': 1 cell is not a number (1 text)"),
        (np.array([["2020-01-01", "NaT"]], dtype="M8[D]"), "column 'age': 1 cell is not a number (1 date or time)"),
        (np.array([["2020-01-01", "NaT"]], dtype="M8[D]"), "column 'bmi': 1 cell is not a number (1 empty)"),
        (np.array([[1j, 2]]), "(1 of another type)"),
        (np.array([[2**53, 2**53 + 1]]), "column 'bmi': 1 cell is out of range (1 integer beyond 2^53)"),
        (np.array([[1, -(2**60)]]), "column 'bmi': 1 cell is out of range (1 integer beyond 2^53)"),
        (np.array([[1, 2**63 + 1]], dtype="u8"), "column 'bmi': 1 cell is out of range"),
        (np.array([[np.nan, 1], [np.nan, np.inf]]), "column 'age': 2 cells are not numbers (2 NaN)"),
        (np.array([[np.nan, 1], [np.nan, np.inf]]), "column 'bmi': 1 cell is out of range (1 infinite)"),
        (np.ma.masked_equal([[1, 7], [2, 8]], 7), "column 'bmi': 1 cell is not a number (1 empty)"),
    ],
)
def test_arrays_with_cells_that_are_not_numbers(array, finding):
    assert finding in refuse(array)


def test_an_array_of_objects_is_judged_cell_by_cell():
    day, hour = datetime.date(2020, 1, 1), datetime.timedelta(hours=1)
    good = [1, 2.5, np.float32(3), np.int8(4), Decimal("5.5"), Fraction(1, 2)]
    bad = ["x", " ", None, True, np.bool_(0), day, hour, [1], {}, b"1", object(), np.nan, 2**60, Decimal("Infinity")]
    array = np.empty((len(good) + len(bad), 2), dtype=object)
    array[:, 0] = 1
    array[:, 1] = [*good, *bad]
    assert read(array[: len(good)]) == [[1, value] for value in (1, 2.5, 3, 4, 5.5, 0.5)]
    assert refuse(array).split("; ")[1] == (
        "column 'bmi': 12 cells are not numbers (2 text, 2 empty, 1 NaN, 2 boolean, 2 date or time, 2 nested, "
        "1 of another type) and 2 cells are out of range (1 infinite, 1 integer beyond 2^53) (rows 7, 8, 9, ...). "
        'Leave \'bmi\' out of [columns], or give it levels: { levels = ["a", "b"] }. '
        'Fill empty cells, or write missing = "drop" in [data] to leave out their rows.'
    )


def test_a_masked_array_of_objects_counts_what_is_masked_as_empty():
    array = np.ma.array(np.array([[1, "x"], [2, 5]], dtype=object), mask=[[0, 1], [0, 0]])
    assert "column 'bmi': 1 cell is not a number (1 empty)" in refuse(array)


def test_frames_are_matched_by_name():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame({"id": ["a"], "age": [1], 7: [0], "bmi": [2.0]})
    assert read(frame) == [[1, 2]]
    assert read(frame[["bmi", "age"]]) == [[1, 2]]
    assert "found 'bmi', 'age'" in refuse(frame[["bmi", "age"]], match="order")
    assert "'bmi' is not among" in refuse(frame[["age"]])
    assert "'age' 2 times" in refuse(frame[["age", "age", "bmi"]])


@pytest.mark.parametrize(
    "dtype", ["int64", "float32", "Int64", "UInt8", "Float32", "category", "object", "double[pyarrow]"]
)
def test_frames_with_every_number_type(dtype):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"age": pd.Series([1, 3], dtype=dtype), "bmi": [2, 4]})
    assert read(frame, batch_rows=1) == [[1, 2], [3, 4]]


def test_frames_with_cells_that_are_not_numbers():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")

    def finding(series):
        return refuse(pd.DataFrame({"age": 1, "bmi": series})).split("column 'bmi': ")[1]

    assert finding(pd.Series([1, pd.NA, 3], dtype="Int64")).startswith("1 cell is not a number (1 empty)")
    assert finding(pd.Series([2**60, pd.NA], dtype="Int64")).startswith(
        "1 cell is not a number (1 empty) and 1 cell is out of range (1 integer beyond 2^53)"
    )
    assert finding(pd.Series([True, pd.NA], dtype="boolean")).startswith("2 cells are not numbers (1 empty, 1 boolean)")
    assert finding(pd.Series(["x", None], dtype="string")).startswith("2 cells are not numbers (1 text, 1 empty)")
    assert finding(pd.Series(["x", 1, ""])).startswith("2 cells are not numbers (1 text, 1 empty)")
    assert finding(pd.to_datetime(pd.Series(["2020-01-01"])).dt.tz_localize("UTC")).startswith(
        "1 cell is not a number (1 date"
    )
    assert finding(pd.Series([1.5, np.nan, np.inf])).startswith("1 cell is not a number (1 NaN) and 1 cell is out of")
    assert finding(pd.Series(["x", "y"], dtype="category")).startswith("2 cells are not numbers (2 text)")
