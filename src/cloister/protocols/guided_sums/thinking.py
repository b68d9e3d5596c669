"""The algorithm as a chain of thoughts: what a party asks its records next, given every total that it has read.

A thought never changes: the same totals lead to the same next thought. So a party that refuses a request is as it was
before, and thousands of simulated parties that read the same totals can share one run of the algorithm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Aggregate
from cloister.crypto import Stream
from cloister.crypto.stream import encode_context
from cloister.errors import LocalProtocolError
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.settings import GuidedSettings
from cloister.records import FloatArray, IntArray


class Found(Protocol):
    """What an algorithm ends with."""

    @property
    def centres(self) -> FloatArray:
        """In [-1, 1]^d."""

    def to_bytes(self) -> bytes:
        """Everything that the parties must agree on about it."""


Finding = TypeVar("Finding", bound=Found)
Pipeline = Callable[[Any, Stream], Asking[Finding]]
"""An algorithm: from its own kind of settings and the parties' common stream."""


@dataclass(frozen=True, kw_only=True)
class _Mind(Generic[Finding]):
    """What all thoughts of one run have in common."""

    settings: GuidedSettings
    key: bytes
    pipeline: Pipeline[Finding]
    guard: AbstractContextManager[object]

    def begin(self) -> tuple[Asking[Finding], Query]:
        """Start the algorithm; the same key gives the same run."""
        asking = self.pipeline(self.settings, Stream(self.key))
        return asking, next(asking)


class Thought(Generic[Finding]):
    """Where the algorithm stands after some rounds.

    Attributes
    ----------
    totals
        The released numbers of every round so far, whole slots.
    answer
        The next round's query; after the last round, what was found.
    digest
        Of the answer and of the total that it follows from.
    """

    __slots__ = ("_asking", "_mind", "_next", "answer", "digest", "totals")

    def __init__(
        self, mind: _Mind[Finding], asking: Asking[Finding], totals: tuple[IntArray, ...], answer: Query | Finding
    ) -> None:
        _check_answer(answer, done=len(totals), settings=mind.settings)
        self.totals, self.answer = totals, answer
        self._mind, self._asking = mind, asking
        self._next: Thought[Finding] | None = None
        last = totals[-1].tobytes() if totals else b""
        self.digest = b"".join(hashlib.blake2b(part).digest() for part in (answer.to_bytes(), last))

    def follow(self, total: IntArray) -> Thought[Finding]:
        """Return the thought after one more round's released slot."""
        with self._mind.guard:
            if self._next is None:
                self._next = self._think(self._asking, total)
            if np.array_equal(self._next.totals[-1], total):
                return self._next
            # Another total has been thought about already, and a generator does not go back: begin again.
            asking, query = self._mind.begin()
            for earlier in self.totals:
                query = asking.send(earlier[: query.length])
            return self._think(asking, total)

    def _think(self, asking: Asking[Finding], total: IntArray) -> Thought[Finding]:
        if not isinstance(self.answer, Query):
            raise LocalProtocolError("what was found must be the last thought; it was followed by another round.")
        answer: Query | Finding
        try:
            answer = asking.send(total[: self.answer.length])
        except StopIteration as stop:
            answer = stop.value
        return Thought(self._mind, asking, (*self.totals, total), answer)


def _check_answer(answer: object, *, done: int, settings: GuidedSettings) -> None:
    """Hold the algorithm to one query a slot, not longer than the slot: rounds on the wire are public."""
    slots = settings.slots
    room = slots[done].length if done < len(slots) else -1
    fits = answer.length <= room if isinstance(answer, Query) else room < 0
    if not fits:
        raise LocalProtocolError(
            f"the algorithm must ask one query for each of {len(slots)} slots, within its length; after {done} rounds "
            "it did not: this is a bug."
        )


Unmasked = tuple[NDArray[Any], tuple[int, ...]]
"""Ring elements, and the parties that they are the sum of."""
_KEPT = 16  # sums of the last rounds: parties that were away still read them


class SharedThinking(Generic[Finding]):
    """Thoughts that several parties of one process share: whoever reads the same totals thinks once.

    Parameters
    ----------
    guard
        A lock, where parties run in several threads; roles know of none.
    pipeline
        The algorithm.
    """

    def __init__(self, *, guard: AbstractContextManager[object], pipeline: Pipeline[Finding]) -> None:
        self._guard = guard
        self._pipeline = pipeline
        self._first: dict[tuple[GuidedSettings, bytes], Thought[Finding]] = {}
        self._read: dict[bytes, Unmasked] = {}

    def read(self, key: bytes, aggregate: Aggregate, unmask: Callable[[], Unmasked]) -> Unmasked:
        """Return an unmasked sum; parties with the same masks (``key`` says which) unmask the same sum once.

        With gaps among the parties that answered, a mask sum takes time.
        """
        words = aggregate.masked_sum
        shape = encode_context(*words.shape)
        name = hashlib.blake2b(encode_context(aggregate.round, aggregate.members, words.code, shape), key=key)
        name.update(words.data)
        with self._guard:
            if name.digest() not in self._read:
                if len(self._read) >= _KEPT:
                    self._read.clear()
                self._read[name.digest()] = unmask()
            return self._read[name.digest()]

    def begin(self, settings: GuidedSettings, key: bytes) -> Thought[Finding]:
        """Return the thought before the first round; ``key`` is that of the parties' common stream."""
        with self._guard:
            if (settings, key) not in self._first:
                mind = _Mind(settings=settings, key=key, pipeline=self._pipeline, guard=self._guard)
                asking, query = mind.begin()
                self._first[settings, key] = Thought(mind, asking, (), query)
            return self._first[settings, key]
