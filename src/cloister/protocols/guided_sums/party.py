"""A party: opens the question of a round, refuses what may not be asked, pays, masks its answer; and may lead."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Introduction, Masks
from cloister.aggregation.messages import Answered, OpenTotal, RestoreMasks
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Stream, derive_key
from cloister.errors import DivergedError, LocalProtocolError, RemoteProtocolError
from cloister.privacy.release import NoiseDuty, release
from cloister.protocol import Votes
from cloister.protocols.guided_sums.agreement import Agreement, release_of
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, Result, explain_nothing
from cloister.protocols.guided_sums.leader import Leader
from cloister.protocols.guided_sums.messages import Answer, Declined, Finish, Lead, Sign, Signed
from cloister.protocols.guided_sums.query import Query
from cloister.protocols.guided_sums.statements import Stated, Statements, first_link, next_link, place_of
from cloister.records import FloatArray, IntArray, Records
from cloister.roles import Message, Seat


class GuidedParty:
    """One party of guided sums.

    Parameters
    ----------
    seat
        Its place in the session.
    agreed
        What was agreed.
    records
        This party's records in [-1, 1]^d, on the agreed grid; they never leave this object.
    duty
        This party's own books, charged for a round before the round's vector leaves, and its source of noise where the
        parties add it.
    """

    def __init__(
        self,
        *,
        seat: Seat,
        agreed: GuidedSession[Any],
        records: Records,
        duty: NoiseDuty,
    ) -> None:
        agreement: Agreement[Any] = agreed.agreement
        self._seat, self._agreed, self._agreement, self._records, self._duty = seat, agreed, agreement, records, duty
        self._introduction = Introduction(seat=seat, terms=agreement.sums)
        self._left = agreement.settings.prices_most  # for all questions that are still to come
        self._answered = 0  # the last round answered
        self._link = first_link(agreement.digest, seat.session)  # the chain's, of that round
        self._leader: Leader | None = None
        self._led = 0  # the last round that we stated something in; each has one question of ours
        self._result: GuidedFinding | None = None
        self._signatures = 0
        self.votes: Votes | None = None
        """On the result, once the session has finished."""
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether the session has ended, with or without a result."""
        return self._finished

    @property
    def finding(self) -> GuidedFinding:
        """The result, once the session has finished.

        Raises
        ------
        DivergedError
            If too few parties signed it, or the leader saw that a sum was not of answers to what it had asked.
        ConfigError
            If there were too few records to find bounds that nobody knows.
        """
        if not self._finished:
            raise LocalProtocolError("the session must be finished before anything is found; it is not.")
        quorum = self._agreement.quorum_of(len(self._agreement.slots) + 1)
        if self._result is None or self._signatures < quorum:
            raise DivergedError(
                f"at least {quorum} parties must have answered the same questions and signed the same result; "
                f"{'there is none' if self._result is None else self._signatures}. A party or the coordinator did not "
                "follow the protocol, or a message was changed on its way. What was released is paid for, and there is "
                "no result. Find out who changed what before the job is run again."
            )
        if self._result.is_nothing:
            raise explain_nothing()
        return self._result

    @property
    def centres(self) -> FloatArray:
        """The centres, in [-1, 1]^d, once the session has finished."""
        return self.finding.centres

    @property
    def released_totals(self) -> tuple[IntArray, ...]:
        """The noisy numbers of each round that this party has read as the leader, whole slots."""
        return () if self._leader is None else self._leader.totals

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        if self.finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        masks = self._introduction.masks
        if masks is None:
            return self._introduction.handle(request)
        match request:
            case Lead():
                return self._lead(request, masks)
            case Answer():
                return self._answer(request, masks)
            case OpenTotal() | RestoreMasks():
                return masks.handle(request)
            case Sign():
                return self._sign(request)
            case Finish():
                return self._finish(request)
        raise RemoteProtocolError(f"masks must be agreed on once; got {type(request).__name__} after that.")

    # --- leading ------------------------------------------------------------------------------------------------------

    def _lead(self, request: Lead, masks: Masks) -> Stated | Declined:
        """State the round's question, or the result after the last round."""
        last = len(self._agreement.slots) + 1
        if not self._led < request.round <= last:
            raise RemoteProtocolError(
                f"a round to lead must be from {self._led + 1} to {last}; got {request.round}. What was stated stands."
            )
        leader = self._leader or self._make_leader(masks)
        question = leader.think(request.round, request.news)
        self._leader = leader
        if question is None:
            return Declined()
        self._led = request.round
        return self._statements.state(request.round, question, seat=self._seat)

    def _make_leader(self, masks: Masks) -> Leader:
        settings, session = self._agreement.settings, self._seat.session
        return Leader(
            agreed=self._agreed,
            statements=self._statements,
            masks=masks,
            stream=Stream(derive_key(masks.seed, f"{settings.protocol} stream", session)),
            link=first_link(self._agreement.digest, session),
        )

    # --- answering ----------------------------------------------------------------------------------------------------

    def _answer(self, request: Answer, masks: Masks) -> Answered:
        """Answer a round's question, which is paid for once; a later attempt masks the same vector otherwise."""
        agreement, attempt = self._agreement, request.attempt
        round_, number = attempt.round, self._seat.number
        if not self._answered <= round_ <= len(agreement.slots):
            raise RemoteProtocolError(f"a round must be from {self._answered} to {len(agreement.slots)}; got {round_}.")
        if not agreement.is_asked(number, round_, session=self._seat.session):
            raise RemoteProtocolError(f"party {number} must be in the sample of round {round_}; it is not.")
        self._check_link(round_, request.link)
        query = self._statements.open(round_, request.stated)
        if round_ > self._answered and query.l2_squared > self._left:
            raise RemoteProtocolError(
                f"what party {request.stated.leader} states in round {round_} must be covered by what is left of the "
                "prepayment; it is not."
            )

        def make() -> NDArray[Any]:
            vector = release_answer(agreement, round_, query, self._records, duty=self._duty)
            self._left -= query.l2_squared
            return agreement.ring.encode(vector)

        link = next_link(request.link, round_, request.stated)
        answered = masks.answer(attempt, place_of(link), make)
        self._answered, self._link = round_, link
        return answered

    def _check_link(self, round_: int, link: bytes) -> None:
        """The chain before a round is our own if we answered the round before it; who was away is told it.

        Whoever is told another chain than others puts other check words behind its vector, and the sum has no result.
        """
        if len(link) != len(self._link) or (self._answered == round_ - 1 and link != self._link):
            raise RemoteProtocolError(
                f"the questions before round {round_} must be those that party {self._seat.number} answered; they "
                "differ."
            )

    # --- the end ------------------------------------------------------------------------------------------------------

    def _sign(self, request: Sign) -> Signed:
        """Take the result and sign the chain that led to it."""
        round_ = len(self._agreement.slots) + 1
        if self._answered >= round_:
            raise RemoteProtocolError("a result is signed once; another one came.")
        self._check_link(round_, request.link)
        question = self._statements.open(round_, request.stated).question
        self._result = question.read(self._agreed.forms.public) if isinstance(question, Result) else None
        self._answered, self._link = round_, next_link(request.link, round_, request.stated)
        return Signed(self._statements.sign_result(self._link, self._seat.identity))

    def _finish(self, request: Finish) -> Ready:
        """Count the signatures on what we signed ourselves."""
        if self._answered != len(self._agreement.slots) + 1:
            raise RemoteProtocolError("a result must be signed before the end; it is not.")
        self.votes, self._signatures = self._statements.read_votes(request.signatures, request.members, self._link)
        self._finished = True
        return Ready()

    @cached_property
    def _statements(self) -> Statements:
        """What is stated, and by whom; once there are masks."""
        masks = self._introduction.masks
        assert masks is not None
        return Statements(
            forms=self._agreed.forms,
            directory=self._agreement.directory,
            seed=masks.seed,
            session=self._seat.session,
        )


def release_answer(
    agreement: Agreement[Any], round_: int, query: Query, records: Records, *, duty: NoiseDuty
) -> IntArray:
    """Measure, fill the slot, charge our books, and add our noise where the parties add it.

    Privacy
    -------
    Neighbours, sensitivity and event: `release_of`. A round that is not needed reveals nothing about records, costs
    nothing and carries the same noise: under the masks, all rounds look the same to the coordinator.
    """
    settings, slot = agreement.settings, agreement.slots[round_ - 1]
    exact = np.zeros(slot.length, dtype=np.int64)
    exact[: query.length] = query.measure(records)
    share = settings.placement.mechanism_for_share(settings.noise_in(slot))
    if query.l2_squared == 0:
        return exact if agreement.by_coordinator else duty.sampler.draw(share, slot.length)
    event = release_of(query, slot, settings)
    if agreement.by_coordinator:
        duty.charger.charge(event)
        return exact
    return release(exact, event, duty=duty, share=share)
