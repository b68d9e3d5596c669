"""A party's masks from the common seed, for sums whose vectors may be seen, or where a published text says so.

All masks follow from one seed that every party knows (:mod:`cloister.aggregation.masked_sum`): **the coordinator
together with any one party reads every vector**. In return there are no attempts and nothing to open: whoever is silent
is not in the sum, and a round is one step. Check words tell parties that a coordinator told others something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from cloister.aggregation.masked_sum import MaskSchedule, unpack_members
from cloister.aggregation.messages import Answered, Attempt, Total
from cloister.aggregation.statements import (
    Place,
    Reading,
    append_check_words,
    read_checked,
    read_words,
    state_attempt,
    write_words,
)
from cloister.aggregation.terms import SumTerms
from cloister.errors import RemoteProtocolError
from cloister.roles import Message, Seat


class CommonMasks:
    """One party's side of sums with common masks, in one session.

    Parameters
    ----------
    seat, terms
        Its place in the session, and what was agreed.
    seed
        Known to all parties and not to the coordinator.
    """

    def __init__(self, *, seat: Seat, terms: SumTerms, seed: bytes) -> None:
        self.seed = seed
        self._seat = seat
        self._terms = terms
        self._schedule = MaskSchedule(seed, session=seat.session, ring=terms.ring, parties=terms.parties)
        self._answered = 0

    def check(self, attempt: Attempt, place: Place) -> None:
        """Refuse what may not be answered: a round twice, or a second attempt; change nothing."""
        if attempt.round <= self._answered or attempt.number != 1 or attempt.members:
            raise RemoteProtocolError(
                f"a sum with common masks must be of a round after {self._answered}, in one attempt, over whoever "
                f"answers; got attempt {attempt.number} of round {attempt.round}."
            )

    def answer(self, attempt: Attempt, place: Place, make: Callable[[], NDArray[Any]]) -> Answered:
        """Answer a round once, on the vector that ``make`` makes."""
        self.check(attempt, place)
        statement = state_attempt(self._seat.session, place, attempt)
        vector = append_check_words(make(), self.seed, statement, self._terms.ring)
        self._answered = attempt.round
        return Answered(write_words(self._schedule.mask(vector, attempt.round, self._seat.number)))

    def handle(self, request: Message) -> Message:
        """Refuse: nothing has to be opened."""
        raise RemoteProtocolError(f"sums with common masks are not opened; got {type(request).__name__}.")

    def read(self, total: Total, place: Place, length: int) -> Reading:
        """Return the sum; changes nothing. Raises as double masks do."""
        attempt, terms = total.attempt, self._terms
        members = unpack_members(attempt.members, terms.parties)
        if len(members) < terms.members_min or attempt.number != 1 or total.openings or total.restored:
            raise RemoteProtocolError(
                f"a sum must be over at least {terms.members_min} parties, in one attempt, with nothing to open; got "
                f"{len(members)} parties and attempt {attempt.number}."
            )
        words = length + terms.check_words
        masked = read_words(total.body, terms.ring, words)
        elements = masked - self._schedule.sum_masks(attempt.round, attempt.members, words)
        statement = state_attempt(self._seat.session, place, Attempt(attempt.round, 1, b""))
        return read_checked(elements, seed=self.seed, statement=statement, ring=terms.ring, members=members)
