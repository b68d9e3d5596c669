"""A party between rounds: it takes the totals in order, and votes on what it has found at the end.

The protocol's own computation is a `Contributor`: it makes a vector each round and moves on with the rounds' sums. A
`Follower` keeps it in step with the totals and with the chain of statements behind them.
"""

from __future__ import annotations

from copy import copy
from typing import Protocol, Self

from cloister.aggregation.double_masks import check_senders
from cloister.aggregation.introduction import Masks
from cloister.aggregation.messages import PartyBox, Total, Voted
from cloister.aggregation.statements import Place, start_link
from cloister.aggregation.terms import SumTerms
from cloister.crypto import is_signed
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.errors import DivergedError, RemoteProtocolError
from cloister.records import IntArray
from cloister.roles import Seat

_FOUND = "cloister found"


class Contributor(Protocol):
    """A party's own computation: it makes a vector each round and moves on with the rounds' sums."""

    @property
    def subject(self) -> bytes:
        """What all parties must have computed alike by now, besides the sums themselves."""

    def begin(self, seed: bytes, session: bytes) -> None:
        """Take the seed that all parties know and nobody else; given once, before anything else."""

    def contribute(self, round_: int) -> IntArray:
        """Charge this party's books and return its vector with its own noise; asked for once per round, in order."""

    def take(self, round_: int, total: IntArray, members: int) -> None:
        """Take the sum of a round over so many parties; given once per round, in order, none left out.

        It takes any sum, also one that cannot be: the coordinator can add what it likes, and sees what is refused.
        """

    def branch(self) -> Self:
        """Return a copy that goes on from here on its own: for steps that may turn out to be invalid."""


class Follower:
    """How far a party has followed a session."""

    def __init__(self, *, seat: Seat, terms: SumTerms, contributor: Contributor, length: int) -> None:
        self._seat = seat
        self._terms = terms
        self._length = length
        self.contributor = contributor
        self._link = start_link(seat.session, terms.digest)
        self.taken = 0
        """How many rounds' sums were taken."""

    @property
    def place(self) -> Place:
        """What we have in common with whoever answers with us now."""
        return Place(link=self._link, subject=self.contributor.subject)

    def branch(self) -> Follower:
        """Return a follower that goes on from here on its own."""
        other = copy(self)
        other.contributor = self.contributor.branch()
        return other

    def take(self, news: tuple[Total, ...], *, upto: int, masks: Masks) -> None:
        """Take each round's sum up to ``upto``; those that we have already are skipped. Use it on a branch."""
        first = news[0].attempt.round if news else upto + 1
        if first > self.taken + 1 or [total.attempt.round for total in news] != list(range(first, upto + 1)):
            raise RemoteProtocolError(
                f"the sums of rounds {self.taken + 1} to {upto} must all come, in order; they do not."
            )
        for total in news[self.taken + 1 - first :]:
            reading = masks.read(total, self.place, self._length)
            sums = self._terms.ring.decode(reading.elements)
            self.contributor.take(total.attempt.round, sums, len(reading.members))
            self.taken, self._link = total.attempt.round, reading.link

    # --- the result -----------------------------------------------------------------------------------------------

    def vote(self, masks: Masks) -> Voted:
        """Sign what we have found, for the parties; once in a session."""
        place = self.place
        signature = self._seat.identity.sign(_FOUND, place.link, place.subject)
        return Voted(seal_keyed(signature, masks.seed, self._seat.session, "result", self._seat.number))

    def check_votes(self, votes: tuple[PartyBox, ...], masks: Masks) -> None:
        """Refuse a result that fewer than the quorum have found.

        Raises
        ------
        DivergedError
            If enough parties have voted, but not for what we have found.
        """
        voters = check_senders(votes, tuple(range(1, self._terms.parties + 1)))
        if len(voters) < self._terms.members_min:
            raise RemoteProtocolError(
                f"a result must have the votes of at least {self._terms.members_min} parties; got {len(voters)}."
            )
        place, alike = self.place, 0
        for vote in votes:
            signature = open_keyed(vote.box, masks.seed, self._seat.session, "result", vote.party)
            identity = self._terms.directory[vote.party - 1]
            alike += is_signed(signature, identity, _FOUND, place.link, place.subject)
        if alike < self._terms.members_min:
            raise DivergedError(
                f"a result must be that of at least {self._terms.members_min} parties; ours is that of {alike} of "
                f"{len(voters)}. What was released stays paid. Compare the versions of the parties, and whether the "
                "coordinator told everyone the same."
            )
