"""The leader: runs the algorithm on the totals, and states what is asked next and, at the end, what was found.

Any party can lead; one does at a time. Who takes over is told all totals and all questions that were stated, and runs
the algorithm again from the start. It can follow if its own questions are those that were stated: the same kinds and
lengths, and numbers that differ by rounding only. Then it goes on, and what was stated stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cloister.aggregation import Masks
from cloister.crypto import Stream
from cloister.errors import DivergedError, LocalProtocolError, RemoteProtocolError
from cloister.protocols.guided_sums.agreement import Agreement
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession
from cloister.protocols.guided_sums.messages import Past
from cloister.protocols.guided_sums.query import Idle, Query, Question
from cloister.protocols.guided_sums.statements import Statements, next_link, place_of
from cloister.records import IntArray
from cloister.wire import Array
from cloister.wire.codec import DTYPES

CLOSE = 1e-9
"""By how much numbers in a question may differ that two processors compute."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Read:
    """A round that is over, opened: nothing about it can fail any more."""

    question: Question
    link: bytes
    total: NDArray[Any] | None
    """None if some member answered another question, or after others."""


class Leader:
    """One party's copy of the algorithm, from the moment it first leads.

    Parameters
    ----------
    agreed
        What was agreed; its algorithm is what runs.
    statements, masks
        This party's, in this session.
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
        masks: Masks,
        stream: Stream,
        link: bytes,
    ) -> None:
        self._agreement: Agreement[Any] = agreed.agreement
        self._statements, self._masks = statements, masks
        self._result = agreed.result
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
        unread = [past for past in news if past.total.attempt.round > self._read]
        if [past.total.attempt.round for past in unread] != list(range(self._read + 1, round_)):
            raise RemoteProtocolError(f"all rounds before round {round_} must come with it, in order; they do not.")
        opened, link = list[_Read](), self._link
        for past in unread:
            opened.append(self._open(past, link))
            link = opened[-1].link
        for read in opened:
            self._advance(read)
        if not self._follows:
            return None
        return self._next_question(round_) if self._agrees else Idle()

    def _open(self, past: Past, link: bytes) -> _Read:
        round_ = past.total.attempt.round
        question = self._statements.open(round_, past.stated).question
        link, total = next_link(link, round_, past.stated), None
        with suppress(DivergedError):  # told to nobody: the session asks nothing more, and ends without a result
            total = self._masks.read(past.total, place_of(link), self._agreement.slots[round_ - 1].length).elements
        return _Read(question=question, link=link, total=total)

    def _advance(self, read: _Read) -> None:
        self._read += 1
        self._link = read.link
        if read.total is None:
            self._agrees = False
        if read.total is None or not self._agrees or not self._follows:
            return
        assert isinstance(self._own, Query)  # one for each slot
        self._follows = is_close(self._own.question, read.question)
        if not self._follows:
            return
        total = self._agreement.ring.decode(read.total)
        self.totals = (*self.totals, total)
        try:
            self._own = self._asking.send(total[: self._own.length])
        except StopIteration as stop:
            self._own = stop.value

    def _next_question(self, round_: int) -> Question:
        slots, own = self._agreement.slots, self._own
        last = round_ > len(slots)
        if isinstance(own, GuidedFinding) and last:
            return self._result.of(own)
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
