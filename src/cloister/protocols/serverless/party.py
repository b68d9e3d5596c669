"""A party: makes its vector once per round, adds it, blinded, to the sum that comes around, and opens the sums.

::

    any ──BeginRound t, with all sums missed──▶ ready
    ready, drawing, added ──DrawNoise, a new attempt──▶ drawing ──TakeOpenings──▶ drawing ──AddVector──▶ added
    ready, added ──AddVector, a new attempt, without joint noise──▶ added
    added ──Reveal──▶ revealed ──Recover──▶ recovered        no other attempt of this round is answered from then on
    any ──Finish, with all sums missed──▶ finished

Whatever breaks this order raises :class:`~cloister.errors.RemoteProtocolError` and changes nothing, except that sums
that came with an invalid one, but before it, are taken.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import unpack_members
from cloister.aggregation.seed_agreement import Ready
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.joint_noise import JointSampler
from cloister.protocols.serverless import messages
from cloister.protocols.serverless.keyring import (
    Introduction,
    Keyring,
    OpenedTotal,
    open_total,
    read_members,
    read_vector,
    write_vector,
)
from cloister.protocols.serverless.terms import Contributor, Terms
from cloister.roles import Message, Seat

_Progress = Literal["drawing", "added", "revealed", "recovered"]


class RingParty:
    """One party of a serverless sum.

    Parameters
    ----------
    seat
        Its place in the session.
    terms
        What was agreed.
    contributor
        Makes this party's vectors and takes the sums. It keeps the books: a vector is made, and paid for, once per
        round, however many attempts the round takes.
    """

    def __init__(self, *, seat: Seat, terms: Terms, contributor: Contributor) -> None:
        self._number = seat.number
        self._terms = terms
        self._contributor = contributor
        self._entropy = seat.entropy
        self._session = seat.session
        self._introduction = Introduction(seat=seat, terms=terms)
        self._applied = 0  # rounds whose sum was taken
        self._round = 0  # the round whose vector we hold
        self._vector: NDArray[Any] | None = None
        self._attempt: messages.Attempt | None = None  # the last one we answered, and how far we are in it
        self._state: _Progress = "drawing"
        self._sampler: JointSampler | None = None  # draws that attempt's noise
        self._openings = 0  # how many we have given in it
        self._finished = False

    @property
    def contributor(self) -> Contributor:
        """What makes its vectors and takes the sums."""
        return self._contributor

    @property
    def finished(self) -> bool:
        """Whether this party has all sums."""
        return self._finished

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        keyring = self._introduction.keyring
        if self._finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        if keyring is None:
            return self._introduce(request)
        reply: Message
        match request:
            case messages.BeginRound():
                reply = self._begin_round(request, keyring)
            case messages.DrawNoise():
                reply = self._draw_noise(request, keyring)
            case messages.TakeOpenings():
                reply = self._take_openings(request, keyring)
            case messages.AddVector():
                reply = self._add_vector(request, keyring)
            case messages.Reveal():
                reply = self._reveal(request, keyring)
            case messages.Recover():
                reply = self._recover(request, keyring)
            case messages.Finish():
                reply = self._finish(request, keyring)
            case _:
                raise RemoteProtocolError(f"the introduction must come once; got {type(request).__name__} after it.")
        return reply

    def _introduce(self, request: Message) -> Message:
        reply = self._introduction.handle(request)
        if self._introduction.keyring is not None:
            self._contributor.begin(self._introduction.keyring.seed, self._session)
        return reply

    # --- rounds ---------------------------------------------------------------------------------------------------

    def _begin_round(self, request: messages.BeginRound, keyring: Keyring) -> Ready:
        if not self._round < request.round <= self._terms.rounds:
            raise RemoteProtocolError(
                f"the round must be from {self._round + 1} to {self._terms.rounds}; got {request.round}."
            )
        self._take(self._open_news(request.news, request.round - 1, keyring))
        self._round, self._vector = request.round, None
        exact_or_noisy = self._contributor.contribute(request.round)
        if exact_or_noisy.shape != (self._terms.length,):
            raise LocalProtocolError(
                f"a contribution must be {self._terms.length} integers; its array has another shape."
            )
        self._vector = self._terms.ring.encode(exact_or_noisy)
        return Ready()

    def _finish(self, request: messages.Finish, keyring: Keyring) -> Ready:
        self._take(self._open_news(request.news, self._terms.rounds, keyring))
        self._finished = True
        return Ready()

    def _open_news(self, news: tuple[messages.Total, ...], upto: int, keyring: Keyring) -> list[OpenedTotal]:
        """Open each sum not seen yet, in order; changes no state. Sums that we have already are skipped."""
        first = news[0].attempt.round if news else upto + 1
        if first > self._applied + 1 or [total.attempt.round for total in news] != list(range(first, upto + 1)):
            raise RemoteProtocolError(
                f"the sums of rounds {self._applied + 1} to {upto} must all come, in order; they do not."
            )
        fresh = news[self._applied + 1 - first :]
        opened = self._attempt if self._state in ("revealed", "recovered") else None
        if opened and any(total.attempt.round == opened.round and total.attempt != opened for total in fresh):
            raise RemoteProtocolError("a round's sum must be that of the attempt we opened; it is of another.")
        return [open_total(total, self._terms, keyring) for total in fresh]

    def _take(self, totals: list[OpenedTotal]) -> None:
        for opened in totals:
            self._contributor.take(opened.round, opened.total, opened.members)
            self._applied = opened.round

    # --- one attempt ----------------------------------------------------------------------------------------------

    def _enter(self, attempt: messages.Attempt, keyring: Keyring) -> tuple[int, ...]:
        """Return the members of an attempt that we have not answered yet, or refuse it."""
        last = self._attempt if self._attempt and self._attempt.round == self._round else None
        answered = last.number if last else 0
        closed = last is not None and self._state in ("revealed", "recovered")
        if attempt.round != self._round or attempt.number <= answered or closed or self._vector is None:
            raise RemoteProtocolError(
                f"an attempt must be of the round begun, {self._round}, later than attempt {answered}, and before one "
                f"was opened; got attempt {attempt.number} of round {attempt.round}."
            )
        members = read_members(attempt.members, self._terms, keyring)
        if self._number not in members:
            raise RemoteProtocolError("an attempt that asks us must have us as a member; this one does not.")
        return members

    def _require(self, attempt: messages.Attempt, state: _Progress) -> None:
        """Refuse what is not about the attempt that we are in, in this state of it."""
        if attempt != self._attempt or attempt.round != self._round or state != self._state:
            raise RemoteProtocolError(
                f"the request must be about the attempt we are in, which must be {state}; "
                f"got attempt {attempt.number} of round {attempt.round} out of turn."
            )

    def _draw_noise(self, request: messages.DrawNoise, keyring: Keyring) -> messages.Opening:
        if self._terms.joint is None:
            raise RemoteProtocolError("noise must be joint to be drawn together; these terms have none.")
        members = self._enter(request.attempt, keyring)
        sampler = JointSampler(
            self._terms.plan_noise(len(members)),
            place=members.index(self._number),
            dealt=request.dealt,
            entropy=self._entropy,
        )
        self._attempt, self._state, self._sampler, self._openings = request.attempt, "drawing", sampler, 0
        return self._open_next(sampler, request.attempt, keyring)

    def _take_openings(self, request: messages.TakeOpenings, keyring: Keyring) -> messages.Opening:
        sampler = self._receive_openings(request, keyring, last=False)
        return self._open_next(sampler, request.attempt, keyring)

    def _open_next(self, sampler: JointSampler, attempt: messages.Attempt, keyring: Keyring) -> messages.Opening:
        box = keyring.seal(sampler.open(), "opening", attempt, self._openings)
        self._openings += 1
        return messages.Opening(box)

    def _receive_openings(
        self, request: messages.TakeOpenings | messages.AddVector, keyring: Keyring, *, last: bool
    ) -> JointSampler:
        """Pass the others' openings of a step to the sampler; the last ones come with the sum so far."""
        self._require(request.attempt, "drawing")
        assert self._sampler is not None
        members = unpack_members(request.attempt.members, self._terms.parties)
        if last != (self._openings == self._terms.plan_noise(len(members)).steps):
            raise RemoteProtocolError("the last openings, and only those, must come with the sum so far; they do not.")
        if [opening.party for opening in request.openings] != [member for member in members if member != self._number]:
            raise RemoteProtocolError("openings must come from each other member once, in order; they do not.")
        step = self._openings - 1
        self._sampler.receive(
            {
                members.index(opening.party): keyring.open(
                    opening.box, "opening", request.attempt, sender=opening.party, detail=step
                )
                for opening in request.openings
            }
        )
        return self._sampler

    def _add_vector(self, request: messages.AddVector, keyring: Keyring) -> messages.Passed:
        """Thesis 7.3.1 with blinds: the sum so far + our vector + pad + own mask (+ our share of the noise)."""
        attempt = request.attempt
        if self._terms.joint is None:
            members = self._enter(attempt, keyring)
            if request.openings:
                raise RemoteProtocolError("openings must come with joint noise only; these terms have none.")
        else:
            self._require(attempt, "drawing")
            members = unpack_members(attempt.members, self._terms.parties)
        total = self._read_partial(request.partial, attempt, members, keyring) + self._vector
        if self._terms.joint is not None:
            total = total + self._receive_openings(request, keyring, last=True).shares
        total = total + keyring.blind(attempt, members, self._terms.length)
        self._attempt, self._state, self._sampler = attempt, "added", None
        return messages.Passed(keyring.seal(write_vector(total), "sum", attempt))

    def _read_partial(
        self, box: bytes | None, attempt: messages.Attempt, members: tuple[int, ...], keyring: Keyring
    ) -> NDArray[Any]:
        place = members.index(self._number)
        if (box is None) != (place == 0):
            raise RemoteProtocolError("the sum so far must come to every member but the first; it did not.")
        if box is None:
            return np.zeros(self._terms.length, dtype=self._terms.ring.dtype)
        return read_vector(keyring.open(box, "sum", attempt, sender=members[place - 1]), self._terms)

    # --- opening the sum ------------------------------------------------------------------------------------------

    def _reveal(self, request: messages.Reveal, keyring: Keyring) -> messages.Revealed:
        self._require(request.attempt, "added")
        self._state = "revealed"
        return messages.Revealed(keyring.seal(keyring.own_mask_key(request.attempt), "mask key", request.attempt))

    def _recover(self, request: messages.Recover, keyring: Keyring) -> messages.Recovered:
        attempt = request.attempt
        self._require(attempt, "revealed")
        members = unpack_members(attempt.members, self._terms.parties)
        missing = unpack_members(request.missing, self._terms.parties)
        others = set(members) - {self._number}
        if not missing or not others.issuperset(missing) or len(members) - len(missing) < keyring.restorers:
            raise RemoteProtocolError(
                f"the missing must be other members, with at least {keyring.restorers} left; they are not."
            )
        self._state = "recovered"
        return messages.Recovered(keyring.seal(keyring.shares_of(missing), "shares", attempt, request.missing))
