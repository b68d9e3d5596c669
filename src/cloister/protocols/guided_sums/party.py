"""A party: opens the question of a round, refuses what may not be asked, pays, masks its answer; and may lead."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import MaskSchedule, SeedHolder, unpack_members
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy, Identity, Stream, derive_key
from cloister.crypto.stream import encode_context
from cloister.errors import DivergedError, LocalProtocolError, RemoteProtocolError
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.guided_sums.agreement import Agreement, release_of
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, Result
from cloister.protocols.guided_sums.blinding import CommonMasks
from cloister.protocols.guided_sums.leader import Leader
from cloister.protocols.guided_sums.messages import Answer, Declined, Finish, Lead, MaskedUpdate, Sign, Signed
from cloister.protocols.guided_sums.query import Query
from cloister.protocols.guided_sums.statements import (
    Stated,
    Statements,
    count_signatures,
    first_link,
    next_link,
    sign_result,
)
from cloister.records import FloatArray, IntArray, Records
from cloister.roles import Message


@dataclass(frozen=True, kw_only=True)
class _Secrets:
    """What follows from the common seed."""

    blinding: CommonMasks
    statements: Statements
    check_key: bytes
    stream_key: bytes


class GuidedParty:
    """One party of guided sums.

    Parameters
    ----------
    number
        This party's number, from 1.
    agreed
        What was agreed.
    records
        This party's records in [-1, 1]^d, on the agreed grid; they never leave this object.
    identity, entropy, session
        This party's keys, the source of its randomness, and the session's ID.
    duty
        This party's own books, charged for a round before the round's vector leaves, and its source of noise where the
        parties add it.
    """

    def __init__(
        self,
        *,
        number: int,
        agreed: GuidedSession[Any],
        records: Records,
        identity: Identity,
        entropy: Entropy,
        session: bytes,
        duty: NoiseDuty,
    ) -> None:
        agreement: Agreement[Any] = agreed.agreement
        self._number, self._agreed, self._agreement, self._records = number, agreed, agreement, records
        self._identity, self._entropy, self._session, self._duty = identity, entropy, session, duty
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=session,
            entropy=entropy,
        )
        self._secrets: _Secrets | None = None
        self._left = agreement.settings.purse  # for all questions that are still to come
        self._answered = 0  # the last round answered; each is answered once, or a mask would serve twice
        self._link = first_link(agreement.digest, session)  # the chain's, of that round
        self._leader: Leader | None = None
        self._led = 0  # the last round that we stated something in; each has one question of ours
        self._result: GuidedFinding | None = None
        self._signatures = 0
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
        if isinstance(request, Lead):
            return self._lead(request)
        if isinstance(request, Answer):
            return self._answer(request)
        if isinstance(request, Sign):
            return self._sign(request)
        if isinstance(request, Finish):
            return self._finish(request)
        return self._seed_holder.handle(request)

    # --- leading ------------------------------------------------------------------------------------------------------

    def _lead(self, request: Lead) -> Stated | Declined:
        """State the round's question, or the result after the last round."""
        last = len(self._agreement.slots) + 1
        if not self._led < request.round <= last:
            raise RemoteProtocolError(
                f"a round to lead must be from {self._led + 1} to {last}; got {request.round}. What was stated stands."
            )
        secrets = self._open_secrets()
        leader = self._leader or self._make_leader(secrets)
        question = leader.think(request.round, request.news)
        self._leader = leader
        if question is None:
            return Declined()
        self._led = request.round
        return secrets.statements.state(
            request.round, question, leader=self._number, identity=self._identity, entropy=self._entropy
        )

    def _make_leader(self, secrets: _Secrets) -> Leader:
        return Leader(
            agreed=self._agreed,
            statements=secrets.statements,
            blinding=secrets.blinding,
            check_words=lambda round_, link: self._check_words(round_, link, secrets),
            stream=Stream(secrets.stream_key),
            link=first_link(self._agreement.digest, self._session),
        )

    # --- answering ----------------------------------------------------------------------------------------------------

    def _answer(self, request: Answer) -> MaskedUpdate:
        """Fill a slot; the check words come behind."""
        agreement, round_ = self._agreement, request.round
        if not self._answered < round_ <= len(agreement.slots):
            raise RemoteProtocolError(
                f"a round must be from {self._answered + 1} to {len(agreement.slots)}, and is answered once; "
                f"got {round_}."
            )
        if not agreement.is_asked(self._number, round_, session=self._session):
            raise RemoteProtocolError(f"party {self._number} must be in the sample of round {round_}; it is not.")
        self._check_link(round_, request.link)
        secrets = self._open_secrets()
        query = secrets.statements.open(round_, request.stated)
        if query.l2_squared > self._left:
            raise RemoteProtocolError(
                f"what party {request.stated.leader} states in round {round_} must be covered by what is left of the "
                "prepayment; it is not."
            )
        vector = self._pay(query, round_)
        # From here on nothing can fail.
        link = next_link(request.link, round_, request.stated)
        words = np.concatenate([agreement.ring.encode(vector), self._check_words(round_, link, secrets)])
        self._left -= query.l2_squared
        self._answered, self._link = round_, link
        return secrets.blinding.blind(words, round_)

    def _check_link(self, round_: int, link: bytes) -> None:
        """The chain before a round is our own if we answered the round before it; who was away is told it.

        Whoever is told another chain than others puts other check words behind its vector, and the sum has no result.
        """
        if len(link) != len(self._link) or (self._answered == round_ - 1 and link != self._link):
            raise RemoteProtocolError(
                f"the questions before round {round_} must be those that party {self._number} answered; they differ."
            )

    def _pay(self, query: Query, round_: int) -> IntArray:
        """Measure, fill the slot, charge our books, and add our noise where the parties add it.

        Privacy
        -------
        Neighbours, sensitivity and event: `release_of`. A round that is not needed reveals nothing about records, costs
        nothing and carries the same noise: under the masks, all rounds look the same to the coordinator.
        """
        settings, slot = self._agreement.settings, self._agreement.slots[round_ - 1]
        exact = np.zeros(slot.length, dtype=np.int64)
        exact[: query.length] = query.measure(self._records)
        share = settings.placement.mechanism_for_share(settings.noise_in(slot))
        if query.l2_squared == 0:
            return exact if self._agreement.by_coordinator else self._duty.sampler.draw(share, slot.length)
        event = release_of(query, slot, settings)
        if self._agreement.by_coordinator:
            self._duty.charger.charge(event)
            return exact
        return release(exact, event, duty=self._duty, share=share)

    def _check_words(self, round_: int, link: bytes, secrets: _Secrets) -> NDArray[Any]:
        """A keyed hash of the chain up to what is answered, as ring elements.

        They are added up under the masks like everything else: the leader sees whether the sum is its own words times
        the number of parties in it, and the coordinator sees nothing.
        """
        content = encode_context(round_, link)
        digest = hashlib.blake2b(content, key=secrets.check_key, digest_size=16).digest()
        return np.frombuffer(digest, dtype=self._agreement.ring.dtype)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _sign(self, request: Sign) -> Signed:
        """Take the result and sign the chain that led to it."""
        round_ = len(self._agreement.slots) + 1
        if self._answered >= round_:
            raise RemoteProtocolError("a result is signed once; another one came.")
        self._check_link(round_, request.link)
        question = self._open_secrets().statements.open(round_, request.stated).question
        self._result = question.read(self._agreed.forms.ground) if isinstance(question, Result) else None
        self._answered, self._link = round_, next_link(request.link, round_, request.stated)
        return Signed(sign_result(self._link, self._session, identity=self._identity))

    def _finish(self, request: Finish) -> Ready:
        """Count the signatures on what we signed ourselves."""
        if self._answered != len(self._agreement.slots) + 1:
            raise RemoteProtocolError("a result must be signed before the end; it is not.")
        self._signatures = count_signatures(
            request.signatures,
            unpack_members(request.members, self._agreement.settings.parties),
            link=self._link,
            session=self._session,
            directory=self._agreement.directory,
        )
        self._finished = True
        return Ready()

    def _open_secrets(self) -> _Secrets:
        """Derive everything from the common seed, or refuse if it has not been agreed on yet."""
        if self._secrets is not None:
            return self._secrets
        seed, agreement, session = self._seed_holder.seed, self._agreement, self._session
        if seed is None:
            raise RemoteProtocolError("the common seed must be agreed on before the first round; it is not.")
        masks = MaskSchedule(seed, session=session, ring=agreement.ring, parties=agreement.settings.parties)
        protocol = agreement.settings.protocol
        self._secrets = _Secrets(
            blinding=CommonMasks(number=self._number, masks=masks),
            statements=Statements(forms=self._agreed.forms, directory=agreement.directory, seed=seed, session=session),
            check_key=derive_key(seed, f"{protocol} check words", session),
            stream_key=derive_key(seed, f"{protocol} stream", session),
        )
        return self._secrets
