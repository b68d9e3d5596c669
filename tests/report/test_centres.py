"""Centres of dates, booleans and categories: as dates, shares and levels, in print, in centres.csv and in pictures."""

import csv
import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.report.examples import make_result

from cloister.columns import Column, count_days
from cloister.report import read_result, write_result
from cloister.report.centres import find_shares, format_cells, project_shares
from cloister.report.layout import make_console
from cloister.report.text import print_report

COLUMNS = (
    Column(name="age", low=0, high=100),
    Column.category("sex", ["f", "m"]),
    Column.category("ward", ["a", "b", "c"]),
    Column.boolean("smoker"),
    Column.dates("admitted", datetime.date(2015, 1, 1), datetime.date(2024, 12, 31)),
)
DAY = count_days(datetime.date(2021, 3, 4))
CENTRES = np.array([[50, 0.25, 0.7, 0.2, -0.1, 0.125, DAY], [60, 1.05, 0.5, 0.5, 0.6, -0.02, DAY + 100]])
NOISE = np.tile([0.5, 0.02, 0.01, 0.01, 0.01, 0.03, 12.0], (2, 1))


def made(**changes):
    given_fields = {"columns": COLUMNS, "centres": CENTRES, "centre_noise": NOISE, "sizes": None, "curve": ()}
    return make_result(**(given_fields | changes))


def test_cells_are_dates_shares_and_the_most_common_level():
    first, second = format_cells(made())
    assert first == ["50.0 ± 0.5", "f 75.0 ± 2.0 %", "a 70.0 ± 1.0 %", "12.5 ± 3.0 %", "2021-03-04 ± 12 d"]
    assert second[1:3] == ["m 100.0 ± 2.0 %", "c 40.0 ± 1.0 %"]
    assert format_cells(made(centre_noise=None))[0][3:] == ["12.5 %", "2021-03-04"]


def test_what_is_left_of_the_shares_is_other():
    own = find_shares(made())["ward"]
    assert own.levels == ("a", "b", "c", "other")
    np.testing.assert_allclose(own.shares, [[0.7, 0.2, 0, 0.1], [0.3, 0.3, 0.4, 0]], atol=1e-2)
    closed = Column.category("ward", ["a", "b", "other"])
    whole = find_shares(made(columns=(*COLUMNS[:2], closed, *COLUMNS[3:])))["ward"]
    assert whole.levels == ("a", "b", "other")
    np.testing.assert_allclose(whole.shares.sum(axis=1), 1)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=6).map(np.array), st.booleans())
@settings(max_examples=50, deadline=None)
def test_the_projection_is_the_nearest_shares(numbers, whole):
    shares = project_shares(numbers, whole=whole)
    assert (shares >= 0).all()
    assert shares.sum() <= 1 + 1e-9
    assert not whole or shares.sum() == pytest.approx(1)
    limit = {"type": "eq" if whole else "ineq", "fun": lambda x: 1 - x.sum()}
    start = np.full(len(numbers), 1 / len(numbers))
    best = minimize(
        lambda x: ((x - numbers) ** 2).sum(), start, bounds=[(0, 1)] * len(numbers), constraints=[limit], tol=1e-12
    )
    assert ((shares - numbers) ** 2).sum() <= best.fun + 1e-6


def test_the_folder_has_them_in_a_table_and_comes_back(tmp_path):
    write_result(made(), tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "centres.csv").read_text().splitlines()))
    assert [row["sex"] for row in rows] == ["f", "m"]
    assert [float(rows[0][f"sex={level}"]) for level in "fm"] == [0.75, 0.25]
    assert [row["admitted"] for row in rows] == ["2021-03-04", "2021-06-12"]
    assert [float(row["smoker"]) for row in rows] == [0.125, 0]
    assert float(rows[0]["age"]) == 50
    back = read_result(tmp_path / "out")
    assert back.columns == COLUMNS
    np.testing.assert_array_equal(back.centres, CENTRES)


def test_the_report_prints_levels_and_no_coordinate(capsys):
    print_report(made(), make_console())
    printed = capsys.readouterr().out
    assert "Shares of the levels of ward" in printed
    assert "Shares of the levels of sex" not in printed  # two: one share says it all
    assert "2021-03-04 ± 12 d" in printed
    assert "sex=m" not in printed


def test_the_picture_has_them():
    pytest.importorskip("matplotlib")
    from cloister.report.picture import draw_picture

    assert draw_picture(made(), records=CENTRES)[:4] == b"\x89PNG"
