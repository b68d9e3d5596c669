"""No message, and nothing chained to one, holds a value of a record."""

import itertools
import traceback

import numpy as np
import pytest

from cloister.data import open_table, parse_bounds
from cloister.errors import DataError

CANARY = "8675309"
COLUMNS = parse_bounds({"age": (0, 100), "bmi": (0, 100)})


def everything_said(error):
    """Return all text that a log, a console or a debugger would take from an exception and what is chained to it."""
    said, waiting, seen = [], [error], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        said += [str(one), repr(one), repr(one.args), repr(vars(one)), "".join(traceback.format_exception(one))]
        waiting += [one.__cause__, one.__context__]
    return "\n".join(said)


def check_silence(make_source):
    with pytest.raises(DataError) as caught:
        open_table(make_source(), COLUMNS, match="order").check()
    assert CANARY not in everything_said(caught.value)


def test_the_search_finds_a_canary_in_a_chained_exception():
    def leak():
        try:
            float(CANARY + "x")
        except ValueError:
            raise DataError("clean") from None  # hides the cause from a console, but still holds it

    with pytest.raises(DataError) as caught:
        leak()
    assert CANARY in everything_said(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        f"age,bmi\n{CANARY}x,1\n",
        f"age,bmi\n1,{CANARY}_0\n",
        f"age,bmi\n1,{CANARY}é\n",
        f"age,bmi\n1,{CANARY}{CANARY}{CANARY}\n",
        f"age,bmi\n1,{CANARY}e999\n",
        f"age,bmi\n{CANARY}\n",
        f"age,bmi\n1,2,{CANARY}\n",
        f'age,bmi\n1,"{CANARY}\n',
        f'age,bmi\n1,"{CANARY}"x\n',
        f"{CANARY},2\n3,4\n",
        f"age,{CANARY}\n3,4\n",
        f"bmi,age,{CANARY}\n3,4,5\n",
        f"age,age,bmi,{CANARY}\n1,2,3,4\n",
        f"age,bmi\n{CANARY},\n",
    ],
    ids=itertools.count(),  # a generated id would put the canary into the path
)
def test_csv(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    check_silence(lambda: path)


def test_csv_that_is_not_utf8(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(f"age,bmi\n1,{CANARY}é\n".encode("latin-1"))
    check_silence(lambda: path)


@pytest.mark.parametrize(
    "cell", [CANARY, CANARY.encode(), [int(CANARY)], {CANARY: 1}, int(CANARY * 3), complex(0, int(CANARY))]
)
def test_objects_in_memory(cell):
    def make_array():
        array = np.empty((1, 2), dtype=object)
        array[0, :] = [1, 0]
        array[0, 1] = cell
        return array

    check_silence(make_array)

    def make_frame():
        pd = pytest.importorskip("pandas", reason="pandas is not installed")
        return pd.DataFrame({"age": [1], "bmi": pd.Series([cell], dtype=object)})

    check_silence(make_frame)


@pytest.mark.parametrize("cell", [CANARY, [int(CANARY)], {CANARY: 1}, int(CANARY) * 10**10], ids=itertools.count())
def test_arrow(tmp_path, cell):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    table = pa.table({"age": [1], "bmi": [cell]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    for make_source in (lambda: table, table.to_reader, lambda: tmp_path / "t.parquet"):
        check_silence(make_source)


def test_a_fault_during_a_round(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,bmi\n1,2\n")
    table = open_table(path, COLUMNS, memory_budget_bytes=0)
    table.check()
    path.write_text(f"age,bmi\n1,{CANARY}x\n")
    with pytest.raises(DataError) as caught:
        list(table.batches())
    assert CANARY not in everything_said(caught.value)
