"""Labels of new records: the nearest centre in unit scaling, in the order of the rows, a batch at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.report.examples import CENTRES, COLUMNS, make_result

from cloister.data import to_unit
from cloister.errors import DataError
from cloister.report.labels import predict


def test_rows_get_the_nearest_centre_in_unit_scaling() -> None:
    rng = np.random.default_rng(3)
    low, high = (np.array([getattr(column, side) for column in COLUMNS]) for side in ("low", "high"))
    rows = rng.uniform(low, high, (500, 4))
    squares = ((to_unit(rows, COLUMNS)[:, None] - to_unit(CENTRES, COLUMNS)) ** 2).sum(axis=2)
    gap = np.partition(squares, 1)
    clear = gap[:, 1] - gap[:, 0] > 1e-3  # away from borders, where rounding to the grid may decide
    labels = np.concatenate(list(predict(make_result(), rows).labels()))
    np.testing.assert_array_equal(labels[clear], squares.argmin(axis=1)[clear])
    assert clear.mean() > 0.9
    original = ((rows[:, None] - CENTRES) ** 2).sum(axis=2).argmin(axis=1)
    assert (labels != original).any(), "the data must tell unit scaling from original units"


def test_columns_are_found_by_name_and_cells_outside_are_counted(tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("hba1c,ward,bmi,age,systolic_bp\n5.3,A,23,30,117\n10,B,24,28,121\n40,C,24,5,121\n")
    prediction = predict(make_result(), table)
    assert np.concatenate(list(prediction.labels())).tolist() == [0, 3, 3]
    assert (prediction.records, prediction.clipped) == (3, (1, 0, 0, 1))


def test_a_table_without_the_columns_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("age,bmi\n1,2\n")
    with pytest.raises(DataError, match="systolic_bp"):
        predict(make_result(), table)
