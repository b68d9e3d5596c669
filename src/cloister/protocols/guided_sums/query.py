"""A query: what every party adds up over its records in one round, in integers, and the most one unit can add.

If the unit is a client, all records of a party are hidden at once, so a party's whole vector must be bounded. Each
party scales its exact vector to the greatest length that the round allows (`bound_client`). This needs no clipping
threshold, so none has to be guessed, released or tuned; what the lengths would reveal is read from ratios in the
release (sums over counts, cells over their total) or from a vote. Records that point in different directions benefit:
the histogram of n records in n different cells has length sqrt(n), so the party counts as sqrt(n) records, not as one.
The price is that a party with ten times the records of another has one to three times its weight, not ten times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from math import isqrt, sqrt
from typing import TypeVar

import numpy as np

from cloister.crypto import encode_context
from cloister.errors import LocalProtocolError
from cloister.numeric import find_reach
from cloister.privacy.units import Sensitivity
from cloister.records import FloatArray, IntArray, Records

Measure = Callable[[Records], IntArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Query:
    """What one round asks of every party.

    Parameters
    ----------
    name
        What is released, in plain words.
    measure
        A party's exact answer: ``length`` integers, a sum over its records. It never leaves the party without noise.
    length
        How many integers the answer has.
    l2_squared
        The most that the squared L2 norm of one unit's part of the answer can be, exactly.
    state
        The public values that determine what is measured, as bytes; the parties compare them under their masks.
    """

    name: str
    measure: Measure
    length: int
    l2_squared: int
    state: bytes = b""
    l1: int | None = None
    """The most that the L1 norm can be, if a better bound is known than follows from ``l2_squared``."""

    def __post_init__(self) -> None:
        if (self.length == 0) != (self.l2_squared == 0) or self.length < 0 or self.l2_squared < 0:
            raise LocalProtocolError(
                "a query must cost something if and only if it asks for numbers; "
                f"got {self.length} numbers at a cost of {self.l2_squared}: this is a bug."
            )

    def to_bytes(self) -> bytes:
        """Encode everything that the parties must agree on about the query."""
        return encode_context(self.name, self.length, self.l2_squared, self.state)

    @property
    def sensitivity(self) -> Sensitivity:
        """For the accountant; |v|_1 <= sqrt(length) |v|_2, and |v|_1 <= |v|_2^2 for integers."""
        l1 = min(isqrt(self.length * self.l2_squared), self.l2_squared)
        if self.l1 is not None:
            l1 = min(l1, self.l1)
        return Sensitivity(l1=l1, l2_squared=self.l2_squared)


def _measure_nothing(records: Records) -> IntArray:
    return np.zeros(0, dtype=np.int64)


IDLE = Query(name="nothing", measure=_measure_nothing, length=0, l2_squared=0)
"""The query of a round that is not needed: it costs nothing, and looks to the coordinator like any other."""

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


def bound_answers(asking: Asking[Answer]) -> Asking[Answer]:
    """Ask the same queries of whole parties: each answer is scaled by `bound_client` to its squared length."""
    return relay(asking, _bound_query)


def _bound_query(query: Query) -> Query:
    if query.length == 0:
        return query
    return replace(query, measure=lambda records: bound_client(query.measure(records), query.l2_squared))
