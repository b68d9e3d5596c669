"""A party: makes its vector once a round, adds it blinded to what comes around, opens the sums.

::

    any ──BeginRound t, with all sums missed──▶ ready
    ready, drawing, added ──DrawNoise, a new attempt──▶ drawing ──TakeOpenings──▶ drawing ──AddVector──▶ added
    ready, added ──AddVector, a new attempt, without joint noise──▶ added
    added ──Reveal──▶ revealed ──Recover──▶ recovered        no other attempt of this round is answered any more
    any ──Finish, with all sums missed──▶ finished

Whatever breaks this order raises :class:`~cloister.errors.RemoteProtocolError` and changes nothing; sums that came with
a bad one, and before it, are taken.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import unpack_members
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy, Identity
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.joint_noise import JointSampler
from cloister.protocols.serverless.introduction import Introduction
from cloister.protocols.serverless.keyring import Keyring
from cloister.protocols.serverless.messages import (
    AddVector,
    Attempt,
    BeginRound,
    DrawNoise,
    Finish,
    Opening,
    Passed,
    Recover,
    Recovered,
    Reveal,
    Revealed,
    TakeOpenings,
    Total,
)
from cloister.protocols.serverless.terms import Terms, Walker
from cloister.protocols.serverless.totals import OpenedTotal, open_total, read_members, read_vector, write_vector
from cloister.roles import Message

_Stage = Literal["drawing", "added", "revealed", "recovered"]


class RingParty:
    """One party of a serverless sum.

    Parameters
    ----------
    number
        This party's number, from 1.
    terms
        What was agreed.
    walker
        Makes this party's vectors and takes the sums. It keeps the books: a vector is made, and paid for, once a round,
        however many attempts the round takes.
    identity, entropy, session
        Who we are, where our keys come from, which session this is.
    """

    def __init__(
        self, *, number: int, terms: Terms, walker: Walker, identity: Identity, entropy: Entropy, session: bytes
    ) -> None:
        self._number = number
        self._terms = terms
        self._walker = walker
        self._entropy = entropy
        self._session = session
        self._introduction = Introduction(
            number=number, terms=terms, identity=identity, entropy=entropy, session=session
        )
        self._applied = 0  # rounds whose sum the walker has
        self._round = 0  # the round whose vector we hold
        self._vector: NDArray[Any] | None = None
        self._attempt: Attempt | None = None  # the last one we answered, and how far we are in it
        self._stage: _Stage = "drawing"
        self._sampler: JointSampler | None = None  # draws that attempt's noise
        self._openings = 0  # how many we have given in it
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether this party's walker has all sums."""
        return self._finished

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        keyring = self._introduction.keyring
        if self._finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        if keyring is None:
            reply = self._introduction.handle(request)
            if self._introduction.keyring is not None:
                self._walker.begin(self._introduction.keyring.seed, self._session)
            return reply
        match request:
            case BeginRound():
                reply = self._begin_round(request, keyring)
            case DrawNoise():
                reply = self._draw_noise(request, keyring)
            case TakeOpenings():
                reply = self._take_openings(request, keyring)
            case AddVector():
                reply = self._add_vector(request, keyring)
            case Reveal():
                reply = self._reveal(request, keyring)
            case Recover():
                reply = self._recover(request, keyring)
            case Finish():
                reply = self._finish(request, keyring)
            case _:
                raise RemoteProtocolError(f"the introduction must come once; got {type(request).__name__} after it.")
        return reply

    # --- rounds ---------------------------------------------------------------------------------------------------

    def _begin_round(self, request: BeginRound, keyring: Keyring) -> Ready:
        if not self._round < request.round <= self._terms.rounds:
            raise RemoteProtocolError(
                f"the round must be from {self._round + 1} to {self._terms.rounds}; got {request.round}."
            )
        self._take(self._open_news(request.news, request.round - 1, keyring))
        self._round, self._vector = request.round, None
        exact_or_noisy = self._walker.contribute(request.round)
        if exact_or_noisy.shape != (self._terms.length,):
            raise LocalProtocolError(
                f"a walker must contribute {self._terms.length} integers; its array has another shape"
            )
        self._vector = self._terms.ring.encode(exact_or_noisy)
        return Ready()

    def _finish(self, request: Finish, keyring: Keyring) -> Ready:
        self._take(self._open_news(request.news, self._terms.rounds, keyring))
        self._finished = True
        return Ready()

    def _open_news(self, news: tuple[Total, ...], upto: int, keyring: Keyring) -> list[OpenedTotal]:
        """Open each sum not seen yet, in order; changes no state. Sums that we have already are skipped."""
        first = news[0].attempt.round if news else upto + 1
        if first > self._applied + 1 or [total.attempt.round for total in news] != list(range(first, upto + 1)):
            raise RemoteProtocolError(
                f"the sums of rounds {self._applied + 1} to {upto} must all come, in order; they do not."
            )
        fresh = news[self._applied + 1 - first :]
        opened = self._attempt if self._stage in ("revealed", "recovered") else None
        if opened and any(total.attempt.round == opened.round and total.attempt != opened for total in fresh):
            raise RemoteProtocolError("a round's sum must be that of the attempt we opened; it is of another.")
        return [open_total(total, self._terms, keyring) for total in fresh]

    def _take(self, totals: list[OpenedTotal]) -> None:
        for opened in totals:
            self._walker.take(opened.round, opened.total, opened.members)
            self._applied = opened.round

    # --- one attempt ----------------------------------------------------------------------------------------------

    def _enter(self, attempt: Attempt, keyring: Keyring) -> tuple[int, ...]:
        """Return the members of an attempt that we have not answered yet, or refuse it."""
        last = self._attempt if self._attempt and self._attempt.round == self._round else None
        answered = last.number if last else 0
        closed = last is not None and self._stage in ("revealed", "recovered")
        if attempt.round != self._round or attempt.number <= answered or closed or self._vector is None:
            raise RemoteProtocolError(
                f"an attempt must be of the round begun, {self._round}, later than attempt {answered}, and before one "
                f"was opened; got attempt {attempt.number} of round {attempt.round}."
            )
        members = read_members(attempt.members, self._terms, keyring)
        if self._number not in members:
            raise RemoteProtocolError("an attempt must have us among its members to ask us; it has not.")
        return members

    def _require(self, attempt: Attempt, stage: _Stage) -> None:
        """Refuse what is not about the attempt that we are in, at this stage of it."""
        if attempt != self._attempt or attempt.round != self._round or stage != self._stage:
            raise RemoteProtocolError(
                f"the request must be about the attempt we are in, which must be {stage}; "
                f"got attempt {attempt.number} of round {attempt.round} out of turn."
            )

    def _draw_noise(self, request: DrawNoise, keyring: Keyring) -> Opening:
        if self._terms.joint is None:
            raise RemoteProtocolError("noise must be joint to be drawn together; these terms have none.")
        members = self._enter(request.attempt, keyring)
        sampler = JointSampler(
            self._terms.plan_noise(len(members)),
            place=members.index(self._number),
            dealt=request.hand,
            entropy=self._entropy,
        )
        self._attempt, self._stage, self._sampler, self._openings = request.attempt, "drawing", sampler, 0
        return self._open_next(sampler, request.attempt, keyring)

    def _take_openings(self, request: TakeOpenings, keyring: Keyring) -> Opening:
        sampler = self._receive_openings(request, keyring, last=False)
        return self._open_next(sampler, request.attempt, keyring)

    def _open_next(self, sampler: JointSampler, attempt: Attempt, keyring: Keyring) -> Opening:
        box = keyring.seal(sampler.open(), "opening", attempt, self._openings)
        self._openings += 1
        return Opening(box)

    def _receive_openings(self, request: TakeOpenings | AddVector, keyring: Keyring, *, last: bool) -> JointSampler:
        """Give the sampler the others' openings of a step; the last ones come with the sum so far."""
        self._require(request.attempt, "drawing")
        assert self._sampler is not None
        members = unpack_members(request.attempt.members, self._terms.parties)
        if last != (self._openings == self._terms.plan_noise(len(members)).steps):
            raise RemoteProtocolError("the last openings, and only those, must come with the sum so far; it is not so.")
        if [parcel.party for parcel in request.openings] != [member for member in members if member != self._number]:
            raise RemoteProtocolError("openings must come from each other member once, in order; they do not.")
        step = self._openings - 1
        self._sampler.receive(
            {
                members.index(parcel.party): keyring.open(
                    parcel.box, "opening", request.attempt, sender=parcel.party, detail=step
                )
                for parcel in request.openings
            }
        )
        return self._sampler

    def _add_vector(self, request: AddVector, keyring: Keyring) -> Passed:
        """Thesis 7.3.1 with blinds: what came + our vector + pad + own mask (+ our share of the noise)."""
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
        self._attempt, self._stage, self._sampler = attempt, "added", None
        return Passed(keyring.seal(write_vector(total), "sum", attempt))

    def _read_partial(
        self, box: bytes | None, attempt: Attempt, members: tuple[int, ...], keyring: Keyring
    ) -> NDArray[Any]:
        place = members.index(self._number)
        if (box is None) != (place == 0):
            raise RemoteProtocolError("the sum so far must come to every member but the first; it is not so.")
        if box is None:
            return np.zeros(self._terms.length, dtype=self._terms.ring.dtype)
        return read_vector(keyring.open(box, "sum", attempt, sender=members[place - 1]), self._terms)

    # --- opening the sum ------------------------------------------------------------------------------------------

    def _reveal(self, request: Reveal, keyring: Keyring) -> Revealed:
        self._require(request.attempt, "added")
        self._stage = "revealed"
        return Revealed(keyring.seal(keyring.own_mask_key(request.attempt), "mask key", request.attempt))

    def _recover(self, request: Recover, keyring: Keyring) -> Recovered:
        attempt = request.attempt
        self._require(attempt, "revealed")
        members = unpack_members(attempt.members, self._terms.parties)
        missing = unpack_members(request.missing, self._terms.parties)
        others = set(members) - {self._number}
        if not missing or not others.issuperset(missing) or len(members) - len(missing) < keyring.restorers:
            raise RemoteProtocolError(
                f"the missing must be other members, with at least {keyring.restorers} left; they are not."
            )
        self._stage = "recovered"
        return Recovered(keyring.seal(keyring.shares_of(missing), "shares", attempt, request.missing))
