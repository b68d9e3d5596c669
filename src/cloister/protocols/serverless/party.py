"""A party: makes its vector once per round, adds it masked to what comes around, opens the sums.

::

    any ──BeginRound t, with all sums missed──▶ ready
    ready, drawing, added ──DrawNoise, a new attempt──▶ drawing ──TakeOpenings──▶ drawing ──AddVector──▶ added
    ready, added ──AddVector, a new attempt, without joint noise──▶ added
    added ──OpenTotal──▶ opened ──RestoreMasks──▶ restored     no other attempt of this round is answered any more
    any ──Settle, with all sums missed──▶ settled ──Conclude──▶ finished

Whatever breaks this order raises :class:`~cloister.errors.RemoteProtocolError` and changes nothing. Which attempts may
be entered, opened and restored is a matter of :class:`~cloister.aggregation.double_masks.DoubleMasks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Contributor, Follower, Introduction
from cloister.aggregation.messages import (
    Attempt,
    Conclude,
    OpenTotal,
    RestoreMasks,
    Settle,
    Voted,
)
from cloister.aggregation.seed_agreement import Ready
from cloister.aggregation.statements import read_words, write_words
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.joint_noise import JointSampler
from cloister.protocols.serverless import messages
from cloister.protocols.serverless.masks import RingMasks
from cloister.protocols.serverless.terms import Terms
from cloister.roles import Message, Seat


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
        self._entropy = seat.entropy
        self._session = seat.session
        self._introduction = Introduction(seat=seat, terms=terms.sums, double=RingMasks)
        self._follower = Follower(seat=seat, terms=terms.sums, contributor=contributor, length=terms.length)
        self._round = 0  # the round whose vector we hold
        self._vector: NDArray[Any] | None = None
        self._sampler: JointSampler | None = None  # draws the noise of the attempt that we have entered
        self._openings = 0  # how many we have given in it
        self._voted = False
        self._finished = False

    @property
    def contributor(self) -> Contributor:
        """What makes its vectors and takes the sums."""
        return self._follower.contributor

    @property
    def finished(self) -> bool:
        """Whether this party has all sums, and a quorum that found the same."""
        return self._finished

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        masks = self._introduction.masks
        if self._finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        if masks is None:
            return self._introduce(request)
        assert isinstance(masks, RingMasks)
        reply: Message
        match request:
            case messages.BeginRound():
                reply = self._begin_round(request, masks)
            case messages.DrawNoise():
                reply = self._draw_noise(request, masks)
            case messages.TakeOpenings():
                reply = self._take_openings(request, masks)
            case messages.AddVector():
                reply = self._add_vector(request, masks)
            case OpenTotal() | RestoreMasks():
                reply = masks.handle(request)
            case Settle():
                reply = self._settle(request, masks)
            case Conclude():
                reply = self._conclude(request, masks)
            case _:
                raise RemoteProtocolError(f"the introduction must come once; got {type(request).__name__} after it.")
        return reply

    def _introduce(self, request: Message) -> Message:
        reply = self._introduction.handle(request)
        if self._introduction.masks is not None:
            self.contributor.begin(self._introduction.masks.seed, self._session)
        return reply

    # --- rounds ---------------------------------------------------------------------------------------------------

    def _begin_round(self, request: messages.BeginRound, masks: RingMasks) -> Ready:
        if not self._round < request.round <= self._terms.rounds or self._voted:
            raise RemoteProtocolError(
                f"the round must be from {self._round + 1} to {self._terms.rounds}; got {request.round}."
            )
        follower = self._follower.branch()
        follower.take(request.news, upto=request.round - 1, masks=masks)
        exact_or_noisy = follower.contributor.contribute(request.round)
        if exact_or_noisy.shape != (self._terms.length,):
            raise LocalProtocolError(
                f"a contribution must be {self._terms.length} integers; its array has another shape."
            )
        self._follower, self._round, self._vector = follower, request.round, self._terms.ring.encode(exact_or_noisy)
        return Ready()

    def _settle(self, request: Settle, masks: RingMasks) -> Voted:
        if self._voted:
            raise RemoteProtocolError("a party must be asked for its vote once; it was asked again.")
        follower = self._follower.branch()
        follower.take(request.news, upto=self._terms.rounds, masks=masks)
        self._follower, self._voted = follower, True
        return follower.vote(masks)

    def _conclude(self, request: Conclude, masks: RingMasks) -> Ready:
        follower = self._follower.branch()
        follower.take(request.news, upto=self._terms.rounds, masks=masks)
        follower.check_votes(request.votes, masks)
        self._follower, self._finished = follower, True
        return Ready()

    # --- one attempt ----------------------------------------------------------------------------------------------

    def _check_round(self, attempt: Attempt) -> NDArray[Any]:
        if attempt.round != self._round:
            raise RemoteProtocolError(
                f"an attempt must be of the round begun, {self._round}; got one of round {attempt.round}."
            )
        assert self._vector is not None
        return self._vector

    def _draw_noise(self, request: messages.DrawNoise, masks: RingMasks) -> messages.Opening:
        if self._terms.joint is None:
            raise RemoteProtocolError("noise must be joint to be drawn together; these terms have none.")
        self._check_round(request.attempt)
        place = self._follower.place
        members = masks.check(request.attempt, place)
        sampler = JointSampler(
            self._terms.plan_noise(len(members)),
            place=members.index(self._number),
            dealt=request.dealt,
            entropy=self._entropy,
        )
        masks.enter(request.attempt, place)
        self._sampler, self._openings = sampler, 0
        return self._open_next(sampler, request.attempt, masks)

    def _take_openings(self, request: messages.TakeOpenings, masks: RingMasks) -> messages.Opening:
        sampler = self._receive_openings(request, masks, last=False)
        return self._open_next(sampler, request.attempt, masks)

    def _open_next(self, sampler: JointSampler, attempt: Attempt, masks: RingMasks) -> messages.Opening:
        box = masks.seal(sampler.open(), "noise", attempt, sender=self._number, detail=self._openings)
        self._openings += 1
        return messages.Opening(box)

    def _receive_openings(
        self, request: messages.TakeOpenings | messages.AddVector, masks: RingMasks, *, last: bool
    ) -> JointSampler:
        """Give the sampler the others' openings of a step; the last ones come with the sum so far."""
        members = masks.require_entered(request.attempt)
        assert self._sampler is not None  # an attempt is entered before it is answered where noise is joint only
        if last != (self._openings == self._terms.plan_noise(len(members)).steps):
            raise RemoteProtocolError("the last openings, and only those, must come with the sum so far; they do not.")
        if [opening.party for opening in request.openings] != [member for member in members if member != self._number]:
            raise RemoteProtocolError("openings must come from each other member once, in order; they do not.")
        step = self._openings - 1
        self._sampler.receive(
            {
                members.index(opening.party): masks.open(
                    opening.box, "noise", request.attempt, sender=opening.party, detail=step
                )
                for opening in request.openings
            }
        )
        return self._sampler

    def _add_vector(self, request: messages.AddVector, masks: RingMasks) -> messages.Passed:
        """Thesis 7.3.1 with masks: what came + our vector + pads + own mask (+ our share of the noise)."""
        attempt = request.attempt
        vector, place = self._check_round(attempt), self._follower.place
        joint = self._terms.joint is not None
        members = masks.require_entered(attempt) if joint else masks.check(attempt, place)
        if request.openings and not joint:
            raise RemoteProtocolError("openings must come with joint noise only; these terms have none.")
        partial = self._read_partial(request.partial, attempt, members, masks)
        if joint:
            vector = vector + self._receive_openings(request, masks, last=True).shares
        else:
            masks.enter(attempt, place)
        answered = masks.blind(vector)
        total = partial + read_words(answered.vector, self._terms.ring, len(partial))
        self._sampler = None
        return messages.Passed(masks.seal(write_words(total), "sum", attempt, sender=self._number), answered.shares)

    def _read_partial(
        self, box: bytes | None, attempt: Attempt, members: tuple[int, ...], masks: RingMasks
    ) -> NDArray[Any]:
        place, words = members.index(self._number), self._terms.words
        if (box is None) != (place == 0):
            raise RemoteProtocolError("the sum so far must come to every member but the first; it did not.")
        if box is None:
            return np.zeros(words, dtype=self._terms.ring.dtype)
        return read_words(masks.open(box, "sum", attempt, sender=members[place - 1]), self._terms.ring, words)
