"""A question: what every party is to add up over its records in one round; and a query, what follows from it.

A question is what travels: geometry, and one integer, the share of the budget that it may use. Its price is not part of
it, nor its length, nor whose contributions count as one: each party derives these itself, in integers, from the
question and from what was agreed (`pose`), and refuses a question that is out of range. So whoever asks decides what
is measured, and never what it costs.

If the unit is a client, all records of a party are hidden at once, so a party's whole vector must be bounded. Each
party scales its exact vector to the greatest length that the round allows (`bound_client`). This needs no clipping
threshold, so none has to be guessed, released or tuned; what the lengths would reveal is read from ratios in the
release (sums over counts, cells over their total) or from a vote. Records that point in different directions benefit:
the histogram of n records in n different cells has length sqrt(n), so the party counts as sqrt(n) records, not as one.
The price is that a party with ten times the records of another has one to three times its weight, not ten times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import isqrt, sqrt
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from msgspec import Meta, Struct

from cloister.errors import LocalProtocolError
from cloister.numeric import find_reach
from cloister.privacy.units import Sensitivity
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, require
from cloister.records import FloatArray, IntArray, Records
from cloister.wire import Array

Measure = Callable[[Records], IntArray]
Share = Annotated[int, Meta(ge=1, le=BUDGET_UNITS)]
"""Of the budget units: the most that a question may cost."""
SHARE_MOST = BUDGET_UNITS
"""Takes as many bytes as any share does."""
LENGTH_LEAST, LENGTH_MOST = 1e-9, 1e9
"""Of radii and of the sides of cells: squares and quotients of such numbers are finite."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicValues:
    """The public values that a question is asked on.

    Parameters
    ----------
    settings
        The session's.
    points
        What everyone has besides: the server's points, where there are some.
    """

    settings: Any
    points: FloatArray | None = None

    @property
    def reach(self) -> float:
        """No coordinate, and no distance between two points of the domain, is longer than half of this."""
        return 4.0 * sqrt(self.settings.dimensions)


@dataclass(frozen=True, kw_only=True, eq=False)
class Form:
    """What follows from a question that is in range.

    Parameters
    ----------
    length
        How many integers the answer has.
    l2_squared
        The most that the squared L2 norm of one unit's part of the answer can be, exactly.
    measure
        A party's exact answer: ``length`` integers, a sum over its records. It never leaves the party without noise.
    l1
        The most that the L1 norm can be, where more is known of it than follows from ``l2_squared``.
    bounds_clients
        Whether ``measure`` bounds a whole party's answer by itself, where that is the unit.
    """

    length: int
    l2_squared: int
    measure: Measure
    l1: int | None = None
    bounds_clients: bool = False


class Question(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """One kind of question. A slot takes questions of one kind, and `Idle`."""

    def form(self, public: PublicValues) -> Form:
        """Check the range and derive the rest; raises `ConfigError` or `RemoteProtocolError` for what is out of it."""
        raise NotImplementedError

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return a question that takes as many bytes as any of this kind can; it need not be in range."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class Query:
    """One round's question, ready to be asked of records.

    Parameters
    ----------
    name
        What is released, in plain words.
    question
        What it follows from.
    length, l2_squared, measure, l1
        As `Form` says; at client level ``measure`` is of the party as a whole.
    """

    name: str
    question: Question
    length: int
    l2_squared: int
    measure: Measure
    l1: int | None = None

    def __post_init__(self) -> None:
        if (self.length == 0) != (self.l2_squared == 0) or self.length < 0 or self.l2_squared < 0:
            raise LocalProtocolError(
                "a query must cost something if and only if it asks for numbers; "
                f"got {self.length} numbers at a cost of {self.l2_squared}: this is a bug."
            )

    @property
    def sensitivity(self) -> Sensitivity:
        """For the accountant; |v|_1 <= sqrt(length) |v|_2, and |v|_1 <= |v|_2^2 for integers."""
        l1 = min(isqrt(self.length * self.l2_squared), self.l2_squared)
        if self.l1 is not None:
            l1 = min(l1, self.l1)
        return Sensitivity(l1=l1, l2_squared=self.l2_squared)


def pose(public: PublicValues, name: str, question: Question) -> Query:
    """Return what follows from a question: the same for whoever asks it and for whoever answers.

    Privacy
    -------
    Neighbours: one of the agreed units added or removed; whose contributions count as one is never the question's to
    say. Sensitivity: the kind's bound for a record; for a client its whole answer is scaled by `bound_client`, whose
    lemma is asked for (`find_reach`) before anything is measured. docs/proofs/synopsis.md.
    """
    form = question.form(public)
    measure = form.measure
    if public.settings.client_level and form.length > 0 and not form.bounds_clients:
        find_reach(isqrt(form.l2_squared), form.length)

        def measure(records: Records) -> IntArray:
            return bound_client(form.measure(records), form.l2_squared)

    return Query(
        name=name, question=question, length=form.length, l2_squared=form.l2_squared, measure=measure, l1=form.l1
    )


def _measure_nothing(records: Records) -> IntArray:
    return np.zeros(0, dtype=np.int64)


NOTHING = Form(length=0, l2_squared=0, measure=_measure_nothing)


class Idle(Question, frozen=True, tag=0):
    """A round that is not needed: it costs nothing, and looks to the coordinator like any other."""

    def form(self, public: PublicValues) -> Form:
        """Nothing is measured."""
        return NOTHING

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return it."""
        return cls()


IDLE = Query(name="nothing", question=Idle(), length=0, l2_squared=0, measure=_measure_nothing)

Answer = TypeVar("Answer")
Asking = Generator[Query, IntArray, Answer]
"""A part of the algorithm: yields queries, is sent the released totals, returns what it found."""


def relay(asking: Asking[Answer], change: Callable[[Query], Query]) -> Asking[Answer]:
    """Run a part of the algorithm with each of its queries changed before it is asked; totals pass unchanged."""
    try:
        query = next(asking)
        while True:
            query = asking.send((yield change(query)))
    except StopIteration as done:
        answer: Answer = done.value
        return answer


# --- numbers in a question ------------------------------------------------------------------------------------------


def take_points(what: str, array: Array, *shape: int, most: float = 1.0) -> FloatArray:
    """Return a question's points or lengths: doubles of this shape, none beyond ``most``."""
    numbers: FloatArray = array.to_numpy(np.float64, *shape).copy()
    require(bool((np.abs(numbers) <= most).all()), f"a question's {what}", f"in [-{most:g}, {most:g}]", "others")
    return numbers


def take_lengths(what: str, array: Array, *shape: int) -> FloatArray:
    """Return a question's radii: doubles of this shape within `LENGTH_LEAST` and `LENGTH_MOST`."""
    numbers: FloatArray = array.to_numpy(np.float64, *shape).copy()
    require_length(what, numbers)
    return numbers


def require_length(what: str, numbers: FloatArray | float) -> None:
    """Refuse a length that is not finite, or is too small to be divided by."""
    within = bool(np.all((np.asarray(numbers) >= LENGTH_LEAST) & (np.asarray(numbers) <= LENGTH_MOST)))
    require(within, f"a question's {what}", f"from {LENGTH_LEAST:g} to {LENGTH_MOST:g}", "others")


def count_rows(what: str, array: Array, most: int) -> int:
    """Return how many rows an array in a question has: from 1 to ``most``."""
    rows = array.shape[0] if array.shape else 0
    require(1 <= rows <= most, f"the number of a question's {what}", f"from 1 to {most}", rows)
    return rows


def largest_array(*shape: int, dtype: type[np.generic] = np.float64) -> Array:
    """Return an array of this shape, for `Question.largest`."""
    return Array.of(np.zeros(shape, dtype=dtype))


# --- whole parties ----------------------------------------------------------------------------------------------------


def bound_client(exact: IntArray | FloatArray, l2_squared: int) -> IntArray:
    """Scale a party's exact vector to the length that a round allows, in integers; zeros stay zeros.

    Privacy
    -------
    Returns v = rint(y), y = exact * reach / |exact|: |v| <= floor(sqrt(l2_squared)) by the lemma of `find_reach`, for
    every input, so |v|^2 <= l2_squared. v depends on this party's records and on public values only, so adding or
    removing the party changes the sum by v.
    """
    reach = find_reach(isqrt(l2_squared), len(exact))
    direction = exact.astype(np.float64)
    largest = float(np.abs(direction).max(initial=0.0))
    if largest == 0:
        return np.zeros(len(exact), dtype=np.int64)
    direction /= largest  # no overflow in the squares
    return np.rint(direction * (reach / sqrt(float((direction**2).sum())))).astype(np.int64)


def clip_client(exact: IntArray, longest: int) -> IntArray:
    """Shorten a party's exact vector to a length, in integers, if it is longer (FedDP-KMeans, appendix G.5).

    Privacy
    -------
    |v| <= ``longest`` for every input: a vector within the bound, computed exactly in integers, is kept; others
    are scaled by the lemma of `find_reach`.
    """
    rough = float((exact.astype(np.float64) ** 2).sum())
    if rough < 2.0**52 and int(exact @ exact) <= longest**2:
        return exact
    return bound_client(exact, longest**2) if rough > 0.999 * float(longest) ** 2 else exact
