"""A query: what every party adds up over its records in one round, in integers, and the most one unit can add."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import isqrt
from typing import TypeVar

import numpy as np

from cloister.crypto.stream import encode_context
from cloister.errors import LocalProtocolError
from cloister.privacy.units import Sensitivity
from cloister.records import IntArray, Records

Measure = Callable[[Records], IntArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Query:
    """One round's question.

    Parameters
    ----------
    name
        What is released, in plain words.
    measure
        A party's exact answer: ``length`` integers, a sum over its records. It never leaves the party without noise.
    length
        How many.
    l2_squared
        The most that the squared L2 norm of one unit's part of the answer can be, exactly.
    state
        Whatever public values decide what is measured, as bytes: the parties compare it under their masks.
    """

    name: str
    measure: Measure
    length: int
    l2_squared: int
    state: bytes = b""
    l1: int | None = None
    """The most that the L1 norm can be, where more is known of it than follows from ``l2_squared``."""

    def __post_init__(self) -> None:
        if (self.length == 0) != (self.l2_squared == 0) or self.length < 0 or self.l2_squared < 0:
            raise LocalProtocolError(
                "a query must cost something exactly where it asks for numbers; "
                f"got {self.length} numbers at a cost of {self.l2_squared}: this is a bug."
            )

    def to_bytes(self) -> bytes:
        """Everything that the parties must agree on about it."""
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
"""A round that is not needed: it costs nothing, and looks to the coordinator like any other."""

Answer = TypeVar("Answer")
Asking = Generator[Query, IntArray, Answer]
"""A part of the algorithm: yields queries, is sent the released totals, returns what it found."""


def relay(asking: Asking[Answer], change: Callable[[Query], Query]) -> Asking[Answer]:
    """Run a part of the algorithm, with each of its questions changed before it is asked; totals pass as they are."""
    try:
        query = next(asking)
        while True:
            query = asking.send((yield change(query)))
    except StopIteration as done:
        answer: Answer = done.value
        return answer
