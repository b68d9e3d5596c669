"""Folding and truncation: inside afterwards, unchanged before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.kmeans import fold, truncate

finite = st.floats(-1e6, 1e6)


def test_fold_by_hand() -> None:
    values = np.array([-1.0, 1.0, 0.3, 1.25, -1.5, 3.5, -3.5, 5.25])
    np.testing.assert_allclose(fold(values, -1, 1), [-1.0, 1.0, 0.3, 0.75, -0.5, -0.5, 0.5, 0.75])
    np.testing.assert_allclose(fold(np.array([2.0, 9.0, 12.0, 31.0]), 5.0, 10.0), [8.0, 9.0, 8.0, 9.0])


@pytest.mark.parametrize(
    ("value", "low", "high"), [(28.7, -3.8, -1.3), (-31.3, -3.8, -1.3), (-1.7999999999999998, -4, -1.8)]
)
def test_fold_lands_inside_where_rounding_would_not(value: float, low: float, high: float) -> None:
    """low + (high - low) is more than high by the last bit."""
    assert low + (high - low) > high
    assert fold(np.array([value]), low, high).tolist() == [high]


def test_truncate_by_hand() -> None:
    assert truncate(np.array([-7.0, 0.3, 2.0]), -1, 1).tolist() == [-1.0, 0.3, 1.0]


@given(value=finite, low=finite, width=st.floats(1e-3, 1e3))
def test_fold_is_repeated_reflection_and_lands_inside(value: float, low: float, width: float) -> None:
    high = low + width
    folded = float(fold(np.array([value]), low, high)[0])
    assert low <= folded <= high
    if low <= value <= high:
        assert folded == value
    elif abs(value - low) < 50 * width:
        expected = value
        while not low <= expected <= high:
            expected = 2 * low - expected if expected < low else 2 * high - expected
        assert folded == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("operation", [fold, truncate])
def test_arguments_are_checked(operation) -> None:
    with pytest.raises(ConfigError, match="less than"):
        operation(np.zeros(1), 1.0, 1.0)
    with pytest.raises(ConfigError, match="finite"):
        operation(np.zeros(1), 0.0, np.inf)
    with pytest.raises(ConfigError, match="finite"):
        operation(np.array([np.nan]), 0.0, 1.0)
