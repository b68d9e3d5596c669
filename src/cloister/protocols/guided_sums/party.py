"""A party: reads the last round's total, answers the next query on its own records, pays, masks the answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Aggregate, MaskSchedule, SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy, Identity, derive_key, encode_context
from cloister.errors import DivergedError, LocalProtocolError, RemoteProtocolError
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.guided_sums.agreement import Agreement, release_of
from cloister.protocols.guided_sums.algorithm import AlgorithmCache, AlgorithmState, FindingT
from cloister.protocols.guided_sums.messages import Confirm, Finish, MaskedUpdate, Round
from cloister.protocols.guided_sums.query import IDLE, Query
from cloister.records import FloatArray, IntArray, Records
from cloister.roles import Message
from cloister.wire import Array


@dataclass(frozen=True, kw_only=True)
class _Secrets(Generic[FindingT]):
    """What follows from the common seed."""

    masks: MaskSchedule
    check_key: bytes
    first_state: AlgorithmState[FindingT]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Progress(Generic[FindingT]):
    """How far a party has read."""

    state: AlgorithmState[FindingT]
    read: int
    """How many rounds' totals have been read."""
    agrees: bool
    """Whether everyone in the sums answered the query that this party answered, in every round so far."""


class GuidedParty(Generic[FindingT]):
    """One party of guided sums.

    Parameters
    ----------
    number
        This party's number, from 1.
    agreement
        The public parameters.
    records
        This party's records in [-1, 1]^d, on the agreed grid; they never leave this object.
    identity, entropy, session
        This party's keys, the source of its randomness, and the session's ID.
    duty
        This party's own books, charged for a round before the round's vector leaves, and its source of noise where the
        parties add it.
    cache
        Runs the algorithm; parties of one process may share it.
    """

    def __init__(
        self,
        *,
        number: int,
        agreement: Agreement[Any],
        records: Records,
        identity: Identity,
        entropy: Entropy,
        session: bytes,
        duty: NoiseDuty,
        cache: AlgorithmCache[FindingT],
    ) -> None:
        self._number = number
        self._agreement = agreement
        self._records = records
        self._session = session
        self._duty = duty
        self._cache = cache
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=session,
            entropy=entropy,
        )
        self._secrets: _Secrets[FindingT] | None = None
        self._progress: _Progress[FindingT] | None = None  # after the last total that was read
        self._answered = 0  # the last round answered; each is answered once, or a mask would be used twice
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether the session has ended, with or without a result."""
        return self._finished

    @property
    def finding(self) -> FindingT:
        """The result, once the session has finished.

        Raises
        ------
        DivergedError
            If parties that read the same totals derived different queries or results.
        """
        if self._progress is None or not self._finished:
            raise LocalProtocolError("the session must be finished before anything is found; it is not.")
        if not self._progress.agrees or isinstance(self._progress.state.output, Query):
            raise DivergedError(
                "all parties must derive the same queries and the same result from the same totals; they did not, "
                "or a message was altered in transit. What was released has been paid for; there is no result. Run the "
                "same version of Cloister and of its numeric libraries on the same kind of processor everywhere."
            )
        return self._progress.state.output

    @property
    def centres(self) -> FloatArray:
        """The centres, in [-1, 1]^d, once the session has finished."""
        return self.finding.centres

    @property
    def released_totals(self) -> tuple[IntArray, ...]:
        """The noisy numbers of each round that this party has read, whole slots."""
        return () if self._progress is None else self._progress.state.totals

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        if self.finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        rounds = len(self._agreement.slots)
        if isinstance(request, Round):
            if request.round > rounds:
                raise RemoteProtocolError(f"a slot's round must be from 1 to {rounds}; got {request.round}.")
            return self._answer(request.round, request.missed, request.news)
        if isinstance(request, Confirm):
            return self._answer(rounds + 1, request.missed, request.news)
        if isinstance(request, Finish):
            return self._finish(request)
        return self._seed_holder.handle(request)

    def _answer(self, round_: int, missed: tuple[Aggregate, ...], news: Aggregate | None) -> MaskedUpdate:
        """Fill a slot, or none if only findings are compared; the check words follow."""
        agreement = self._agreement
        rounds = len(agreement.slots)
        if round_ <= self._answered or (round_ > self._answered + 1 and not agreement.settings.may_return):
            raise RemoteProtocolError(
                f"round {round_} must come after round {round_ - 1}; it came after round {self._answered}."
            )
        secrets = self._open_secrets()
        if not agreement.is_asked(self._number, round_, session=self._session):
            raise RemoteProtocolError(f"party {self._number} must be in the sample of round {round_}; it is not.")
        progress = self._read((*missed, news) if news is not None else missed, round_ - 1, secrets)
        vector = np.zeros(0, dtype=np.int64)
        if round_ <= rounds:
            # A party that disagrees goes on with empty answers: an abort would reveal something about the releases.
            query = progress.state.output if progress.agrees else IDLE
            assert isinstance(query, Query)  # the algorithm asks one per slot
            vector = self._pay(query, round_)
        # Nothing below can fail.
        words = np.concatenate([agreement.ring.encode(vector), self._check_words(progress.state, round_, secrets)])
        masked = secrets.masks.mask(words, round_, self._number)
        self._secrets, self._progress, self._answered = secrets, progress, round_
        return MaskedUpdate(Array.of(masked))

    def _finish(self, request: Finish) -> Ready:
        rounds = len(self._agreement.slots) + 1
        if self._answered != rounds and not self._agreement.settings.may_return:
            raise RemoteProtocolError(f"all {rounds} rounds must be answered before the end; {self._answered} are.")
        self._progress = self._read((*request.missed, request.news), rounds, self._open_secrets())
        self._finished = True
        return Ready()

    def _read(self, news: tuple[Aggregate, ...], last: int, secrets: _Secrets[FindingT]) -> _Progress[FindingT]:
        """Unmask the totals up to round ``last`` that have not been read yet and advance; changes nothing."""
        progress = self._progress or _Progress(state=secrets.first_state, read=0, agrees=True)
        unread = [aggregate for aggregate in news if aggregate.round > progress.read]
        if [aggregate.round for aggregate in unread] != list(range(progress.read + 1, last + 1)):
            raise RemoteProtocolError(f"the total of round {last} must come with the next request; it does not.")
        for aggregate in unread:
            progress = self._follow(progress, aggregate, secrets)
        return progress

    def _follow(
        self, progress: _Progress[FindingT], news: Aggregate, secrets: _Secrets[FindingT]
    ) -> _Progress[FindingT]:
        agreement, state = self._agreement, progress.state
        length = agreement.length_of(news.round)
        elements, members = self._cache.unmask(
            secrets.check_key,
            news,
            lambda: secrets.masks.unmask(news, length=length, members_min=agreement.members_min),
        )
        slot_length = len(elements) - agreement.check_words
        own = self._check_words(state, news.round, secrets)
        same = np.array_equal(elements[slot_length:], own * own.dtype.type(len(members)))  # wraps, as the sum does
        agrees = progress.agrees and same
        if news.round > len(agreement.slots) or not agrees:
            return _Progress(state=state, read=news.round, agrees=agrees)
        total = agreement.ring.decode(elements[:slot_length])
        total.setflags(write=False)  # it may be shared
        return _Progress(state=state.advance(total), read=news.round, agrees=True)

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

    def _check_words(self, state: AlgorithmState[FindingT], round_: int, secrets: _Secrets[FindingT]) -> NDArray[Any]:
        """Return a keyed hash of the query and of the total that it follows from, as ring elements.

        Check words are added up under the masks like everything else. The parties see whether the sum is their own
        words times the number of parties in it, and the coordinator sees nothing.
        """
        content = encode_context(round_, state.digest)
        digest = hashlib.blake2b(content, key=secrets.check_key, digest_size=16).digest()
        return np.frombuffer(digest, dtype=self._agreement.ring.dtype)

    def _open_secrets(self) -> _Secrets[FindingT]:
        """Derive everything from the common seed, or refuse if it has not been agreed on yet."""
        if self._secrets is not None:
            return self._secrets
        seed, agreement = self._seed_holder.seed, self._agreement
        if seed is None:
            raise RemoteProtocolError("the common seed must be agreed on before the first round; it is not.")
        return _Secrets(
            masks=MaskSchedule(seed, session=self._session, ring=agreement.ring, parties=agreement.settings.parties),
            check_key=derive_key(seed, f"{agreement.settings.protocol} check words", self._session),
            first_state=self._cache.begin(
                agreement.settings, derive_stream_key(seed, self._session, agreement.settings.protocol)
            ),
        )


def derive_stream_key(seed: bytes, session: bytes, protocol: str) -> bytes:
    """The key of the stream that all parties give their copy of the algorithm."""
    return derive_key(seed, f"{protocol} stream", session)
