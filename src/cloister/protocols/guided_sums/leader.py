"""The leader: runs the algorithm on the totals, and states what is asked next and, at the end, what was found.

Any party can lead; one does at a time. Who takes over is told all totals and all questions that were stated, and runs
the algorithm again from the start. It can follow if its own questions are those that were stated: the same kinds and
lengths, and numbers that differ by rounding only. Then it goes on, and what was stated stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.protocols.guided_sums.agreement import Agreement
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, Result
from cloister.protocols.guided_sums.blinding import CommonMasks
from cloister.protocols.guided_sums.messages import Past
from cloister.protocols.guided_sums.query import Idle, Query, Question
from cloister.protocols.guided_sums.statements import Stated, Statements, next_link
from cloister.records import IntArray
from cloister.wire import Array
from cloister.wire.codec import DTYPES

CLOSE = 1e-9
"""By how much numbers in a question may differ that two processors compute."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Read:
    """A round that is over, opened: nothing about it can fail any more."""

    stated: Stated
    question: Question
    words: NDArray[Any]
    members: tuple[int, ...]


class Leader:
    """One party's copy of the algorithm, from the moment it first leads.

    Parameters
    ----------
    agreed
        What was agreed; its algorithm is what runs.
    statements, blinding
        What follows from the common seed.
    check_words
        The words that a member puts behind its vector of a round, given that round's link of the chain.
    stream
        The parties' common stream.
    link
        The chain's before the first round.
    """

    def __init__(
        self,
        *,
        agreed: GuidedSession[Any],
        statements: Statements,
        blinding: CommonMasks,
        check_words: Callable[[int, bytes], NDArray[Any]],
        stream: Stream,
        link: bytes,
    ) -> None:
        self._agreement: Agreement[Any] = agreed.agreement
        self._statements, self._blinding, self._check_words = statements, blinding, check_words
        self._asking = agreed.algorithm(self._agreement.settings, stream)
        self._own: Query | GuidedFinding = next(self._asking)
        self._link = link
        self._agrees = True  # everyone in the sums answered what was stated
        self._follows = True  # what was stated is what we would have asked
        self.totals: tuple[IntArray, ...] = ()
        """The released numbers of each round that was read, whole slots."""
        self._read = 0

    def think(self, round_: int, news: Sequence[Past]) -> Question | None:
        """Read the rounds that are over; return this round's question, or None where we cannot follow.

        Raises
        ------
        RemoteProtocolError
            If a round is missing or was changed; nothing has been read then.
        """
        unread = [past for past in news if past.total.round > self._read]
        if [past.total.round for past in unread] != list(range(self._read + 1, round_)):
            raise RemoteProtocolError(f"all rounds before round {round_} must come with it, in order; they do not.")
        for read in [self._open(past) for past in unread]:
            self._advance(read)
        if not self._follows:
            return None
        return self._next_question(round_) if self._agrees else Idle()

    def _open(self, past: Past) -> _Read:
        agreement, round_ = self._agreement, past.total.round
        query = self._statements.open(round_, past.stated)
        length, least = agreement.length_of(round_), agreement.quorum_of(round_)
        words, members = self._blinding.open(past.total, length=length, members_min=least)
        return _Read(stated=past.stated, question=query.question, words=words, members=members)

    def _advance(self, read: _Read) -> None:
        self._read += 1
        self._link = next_link(self._link, self._read, read.stated)
        length = len(read.words) - self._agreement.check_words
        own = self._check_words(self._read, self._link)
        self._agrees &= np.array_equal(
            read.words[length:], own * own.dtype.type(len(read.members))
        )  # wraps, as sums do
        if not self._agrees or not self._follows:
            return
        assert isinstance(self._own, Query)  # one for each slot
        self._follows = is_close(self._own.question, read.question)
        if not self._follows:
            return
        total = self._agreement.ring.decode(read.words[:length])
        self.totals = (*self.totals, total)
        try:
            self._own = self._asking.send(total[: self._own.length])
        except StopIteration as stop:
            self._own = stop.value

    def _next_question(self, round_: int) -> Question:
        slots, own = self._agreement.slots, self._own
        last = round_ > len(slots)
        if isinstance(own, GuidedFinding) and last:
            return Result.of(own)
        if isinstance(own, Query) and not last and own.length <= slots[round_ - 1].length:
            return own.question
        raise LocalProtocolError(
            f"the algorithm must ask one query for each of {len(slots)} slots, within its length; in round {round_} it "
            "did not: this is a bug."
        )


def is_close(own: Any, stated: Any) -> bool:
    """Whether two questions are the same up to the rounding of doubles."""
    if type(own) is not type(stated):
        return False
    if isinstance(own, Array) and own.code == stated.code and own.shape == stated.shape:
        ours, theirs = (np.frombuffer(array.data, DTYPES[array.code]) for array in (own, stated))
        return bool(np.allclose(ours, theirs, rtol=CLOSE, atol=CLOSE)) if ours.dtype.kind == "f" else own == stated
    if isinstance(own, Struct):
        return all(is_close(getattr(own, name), getattr(stated, name)) for name in own.__struct_fields__)
    if isinstance(own, int | float):  # a share of the budget may be computed from doubles, too
        return bool(np.isclose(own, stated, rtol=CLOSE, atol=CLOSE))
    return bool(own == stated)
