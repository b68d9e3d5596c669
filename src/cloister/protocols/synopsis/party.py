"""A party: reads the last round's total, asks the next question of its own records, pays, masks the answer."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from cloister.aggregation import Aggregate, MaskSchedule, SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy, Identity, derive_key
from cloister.crypto.stream import encode_context
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.kmeans.records import FloatArray, Records
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.synopsis.agreement import Agreement, release_of
from cloister.protocols.synopsis.messages import TAG_BYTES, Finish, MaskedUpdate, Round
from cloister.protocols.synopsis.pipeline import Finding
from cloister.protocols.synopsis.query import IntArray, Query
from cloister.protocols.synopsis.thinking import SharedThinking, Thought
from cloister.roles import Message
from cloister.wire import Array


@dataclass(frozen=True, kw_only=True)
class _Secrets:
    """What follows from the common seed."""

    masks: MaskSchedule
    tag_key: bytes
    thought: Thought
    """The one before the first round."""


class SynopsisParty:
    """One party of a synopsis.

    Parameters
    ----------
    number
        This party's number, from 1.
    agreement
        The public parameters.
    records
        This party's records in [-1, 1]^d, on the agreed grid; they never leave this object.
    identity, entropy, session
        Who we are, where our keys come from, which session this is.
    duty
        This party's own books, charged for a round before the round's vector leaves, and its source of noise where the
        parties add it.
    thinking
        Thoughts to share with other parties of the same process; None for its own.
    """

    def __init__(
        self,
        *,
        number: int,
        agreement: Agreement,
        records: Records,
        identity: Identity,
        entropy: Entropy,
        session: bytes,
        duty: NoiseDuty,
        thinking: SharedThinking | None = None,
    ) -> None:
        self._number = number
        self._agreement = agreement
        self._records = records
        self._session = session
        self._duty = duty
        self._thinking = thinking or SharedThinking(guard=nullcontext())
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=session,
            entropy=entropy,
        )
        self._secrets: _Secrets | None = None
        self._thought: Thought | None = None  # after the last total that was read
        self._answered = 0  # the last round answered; each is answered once, or a mask would serve twice

    @property
    def finished(self) -> bool:
        """Whether this party has read the last total."""
        return self._thought is not None and isinstance(self._thought.answer, Finding)

    @property
    def finding(self) -> Finding:
        """The result, once the session has finished."""
        if self._thought is None or not isinstance(self._thought.answer, Finding):
            raise LocalProtocolError("the session must be finished before anything is found; it is not")
        return self._thought.answer

    @property
    def centres(self) -> FloatArray:
        """The centres, in [-1, 1]^d, once the session has finished."""
        return self.finding.centres

    @property
    def released_totals(self) -> tuple[IntArray, ...]:
        """The noisy numbers of each round that this party has read, whole slots."""
        return () if self._thought is None else self._thought.totals

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        if self.finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        if isinstance(request, Round):
            return self._answer_round(request)
        if isinstance(request, Finish):
            return self._finish(request)
        return self._seed_holder.handle(request)

    def _answer_round(self, request: Round) -> MaskedUpdate:
        if request.round != self._answered + 1 or request.round > len(self._agreement.slots):
            raise RemoteProtocolError(
                f"round {self._answered + 1} of {len(self._agreement.slots)} must come next; got {request.round}."
            )
        secrets = self._open_secrets()
        thought = self._read(request.news, secrets)
        assert isinstance(thought.answer, Query)  # one query for each slot (thinking)
        paid = self._pay(thought.answer, request.round)
        # From here on nothing can fail.
        masked = secrets.masks.mask(self._agreement.ring.encode(paid), request.round, self._number)
        self._secrets, self._thought, self._answered = secrets, thought, request.round
        return MaskedUpdate(Array.of(masked), _tag(thought.answer, request.round, secrets.tag_key))

    def _finish(self, request: Finish) -> Ready:
        if self._answered != len(self._agreement.slots):
            raise RemoteProtocolError(
                f"all {len(self._agreement.slots)} rounds must be answered before the end; {self._answered} are."
            )
        self._thought = self._read(request.news, self._open_secrets())
        return Ready()

    def _read(self, news: Aggregate | None, secrets: _Secrets) -> Thought:
        """Unmask the total of the last round answered and think; changes no state."""
        if (0 if news is None else news.round) != self._answered:
            raise RemoteProtocolError(
                f"the total of round {self._answered} must come with the next request; it does not."
            )
        if news is None:
            return secrets.thought
        assert self._thought is not None
        elements, _ = secrets.masks.unmask(
            news, length=self._agreement.slots[news.round - 1].length, members_min=self._agreement.members_min
        )
        total = self._agreement.ring.decode(elements)
        total.setflags(write=False)  # it may be shared
        return self._thought.follow(total)

    def _pay(self, query: Query, round_: int) -> IntArray:
        """Measure, fill the slot, charge our books, and add our noise where the parties add it.

        Privacy
        -------
        Neighbours, sensitivity and event: `release_of`. A round that is not needed says nothing of any record, costs
        nothing and carries the same noise: to the coordinator, under the masks, no round differs from another.
        """
        settings, slot = self._agreement.settings, self._agreement.slots[round_ - 1]
        exact = np.zeros(slot.length, dtype=np.int64)
        exact[: query.length] = query.measure(self._records)
        share = settings.placement.mechanism_for_share(settings.target)
        if query.l2_squared == 0:
            return exact if self._agreement.by_coordinator else self._duty.sampler.draw(share, slot.length)
        event = release_of(query, slot, settings)
        if self._agreement.by_coordinator:
            self._duty.charger.charge(event)
            return exact
        return release(exact, event, duty=self._duty, share=share)

    def _open_secrets(self) -> _Secrets:
        """Derive everything from the common seed, or refuse if it has not been agreed on yet."""
        if self._secrets is not None:
            return self._secrets
        seed, agreement = self._seed_holder.seed, self._agreement
        if seed is None:
            raise RemoteProtocolError("the common seed must be agreed on before the first round; it is not.")
        return _Secrets(
            masks=MaskSchedule(seed, session=self._session, ring=agreement.ring, parties=agreement.settings.parties),
            tag_key=derive_key(seed, "synopsis tag", self._session),
            thought=self._thinking.begin(agreement.settings, derive_stream_key(seed, self._session)),
        )


def derive_stream_key(seed: bytes, session: bytes) -> bytes:
    """The key of the stream that all parties give their copy of the algorithm."""
    return derive_key(seed, "synopsis stream", session)


def _tag(query: Query, round_: int, key: bytes) -> bytes:
    """A keyed hash of what is measured: equal where parties derived the same question, and fresh in every round."""
    question = encode_context(round_, query.name, query.length, query.l2_squared, query.state)
    return hashlib.blake2b(question, key=key, digest_size=TAG_BYTES).digest()
