"""Scaling by a spread: another map between original units and the domain than that of bounds, one that a run releases.

A scale is a centre c and a spread s for each coordinate, in original units. A record's coordinate is

    T(x) = w clip((x - c) / (6 s), -1, 1), rounded to the grid, of x within the column's bounds,

w the column's weight over the greatest. So one spread is a sixth in every column, however wide its bounds are. A
coordinate without a spread does not count: T is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cloister.columns.coordinates import LEVEL_DEVIATIONS, Coordinate
from cloister.numeric import FixedPoint
from cloister.records import FloatArray

CLIP = 6.0
"""Spreads from the centre at which a coordinate is clipped."""
SPREAD_LEAST = 2.0**-40
"""Of a column's width: no smaller spread is stated."""
_PRIVATE_LEAST = 2.0**-64


def least_spread(axis: Coordinate) -> float:
    """Return the smallest spread of a coordinate that is stated, and the narrowest window."""
    return _PRIVATE_LEAST if axis.private else SPREAD_LEAST * (axis.high - axis.low)


def level_spread(axis: Coordinate) -> float:
    """Return the spread of a level, or of a boolean: its two values are 1/6, or sqrt(2)/6, apart."""
    return axis.weight / (LEVEL_DEVIATIONS * axis.end)


def list_levels(axes: Sequence[Coordinate]) -> tuple[tuple[int, ...], ...]:
    """Return the positions of the coordinates of each column that is a category or a boolean."""
    places: dict[int, list[int]] = {}
    for place, axis in enumerate(axes):
        if axis.is_level:
            places.setdefault(axis.column, []).append(place)
    return tuple(map(tuple, places.values()))


def take_bounds(axes: Sequence[Coordinate]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the bounds, and the smallest spreads, as rows."""
    low, high = (np.array([getattr(axis, name) for axis in axes], dtype=np.float64) for name in ("low", "high"))
    return low, high, np.array([least_spread(axis) for axis in axes], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The map T; equal ones map alike.

    Attributes
    ----------
    axes
        What is public about each coordinate.
    centre, spread
        c and s, in original units; a spread of 0 marks a column that does not count.
    grid
        What coordinates are rounded to.
    """

    axes: tuple[Coordinate, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    grid: FixedPoint

    @cached_property
    def _rows(self) -> tuple[FloatArray, ...]:
        low, high, _ = take_bounds(self.axes)
        weight = np.array([axis.weight for axis in self.axes])
        return low, high, weight / weight.max(), np.array(self.centre), np.array(self.spread)

    @property
    def lengths(self) -> FloatArray:
        """What a coordinate of 1 is in original units; 0 where a column does not count."""
        _, _, weight, _, spread = self._rows
        lengths: FloatArray = CLIP * spread / weight
        return lengths

    @property
    def reach(self) -> float:
        """The length of the longest record there may be."""
        _, _, weight, _, spread = self._rows
        return float(np.sqrt((weight[spread > 0] ** 2).sum()))

    def encode(self, values: FloatArray) -> FloatArray:
        """Return T of each row; a missing cell stays NaN."""
        low, high, weight, centre, spread = self._rows
        points = np.clip(values, low, high)
        points -= centre
        points /= np.where(spread > 0, CLIP * spread, 1.0)
        np.clip(points, -1.0, 1.0, out=points)
        points *= weight * self.grid.scale
        np.rint(points, out=points)
        points *= self.grid.resolution
        points[:, spread == 0] = 0.0
        return np.ascontiguousarray(points)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The map as coordinates say it: what goes to their start and end."""
        found = []
        for axis, centre, spread in zip(self.axes, self.centre, self.spread, strict=True):
            if axis.is_level and spread > 0:
                ends = [axis.weight * (end - centre) / (CLIP * spread) for end in (axis.low, axis.high)]
                found.append(replace(axis, start=ends[0], end=ends[1]))
                continue
            reach = CLIP * spread if spread > 0 else 1.0
            end = axis.weight if spread > 0 else 0.0
            found.append(replace(axis, low=centre - reach, high=centre + reach, start=-end, end=end))
        return tuple(found)

    def to_original(self, points: FloatArray) -> FloatArray:
        """Map points of the domain back to original units; a column that does not count has its centre."""
        return np.asarray(np.array(self.centre) + points * self.lengths)


@dataclass(frozen=True, kw_only=True)
class Within:
    """The map that leaves values in original units, within their bounds."""

    axes: tuple[Coordinate, ...]

    def encode(self, values: FloatArray) -> FloatArray:
        """Return the values, each within its column's bounds; a missing cell stays NaN."""
        low, high, _ = take_bounds(self.axes)
        return np.clip(values, low, high)
