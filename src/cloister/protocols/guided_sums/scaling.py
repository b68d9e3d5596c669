"""Scaling by a spread that was released: the leader states it in each question, and members encode their records by it.

A scale is a centre c and a spread s for each column, in original units. A record's coordinate is

    T(x) = w clip((x - c) / (6 s), -1, 1), rounded to the grid, of x within the column's bounds,

w the column's weight over the largest. So one spread is a sixth of a coordinate in every column, however wide the
bounds are. A column without a spread does not count: T is 0.

Privacy
-------
T acts on each cell of a record by itself, with constants from the question, so what a record adds afterwards is still a
function of that record alone, and T(x) lies on the grid in [-1, 1]^d whatever c and s are within their range: every
bound of a question that holds for records on the grid holds behind T (docs/proofs/synopsis.md, claim 11).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from msgspec import Struct

from cloister.errors import LocalProtocolError
from cloister.numeric import FixedPoint
from cloister.protocols.guided_sums.query import Form, PublicValues, Question, largest_array
from cloister.protocols.guided_sums.settings import require
from cloister.records import Encoding, FloatArray, IntArray, Records, StoredRecords
from cloister.wire import Array

CLIP = 6.0
"""Spreads from the centre at which a coordinate is clipped."""
SPREAD_LEAST = 2.0**-40
"""Of a column's width: no smaller spread is stated."""
_PRIVATE_LEAST = 2.0**-64


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What is public about one coordinate.

    Attributes
    ----------
    low, high
        Values beyond are taken for these, in original units.
    weight
        How much its spread counts, over the largest weight.
    private
        Whether nobody knows bounds: these are those of all numbers that are told apart.
    """

    low: float
    high: float
    weight: float = 1.0
    private: bool = False

    @property
    def spread_least(self) -> float:
        """No smaller spread is stated, and no narrower window."""
        return _PRIVATE_LEAST if self.private else SPREAD_LEAST * (self.high - self.low)


def take_rows(axes: tuple[Axis, ...], *names: str) -> list[FloatArray]:
    """Return these attributes of the axes, a row for each name."""
    return [np.array([getattr(axis, name) for axis in axes], dtype=np.float64) for name in names]


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

    axes: tuple[Axis, ...]
    centre: tuple[float, ...]
    spread: tuple[float, ...]
    grid: FixedPoint

    @cached_property
    def _rows(self) -> tuple[FloatArray, ...]:
        low, high, weight = take_rows(self.axes, "low", "high", "weight")
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

    def to_original(self, points: FloatArray) -> FloatArray:
        """Map points of the domain back to original units; a column that does not count has its centre."""
        return np.asarray(np.array(self.centre) + points * self.lengths)


class StatedScale(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """A `Scale` in a question; what is public of it is not the question's to say."""

    centre: Array
    spread: Array

    @classmethod
    def of(cls, scale: Scale) -> Self:
        """Return a scale as it is stated."""
        return cls(centre=Array.of(np.array(scale.centre)), spread=Array.of(np.array(scale.spread)))

    def unpack(self, public: PublicValues) -> Scale:
        """Check the range: centres within the bounds, spreads between `SPREAD_LEAST` and 1 of the width, or 0."""
        settings = public.settings
        axes: tuple[Axis, ...] = settings.axes
        low, high, least = take_rows(axes, "low", "high", "spread_least")
        centre: FloatArray = self.centre.to_numpy(np.float64, len(axes))
        spread: FloatArray = self.spread.to_numpy(np.float64, len(axes))
        within = bool(((centre >= low) & (centre <= high)).all())
        require(within, "a question's centres of columns", "within their bounds", "others")
        sound = bool(((spread == 0) | ((spread >= least) & (spread <= high - low))).all())
        require(sound, "a question's spreads", f"from {SPREAD_LEAST:g} to 1 of a column's width, or 0", "others")
        return Scale(axes=axes, centre=tuple(centre.tolist()), spread=tuple(spread.tolist()), grid=settings.fixed_point)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        d = public.settings.dimensions
        return cls(centre=largest_array(d), spread=largest_array(d))


@dataclass(frozen=True, kw_only=True)
class Within:
    """The map that leaves values in original units, within their bounds."""

    axes: tuple[Axis, ...]

    def encode(self, values: FloatArray) -> FloatArray:
        """Return the values, each within its column's bounds; a missing cell stays NaN."""
        low, high = take_rows(self.axes, "low", "high")
        return np.clip(values, low, high)


def encode_stored(records: Records, axes: tuple[Axis, ...]) -> Records:
    """Return the same records in original units, within the bounds."""
    return encode_records(records, Within(axes=axes))


def encode_records(records: Records, encoding: Encoding) -> Records:
    """Return the same records, encoded by another map."""
    if not isinstance(records, StoredRecords):
        raise LocalProtocolError("records must be stored in original units to be scaled by a spread: this is a bug.")
    return records.encoded_by(encoding)


class Scaled(Question, frozen=True, kw_only=True):
    """A question that is asked of records encoded by a scale.

    Privacy
    -------
    T(x) depends on no other record and lies in the domain: as ``question``.
    """

    inner: ClassVar[type[Question]]
    scale: StatedScale

    def form(self, public: PublicValues) -> Form:
        """Encode, and measure there."""
        require(not public.settings.client_level, "a question on scaled records", "about records", "parties")
        scale = self.scale.unpack(public)
        question: Question = self.question  # type: ignore[attr-defined]  # each kind has one
        form = question.form(public)

        def measure(party: Records) -> IntArray:
            return form.measure(encode_records(party, scale))

        return Form(length=form.length, l2_squared=form.l2_squared, measure=measure)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(scale=StatedScale.largest(public), question=cls.inner.largest(public))  # type: ignore[call-arg]
