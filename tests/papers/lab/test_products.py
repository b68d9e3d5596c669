"""Means have Student's intervals; a table takes its columns from what its rows are about; what is unknown is empty."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest

from cloister.errors import ConfigError
from cloister.report.layout import make_console
from papers.lab.products import Estimate, Product, Table, print_product, write_product

TABLE = Table.of(
    [(1, 0.123456789123), (2, None), (3, math.nan), (4, 12345.6)],
    {"number": lambda row: row[0], "value": lambda row: row[1]},
)


def test_the_interval_is_students() -> None:
    estimate = Estimate.of([1.0, 2.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.half_width == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    assert estimate.times(10).half_width == pytest.approx(10 * estimate.half_width)
    assert math.isnan(Estimate.of([1.0]).half_width)
    assert math.isnan(Estimate.of([]).mean)


def test_numbers_are_written_in_full_and_unknown_ones_left_empty(tmp_path: Path) -> None:
    (path,) = write_product("table", Product(table=TABLE, summary=TABLE), tmp_path)
    assert path.read_text() == "number,value\n1,0.12345679\n2,\n3,\n4,12345.6\n"


def test_the_summary_is_short(tmp_path: Path) -> None:
    text = io.StringIO()
    print_product("A title", Product(table=TABLE, summary=TABLE, notes=("A note.",)), make_console(text))
    lines = [line.split() for line in text.getvalue().splitlines() if line.strip()]
    assert lines[0] == ["A", "title"]
    assert lines[-5:-1] == [["1", "0.1235"], ["2", "-"], ["3", "-"], ["4", "12,346"]]
    assert lines[-1] == ["A", "note."]


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--out must be a folder"):
        write_product("table", Product(table=TABLE, summary=TABLE), tmp_path / "nowhere")
