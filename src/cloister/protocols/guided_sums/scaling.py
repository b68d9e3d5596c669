"""Scaling by a spread that was released: the leader states it in each question, and members encode their records by it.

The map T is `cloister.columns.Scale`.

Privacy
-------
T acts on each cell of a record by itself, with constants from the question, so what a record adds afterwards is still a
function of that record alone, and T(x) lies on the grid in [-1, 1]^d whatever c and s are within their range: every
bound of a question that holds for records on the grid holds behind T (docs/proofs/synopsis.md, claim 11).
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from msgspec import Struct

from cloister.columns import SPREAD_LEAST, Coordinate, Scale, Within, take_bounds
from cloister.errors import LocalProtocolError
from cloister.protocols.guided_sums.query import Form, PublicValues, Question, largest_array
from cloister.protocols.guided_sums.settings import require
from cloister.records import Encoding, FloatArray, IntArray, Records, StoredRecords
from cloister.wire import Array


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
        axes: tuple[Coordinate, ...] = settings.axes
        low, high, least = take_bounds(axes)
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


def encode_stored(records: Records, axes: tuple[Coordinate, ...]) -> Records:
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
