"""Public bounds and the map to [-1, 1]."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.columns import scale_to_original
from cloister.data import Column, parse_bounds, to_original, to_unit
from cloister.errors import ConfigError

FINITE = st.floats(-1e9, 1e9)


@given(FINITE, st.floats(1e-3, 1e9), st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_to_original_undoes_to_unit(low, width, shares):
    column = Column(name="x", low=low, high=low + width)
    values = column.low + np.array(shares)[:, None] * (column.high - column.low)
    points = to_unit(values, [column])
    assert np.all(np.abs(points) <= 1 + 1e-9)
    tolerance = 1e-9 * max(abs(column.low), abs(column.high), width)
    np.testing.assert_allclose(to_original(points, [column]), values, rtol=0, atol=tolerance)


@given(FINITE, FINITE)
def test_the_bounds_themselves_map_without_rounding(a, b):
    if a == b:
        return
    column = Column(name="x", low=min(a, b), high=max(a, b))
    assert to_unit([[column.low], [column.high]], [column]).tolist() == [[-1.0], [1.0]]
    assert to_original([[-1.0], [1.0]], [column]).tolist() == [[column.low], [column.high]]


def test_each_column_has_its_own_scale():
    columns = parse_bounds({"age": (0, 100), "bmi": {"low": 10, "high": 50}})
    assert to_unit([[50, 20]], columns).tolist() == [[0.0, -0.5]]


def test_lengths_are_scaled_as_distances_between_points_are():
    columns = parse_bounds({"age": (0, 100), "bmi": {"low": 10, "high": 50}})
    points = np.array([[-0.5, 0.25], [0.5, 0.75]])
    apart = to_original(points, columns)[1] - to_original(points, columns)[0]
    assert scale_to_original(points[1] - points[0], columns).tolist() == apart.tolist() == [50.0, 10.0]


def test_bounds_are_read_from_pairs_tables_and_columns_in_order():
    given_bounds = {"b": (0, 1), "a": {"low": -1.5, "high": 2}, "c": Column(name="c", low=0, high=9)}
    assert [column.name for column in parse_bounds(given_bounds)] == ["b", "a", "c"]
    assert parse_bounds(given_bounds, names=["c", "a"]) == (
        Column(name="c", low=0.0, high=9.0),
        Column(name="a", low=-1.5, high=2.0),
    )


@pytest.mark.parametrize(
    ("bounds", "names"),
    [
        (None, None),
        ({}, None),
        (None, ["age"]),
        ({"bmi": (0, 1)}, ["bmi", "age"]),
        ({"age": {"low": 3}}, None),
        ({"age": {}}, None),
        ({"age": None}, None),
    ],
)
def test_missing_bounds_are_explained_and_an_example_is_shown(bounds, names):
    with pytest.raises(ConfigError) as caught:
        parse_bounds(bounds, names=names)
    assert "are two people's records" in str(caught.value)
    assert "Write: age = { low = 0, high = 100 }" in str(caught.value)


@pytest.mark.parametrize(
    "entry",
    [
        (1, 1),
        (2, 1),
        (0, float("inf")),
        (float("nan"), 1),
        (-1e308, 1e308),
        (0, 10**400),
        ("0", 1),
        (False, True),
        (0, 1, 2),
        "01",
        5,
        {"low": 0, "high": 1, "middle": 0.5},
        Column(name="other", low=0, high=1),
    ],
)
def test_malformed_bounds_name_the_column(entry):
    with pytest.raises(ConfigError, match="age"):
        parse_bounds({"age": entry})


def test_a_name_must_be_given_and_stand_once():
    with pytest.raises(ConfigError, match="must have a name"):
        Column(name=" ", low=0, high=1)
    with pytest.raises(ConfigError, match="must differ"):
        parse_bounds({"age": (0, 1)}, names=["age", "age"])
