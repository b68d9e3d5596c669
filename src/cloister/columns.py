"""Columns and their public bounds: the map between original units and the domain [-1, 1]^d.

Every party must scale its records in the same way, so the bounds are part of the job and everyone sees them.
They are therefore chosen from what is known about the quantity (an age lies in 0..120), never computed from
the records.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloister.errors import ConfigError
from cloister.records import FloatArray

_WHY = (
    "The smallest and largest values of a column are two people's records, so Cloister does not "
    "read the bounds from the data. Choose them from what is known about the quantity; values outside are "
    "clipped."
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One numeric column of the job, with the public range of its values.

    Parameters
    ----------
    name
        The column's name in every party's table.
    low, high
        Public bounds in original units, low < high; they become -1 and 1.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError(f"a column must have a name; got {self.name!r}. Write the name in the table's header.")
        for side, bound in (("low", self.low), ("high", self.high)):
            if isinstance(bound, bool) or not isinstance(bound, int | float | np.integer | np.floating):
                raise ConfigError(
                    f"columns.{self.name}.{side} must be a number; got {bound!r}. Write: {show_bounds(self.name)}"
                )
        low, high = _as_double(self.low), _as_double(self.high)
        # The width is checked too: two finite bounds can differ by more than the largest double.
        if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
            raise ConfigError(
                f"columns.{self.name} must have finite bounds with low < high; got low = {self.low}, "
                f"high = {self.high}. Write: {show_bounds(self.name)}"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


def _as_double(bound: float) -> float:
    """Convert a number; an integer beyond the range of doubles becomes an infinity."""
    try:
        return float(bound)
    except OverflowError:
        return math.inf


def show_bounds(name: str) -> str:
    """Return an example of what to write for a column."""
    return f"{name} = {{ low = 0, high = 100 }}"


def parse_bounds(bounds: Mapping[str, Any] | None, *, names: Sequence[str] | None = None) -> tuple[Column, ...]:
    """Make columns from bounds as a job file or a caller writes them.

    Parameters
    ----------
    bounds
        For each column name a pair ``(low, high)``, a table ``{"low": ..., "high": ...}`` or a
        :class:`Column`.
    names
        The columns wanted, in the job's order; by default those of ``bounds``, in its order.

    Returns
    -------
    tuple of Column

    Raises
    ------
    ConfigError
        If a bound is missing (with the reason why it cannot come from the data), malformed or not finite.
    """
    bounds = {} if bounds is None else bounds
    if not isinstance(bounds, Mapping):
        raise ConfigError(
            f"columns must be a table from column names to bounds; got {type(bounds).__name__}. "
            f"Write: {show_bounds('age')}"
        )
    wanted = tuple(bounds) if names is None else tuple(names)
    missing = [name for name in wanted if name not in bounds]
    if missing or not wanted:
        listed = ", ".join(repr(name) for name in missing) or "any column"
        raise ConfigError(
            f"each column must have public bounds; got none for {listed}. {_WHY} "
            f"Write: {show_bounds(missing[0] if missing else 'age')}"
        )
    columns = tuple(_parse_column(name, bounds[name]) for name in wanted)
    require_distinct(columns)
    return columns


def _parse_column(name: str, entry: Any) -> Column:
    """Make one column from a pair, a table or a Column."""
    if isinstance(entry, Column):
        if entry.name != name:
            raise ConfigError(
                f"columns.{name} must hold the bounds of {name!r}; got those of {entry.name!r}. Use one name."
            )
        return entry
    if isinstance(entry, Mapping):
        unknown = sorted(str(key) for key in entry if key not in ("low", "high"))
        if unknown:
            raise ConfigError(
                f"columns.{name} must hold low and high only; got also {', '.join(unknown)}. Write: {show_bounds(name)}"
            )
        absent = [key for key in ("low", "high") if key not in entry]
        if absent:
            raise ConfigError(
                f"columns.{name} must have public bounds low and high; got no {' and no '.join(absent)}. "
                f"{_WHY} Write: {show_bounds(name)}"
            )
        return Column(name=name, low=entry["low"], high=entry["high"])
    if isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2:
        return Column(name=name, low=entry[0], high=entry[1])
    if entry is None:
        raise ConfigError(f"columns.{name} must have public bounds; got none. {_WHY} Write: {show_bounds(name)}")
    raise ConfigError(
        f"columns.{name} must be a table with low and high, or a pair; got {type(entry).__name__}. "
        f"Write: {show_bounds(name)}"
    )


def require_distinct(columns: Sequence[Column]) -> None:
    """Refuse an empty list of columns, and a name that occurs twice."""
    if not columns:
        raise ConfigError(f"a job must have at least one column with public bounds; got none. {_WHY}")
    twice = sorted(name for name, times in Counter(column.name for column in columns).items() if times > 1)
    if twice:
        raise ConfigError(f"column names must differ; got {', '.join(map(repr, twice))} twice. Rename or drop one.")


def column_lows(columns: Sequence[Column]) -> FloatArray:
    """Return the lower bounds as a row."""
    return np.array([column.low for column in columns], dtype=np.float64)


def column_highs(columns: Sequence[Column]) -> FloatArray:
    """Return the upper bounds as a row."""
    return np.array([column.high for column in columns], dtype=np.float64)


def to_unit(values: ArrayLike, columns: Sequence[Column]) -> FloatArray:
    """Map original units linearly, each column's [low, high] to [-1, 1]; nothing is clipped here."""
    low, high = column_lows(columns), column_highs(columns)
    with np.errstate(over="ignore"):  # far outside the bounds; clipping brings an infinity back to the edge
        # (x - low) / (high - low) * 2 - 1 takes low and high to -1 and 1 without a rounding error.
        unit: FloatArray = np.asarray(values, dtype=np.float64) - low
        unit /= high - low
        unit *= 2.0
        unit -= 1.0
    return unit


def scale_to_original(lengths: ArrayLike, columns: Sequence[Column]) -> FloatArray:
    """Map lengths along the columns of [-1, 1]^d, such as deviations, to original units."""
    scaled: FloatArray = np.asarray(lengths, dtype=np.float64) * (column_highs(columns) - column_lows(columns)) / 2
    return scaled


def to_original(points: ArrayLike, columns: Sequence[Column]) -> FloatArray:
    """Map points of [-1, 1]^d back to original units."""
    low, high = column_lows(columns), column_highs(columns)
    share = (np.asarray(points, dtype=np.float64) + 1.0) * 0.5
    # A mean of the two bounds, not low + share * width: it is exact at both ends.
    original: FloatArray = (1.0 - share) * low + share * high
    return original
