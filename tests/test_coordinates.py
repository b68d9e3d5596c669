"""Coordinates: what is clustered, and where levels, weights and bounds put a record in the domain."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.columns import (
    UNKNOWN_LEVEL,
    Column,
    clip_unit,
    column_slices,
    list_coordinates,
    parse_bounds,
    scale_to_original,
    spread_levels,
    to_original,
    to_unit,
    unit_ends,
    unit_starts,
)
from cloister.errors import ConfigError

AGE = Column(name="age", low=0, high=100)
SEX = Column.category("sex", ["f", "m"])
WARD = Column.category("ward", ["a", "b", "c"])
SMOKER = Column.boolean("smoker")
ADMITTED = Column.dates("admitted", datetime.date(2015, 1, 1), datetime.date(2024, 12, 31))
COLUMNS = (AGE, SEX, WARD, SMOKER, ADMITTED)


def test_a_column_has_one_coordinate_but_for_categories_of_three_levels_or_more():
    axes = list_coordinates(COLUMNS)
    names = ["age", "sex=m", "ward=a", "ward=b", "ward=c", "smoker", "admitted"]
    assert [axis.name for axis in axes] == names
    assert [axis.column for axis in axes] == [0, 1, 2, 2, 2, 3, 4]
    assert [axis.kind for axis in axes] == ["number", *["level"] * 4, "boolean", "date"]
    assert [(place.start, place.stop) for place in column_slices(COLUMNS)] == [(0, 1), (1, 2), (2, 5), (5, 6), (6, 7)]


def test_two_levels_are_as_far_apart_as_two_standardised_records_on_average():
    """Bounds are taken to be four deviations away, so that one is 1/4 and root two of them are sqrt(2)/4."""
    values = np.array([[50.0, 0, 0, 0, 17000], [50, 1, 1, 1, 17000]])
    points = to_unit(spread_levels(values, COLUMNS), COLUMNS)
    apart = [np.sum((points[1] - points[0])[place] ** 2) for place in column_slices(COLUMNS)]
    np.testing.assert_allclose(apart, [0, 1 / 8, 1 / 8, 1 / 8, 0], atol=1e-12)


def test_unknown_levels_are_none_half_of_each_or_other():
    unknown = np.array([[UNKNOWN_LEVEL]])
    assert spread_levels(unknown, [WARD]).tolist() == [[0, 0, 0]]
    assert spread_levels(unknown, [SEX]).tolist() == [[0.5]]
    assert spread_levels(unknown, [Column.category("c", ["a", "b", "other"])]).tolist() == [[0, 0, 1]]
    assert spread_levels(unknown, [Column.category("c", ["other", "b"])]).tolist() == [[0]]


def test_missing_cells_are_missing_in_every_coordinate_and_numbers_are_left_alone():
    values = np.array([[-1.0, np.nan, np.nan, 1, -1]])
    points = spread_levels(values, COLUMNS)
    assert np.isnan(points[0, 1:5]).all()
    assert points[0, [0, 5, 6]].tolist() == [-1, 1, -1]


@given(st.lists(st.sampled_from([0.25, 1.0, 2.0, 3.0]), min_size=5, max_size=5), st.data())
def test_everything_stays_in_the_domain_and_comes_back(weights, data):
    columns = [
        Column(name=c.name, low=c.low, high=c.high, kind=c.kind, levels=c.levels, weight=w)
        for c, w in zip(COLUMNS, weights, strict=True)
    ]
    axes = list_coordinates(columns)
    number = st.floats(-1e6, 1e6, allow_nan=False)
    row = [data.draw(number), *(float(data.draw(st.integers(-1, 1))) for _ in range(2)), 1.0, data.draw(number)]
    points = spread_levels(np.array([row]), columns)
    unit = clip_unit(to_unit(points, axes), axes)
    assert (np.abs(unit) <= 1).all()
    assert (unit >= unit_starts(axes)).all()
    assert (unit <= unit_ends(axes)).all()
    lows, highs = [axis.low for axis in axes], [axis.high for axis in axes]
    np.testing.assert_allclose(to_original(unit, axes), np.clip(points, lows, highs), atol=1e-9)
    assert max(axis.end for axis in axes if axis.kind in ("number", "date")) <= 1 == max(a.weight for a in axes)


def test_a_weight_stretches_a_column_beside_the_others():
    light, heavy = Column(name="a", low=0, high=10), Column(name="b", low=0, high=10, weight=4)
    assert to_unit([[10, 10], [0, 0]], [light, heavy]).tolist() == [[0.25, 1], [-0.25, -1]]
    assert scale_to_original([0.25, 1.0], [light, heavy]).tolist() == [5, 5]


def test_columns_are_read_from_tables_of_a_job_file():
    days = {"from": datetime.date(2015, 1, 1), "to": datetime.date(2024, 12, 31)}
    columns = parse_bounds(
        {
            "age": {"low": 0, "high": 100},
            "sex": {"levels": ["f", "m"]},
            "ward": {"levels": ["a", "b", "c"]},
            "smoker": {"boolean": True},
            "admitted": days,
        }
    )
    assert columns == COLUMNS
    assert parse_bounds({"admitted": (days["from"], days["to"])}) == (ADMITTED,)
    assert parse_bounds({"code": {"levels": [1, 2], "weight": 2}})[0].levels == ("1", "2")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"levels": ["f"]}, ["columns.x.levels", "2 to 1000 values", "got 1"]),
        ({"levels": ["f", "f"]}, ["columns.x.levels[1]", "named once"]),
        ({"levels": ["f", ""]}, ["columns.x.levels[1]", "printable"]),
        ({"levels": ["f", 1.5]}, ["columns.x.levels[1]", "printable", "1.5"]),
        ({"levels": "fm"}, ["columns.x.levels", "a list"]),
        ({"levels": ["f", "m"], "low": 0}, ["columns.x.low", "left out with levels"]),
        ({"low": 0, "high": 1, "weight": 0}, ["columns.x.weight", "0.001 to 1000", "got 0"]),
        ({"low": 0, "high": 1, "weight": "2"}, ["columns.x.weight", "number"]),
        ({"boolean": False}, ["columns.x.boolean", "be true"]),
        ({"from": datetime.date(2024, 1, 1)}, ["columns.x", "no to", "two people's records"]),
        ({"from": "2024-01-01", "to": "2025-01-01"}, ["columns.x.from", "be a date", "without quotes"]),
        ({"from": datetime.date(2024, 1, 1), "to": datetime.date(2023, 1, 1)}, ["columns.x.to", "later than from"]),
        ({"weight": 2}, ["columns.x", "no low and no high"]),
        ({"lewels": ["a", "b"]}, ["columns.x.lewels", 'mean "levels"']),
    ],
)
def test_malformed_columns_say_what_must_hold(entry, words):
    with pytest.raises(ConfigError) as caught:
        parse_bounds({"x": entry})
    for word in words:
        assert word in str(caught.value)


def test_a_plain_number_is_agreed_on_as_it_always_was():
    assert AGE.list_agreed() == {"name": "age", "low": 0.0, "high": 100.0}
    assert SEX.list_agreed() == {"name": "sex", "low": 0.0, "high": 1.0, "kind": "category", "levels": ("f", "m")}
    different = [AGE, SEX, WARD, SMOKER, ADMITTED, Column(name="age", low=0, high=100, weight=2)]
    assert len({str(column.list_agreed()) for column in different}) == len(different)
