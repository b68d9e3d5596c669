r"""Coordinates: what is clustered. Each is an axis of the domain [-1, 1]^d; d is the number of coordinates.

A number, a boolean or a date has one coordinate. A category with three levels or more has one for each: 1 if the level
is the record's, else 0. A category with two has one: 0 for the first level, 1 for the second. So the mean of such a
coordinate is the share of a level. "Original units" of a coordinate are those of its column; of a level, this 0 and 1.

**Scale.** Numbers and dates take their bounds to -1 and 1. Levels would dominate at that scale: two of them would be as
far apart as the youngest and the oldest person. A level has weight 1 in units of a column's standard deviation, and
bounds are taken to lie four of these on either side of the middle: a level is 0 or 1/4. Two records with different
levels are then :math:`\sqrt{2}/4` apart, the root mean square distance of two records in a standardised column. A
single coordinate, of two levels or of a boolean, is therefore 0 or :math:`\sqrt{2}/4`. With weights, each coordinate is
multiplied by its column's weight over the greatest one. All stays in [-1, 1], so every sensitivity of a protocol holds
as it stands.

Another scale is another tuple of coordinates: ``low`` and ``high`` say which values go to ``start`` and ``end``; values
beyond are clipped to these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cloister.columns.column import OTHER, Column
from cloister.records import FloatArray

LEVEL_DEVIATIONS = 4.0
"""Bounds are taken to lie so many standard deviations on either side of the middle."""
UNKNOWN_LEVEL = -1.0
"""What stands for a value of a category that is not among its levels."""


@dataclass(frozen=True, kw_only=True)
class Coordinate:
    """One axis of the domain.

    Attributes
    ----------
    name
        The column's name; of a level, ``column=level``.
    low, high
        In original units, what goes to ``start`` and ``end``.
    weight
        The column's weight over the greatest weight of the job, at most 1.
    kind
        What its column is; ``level`` for a category.
    column
        The position of its column among the job's.
    start, end
        In unit scaling, within [-1, 1], what values are clipped to.
    private
        Whether nobody knows bounds: ``low`` and ``high`` are those of all numbers that are told apart.
    """

    name: str
    low: float
    high: float
    weight: float = 1.0
    kind: Literal["number", "boolean", "date", "level"] = "number"
    column: int = 0
    start: float = -1.0
    end: float = 1.0
    private: bool = False

    @property
    def is_level(self) -> bool:
        """Whether it is 0 or 1 for each record: a level or a boolean."""
        return self.kind in ("level", "boolean")


Axes = Sequence[Column] | Sequence[Coordinate]
"""Coordinates, or columns that stand for theirs."""


def list_coordinates(columns: Sequence[Column], *, deviations: float = LEVEL_DEVIATIONS) -> tuple[Coordinate, ...]:
    """Return the coordinates of a job's columns, in order.

    Parameters
    ----------
    columns
        All columns of the job: weights are relative to the greatest.
    deviations
        How many standard deviations of a number make a length of 1, which fixes the scale of levels.
    """
    weight_most = max((column.weight for column in columns), default=1.0)
    found: list[Coordinate] = []
    for place, column in enumerate(columns):
        weight = column.weight / weight_most
        if column.kind in ("number", "date"):
            kind: Literal["number", "date"] = "date" if column.kind == "date" else "number"
            bounds = {"low": column.low, "high": column.high, "start": -weight, "end": weight}
            private = column.bounds == "private"
            found.append(
                Coordinate(name=column.name, weight=weight, kind=kind, column=place, private=private, **bounds)
            )
            continue
        alone = has_one_coordinate(column)
        end = weight * (math.sqrt(2.0) if alone else 1.0) / deviations
        levels = column.levels[1:] if alone else column.levels
        for name in [f"{column.name}={level}" for level in levels] or [column.name]:
            found.append(
                Coordinate(
                    name=name,
                    low=0.0,
                    high=1.0,
                    weight=weight,
                    kind="boolean" if column.kind == "boolean" else "level",
                    column=place,
                    start=0.0,
                    end=end,
                )
            )
    return tuple(found)


def has_one_coordinate(column: Column) -> bool:
    """Return whether a column has one coordinate: all do but categories with three levels or more."""
    return len(column.levels) <= 2


def column_slices(columns: Sequence[Column]) -> tuple[slice, ...]:
    """Return where the coordinates of each column are."""
    found, first = [], 0
    for column in columns:
        width = 1 if has_one_coordinate(column) else len(column.levels)
        found.append(slice(first, first + width))
        first += width
    return tuple(found)


def spread_levels(values: FloatArray, columns: Sequence[Column]) -> FloatArray:
    """Return coordinates in original units from the values of columns, (n, columns) to (n, d).

    A category's value is the position of its level, or `UNKNOWN_LEVEL`. An unknown one is the level "other" if there is
    one; else it is none of the levels, or half of each if these are two. NaN marks a missing cell, in all of its
    coordinates.
    """
    if all(column.kind != "category" for column in columns):
        return values
    places = column_slices(columns)
    points = np.empty((len(values), places[-1].stop))
    for column, place, cells in zip(columns, places, values.T, strict=True):
        points[:, place] = _spread(cells, column) if column.kind == "category" else cells[:, None]
    return points


def _spread(cells: FloatArray, column: Column) -> FloatArray:
    """Return the coordinates of one category, (n, 1) for two levels, else (n, levels)."""
    if OTHER in column.levels:
        cells = np.where(cells == UNKNOWN_LEVEL, column.levels.index(OTHER), cells)
    if has_one_coordinate(column):
        halves: FloatArray = np.where(cells == UNKNOWN_LEVEL, 0.5, cells)[:, None]
        return halves
    points: FloatArray = (cells[:, None] == np.arange(len(column.levels))).astype(np.float64)
    points[np.isnan(cells)] = np.nan
    return points


def column_lows(axes: Axes) -> FloatArray:
    """Return the lower bounds as a row."""
    return np.array([axis.low for axis in _list(axes)], dtype=np.float64)


def column_highs(axes: Axes) -> FloatArray:
    """Return the upper bounds as a row."""
    return np.array([axis.high for axis in _list(axes)], dtype=np.float64)


def unit_starts(axes: Axes) -> FloatArray:
    """Return what the lower bounds are in unit scaling, as a row."""
    return np.array([axis.start for axis in _list(axes)], dtype=np.float64)


def unit_ends(axes: Axes) -> FloatArray:
    """Return what the upper bounds are in unit scaling, as a row."""
    return np.array([axis.end for axis in _list(axes)], dtype=np.float64)


def to_unit(values: ArrayLike, axes: Axes) -> FloatArray:
    """Map coordinates in original units linearly to unit scaling; nothing is clipped here."""
    low, high, start = column_lows(axes), column_highs(axes), unit_starts(axes)
    with np.errstate(over="ignore"):  # far outside the bounds; clipping brings an infinity back to the edge
        # (x - low) / (high - low) * 2 - 1 takes low and high to -1 and 1 without a rounding error.
        unit: FloatArray = np.asarray(values, dtype=np.float64) - low
        unit /= high - low
        unit *= unit_ends(axes) - start
        unit += start
    return unit


def clip_unit(points: FloatArray, axes: Axes) -> FloatArray:
    """Move points in unit scaling onto the bounds of their coordinates, in place."""
    return np.clip(points, unit_starts(axes), unit_ends(axes), out=points)


def scale_to_original(lengths: ArrayLike, axes: Axes) -> FloatArray:
    """Map lengths along the coordinates, such as deviations, from unit scaling to original units."""
    scaled: FloatArray = np.asarray(lengths, dtype=np.float64) * (column_highs(axes) - column_lows(axes))
    return scaled / (unit_ends(axes) - unit_starts(axes))


def to_original(points: ArrayLike, axes: Axes) -> FloatArray:
    """Map points in unit scaling back to original units."""
    low, high, start = column_lows(axes), column_highs(axes), unit_starts(axes)
    share = (np.asarray(points, dtype=np.float64) - start) / (unit_ends(axes) - start)
    # A mean of the two bounds, not low + share * width: it is exact at both ends.
    original: FloatArray = (1.0 - share) * low + share * high
    return original


def _list(axes: Axes) -> tuple[Coordinate, ...]:
    """Return coordinates; columns stand for theirs."""
    columns = [axis for axis in axes if isinstance(axis, Column)]
    return list_coordinates(columns) if columns else tuple(axis for axis in axes if isinstance(axis, Coordinate))
