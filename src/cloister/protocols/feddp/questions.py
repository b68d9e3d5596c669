"""The questions that only FedDP-KMeans asks: weights of the server's points, of records as they are or as moved.

Everyone has the server's points, so a question names them by their places and never brings any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import ClassVar, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cloister.kmeans.kernel import nearest
from cloister.protocols.guided_sums.query import (
    LENGTH_MOST,
    SHARE_MOST,
    Form,
    PublicValues,
    Question,
    Share,
    count_rows,
    largest_array,
    require_length,
    take_points,
)
from cloister.protocols.guided_sums.refinement import Offsets
from cloister.protocols.guided_sums.settings import require
from cloister.protocols.guided_sums.statistics import Moments, Plane, Subspace
from cloister.records import FloatArray, IntArray, Records, iterate_chunks
from cloister.wire import Array

SHIFT_MOST = LENGTH_MOST
"""How far a group of points may be moved before all of them are brought nearer again."""


def points_of(public: PublicValues) -> FloatArray:
    """Return the server's points."""
    assert public.points is not None  # `Feddp.agree` has them
    return public.points


class Weights(Question, frozen=True, kw_only=True):
    """How many records are nearest to each of the server's points, in a subspace or in all columns (equation 3).

    Privacy
    -------
    A record adds a to the entry of one point: squared L2 norm a^2 <= share. Its coordinates, and so the point that it
    is nearest to, depend on no other record; ties go to the first.
    """

    share: Share
    kept: bytes | None
    """Which of the points, one bit for each; None for all."""
    plane: Plane | None

    def form(self, public: PublicValues) -> Form:
        """Count."""
        points, height = self._choose(points_of(public)), isqrt(self.share)
        subspace = None if self.plane is None else self.plane.unpack(public, axes_most=public.settings.axes_most)
        places = points if subspace is None else subspace.project(points)

        def measure(party: Records) -> IntArray:
            return height * count_nearest(party, places, subspace)

        return Form(length=len(places), l2_squared=height**2, measure=measure)

    def _choose(self, points: FloatArray) -> FloatArray:
        if self.kept is None:
            return points
        size = (len(points) + 7) // 8
        require(len(self.kept) == size, "a question's list of points", f"{size} bytes long", len(self.kept))
        kept = np.unpackbits(np.frombuffer(self.kept, np.uint8), bitorder="little")
        fits = bool(kept.any()) and not kept[len(points) :].any()
        require(fits, "a question's points", f"at least one of {len(points)}", "others")
        return np.ascontiguousarray(points[kept[: len(points)].astype(bool)])

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        kept = bytes((len(points_of(public)) + 7) // 8) if public.settings.may_drop_points else None
        return cls(share=SHARE_MOST, kept=kept, plane=Plane.largest(public, public.settings.axes_most))


def pack_places(places: NDArray[np.intp], points: int) -> bytes:
    """Return which of the points a list of places names, one bit for each."""
    kept = np.zeros(points, dtype=np.uint8)
    kept[places] = 1
    return np.packbits(kept, bitorder="little").tobytes()


def count_nearest(party: Records, places: FloatArray, subspace: Subspace | None) -> IntArray:
    """Return how many records are nearest to each place."""
    counts = np.zeros(len(places), dtype=np.int64)
    for chunk in iterate_chunks(party):
        coordinates = chunk if subspace is None else subspace.project(chunk)
        counts += np.bincount(nearest(coordinates, places).labels, minlength=len(places))
    return counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Relocation:
    """Where every record goes: by the nearest of the server's points that are left, then all closer to the origin."""

    server: FloatArray
    """All the server's points, before."""
    groups: NDArray[np.int32]
    """The group of each of them; -1 for one that is dropped."""
    group_shifts: FloatArray
    """What is added to the records of each group."""
    scale: float
    """What sums are then multiplied by, so that all of them lie in [-1, 1]^d again."""

    @cached_property
    def left(self) -> NDArray[np.intp]:
        """The places of the points that are left."""
        return np.flatnonzero(self.groups >= 0)

    @cached_property
    def points(self) -> FloatArray:
        """The server's points that are left, before."""
        return np.ascontiguousarray(self.server[self.left])

    @cached_property
    def shifts(self) -> FloatArray:
        """What is added to the records that are nearest to each of them."""
        return self.group_shifts[self.groups[self.left]]

    @property
    def moved_points(self) -> FloatArray:
        """Where the server's points that are left are afterwards."""
        return (self.points + self.shifts) * self.scale

    def move(self, points: FloatArray) -> FloatArray:
        """Return where points go; where one goes depends on no other."""
        moved = (points + self.shifts[nearest(points, self.points).labels]) * self.scale
        return np.clip(moved, -1.0, 1.0)

    def move_back(self, centres: FloatArray) -> FloatArray:
        """Return where centres came from."""
        back = centres / self.scale - self.shifts[nearest(centres, self.moved_points).labels]
        return np.clip(back, -1.0, 1.0)

    def pack(self) -> PackedMove:
        """Return it as it stands in a question."""
        return PackedMove(groups=Array.of(self.groups), shifts=Array.of(self.group_shifts), scale=self.scale)


class PackedMove(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """A `Relocation` in a question."""

    groups: Array
    shifts: Array
    scale: float

    def unpack(self, public: PublicValues) -> Relocation:
        """Check the range: a record must have somewhere to go."""
        server = points_of(public)
        count = count_rows("groups", self.shifts, public.settings.groups_most)
        shifts = take_points("shifts", self.shifts, count, public.settings.dimensions, most=SHIFT_MOST)
        groups: NDArray[np.int32] = self.groups.to_numpy(np.int32, len(server)).copy()
        fits = bool(((groups >= -1) & (groups < count)).all() and (groups >= 0).any())
        require(fits, "a question's groups", f"from -1 to {count - 1}, not all -1", "others")
        require_length("scale", self.scale)
        return Relocation(server=server, groups=groups, group_shifts=shifts, scale=self.scale)


class MovedRecords:
    """A party's records, each moved with its group."""

    def __init__(self, records: Records, relocation: Relocation) -> None:
        self._records, self._relocation = records, relocation

    @property
    def dimensions(self) -> int:
        """The number of columns d."""
        return self._records.dimensions

    def batches(self) -> Iterator[FloatArray]:
        """Yield moved batches."""
        for batch in self._records.batches():
            yield self._relocation.move(batch)


class Moved(Question, frozen=True, kw_only=True):
    """A question that is asked of moved records, and of the server's points where they are then.

    Privacy
    -------
    Where a record goes depends on no other, and what it adds there is bounded wherever it is: as ``question``.
    """

    inner: ClassVar[type[Question]]
    move: PackedMove

    def form(self, public: PublicValues) -> Form:
        """Move the points, and measure there."""
        relocation = self.move.unpack(public)
        moved = (relocation.server + relocation.group_shifts[relocation.groups]) * relocation.scale
        question: Question = self.question  # type: ignore[attr-defined]  # each kind has one
        form = question.form(PublicValues(settings=public.settings, points=moved))

        def measure(party: Records) -> IntArray:
            return form.measure(MovedRecords(party, relocation))

        return Form(length=form.length, l2_squared=form.l2_squared, measure=measure)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        d, most = public.settings.dimensions, public.settings.groups_most
        groups = largest_array(len(points_of(public)), dtype=np.int32)
        move = PackedMove(groups=groups, shifts=largest_array(most, d), scale=LENGTH_MOST)
        return cls(move=move, question=cls.inner.largest(public))  # type: ignore[call-arg]


class MovedMoments(Moved, frozen=True, kw_only=True):
    """Second moments of moved records."""

    inner = Moments
    question: Moments


class MovedWeights(Moved, frozen=True, kw_only=True):
    """Weights of moved points."""

    inner = Weights
    question: Weights


class MovedOffsets(Moved, frozen=True, kw_only=True):
    """A step of Lloyd's algorithm on moved records."""

    inner = Offsets
    question: Offsets


MOVED: dict[type[Question], type[Moved]] = {kind.inner: kind for kind in (MovedMoments, MovedWeights, MovedOffsets)}
