"""A party: masks what its walker contributes; unmasks the total and lets the walker move the centres."""

from __future__ import annotations

import numpy as np

from cloister.aggregation import Aggregate, MaskSchedule, SeedHolder
from cloister.aggregation.seed_agreement import OpenSession, Ready, check_agreement
from cloister.crypto import Entropy, Identity
from cloister.errors import InfeasibleError, LocalProtocolError, RemoteProtocolError
from cloister.kmeans.assignment import Assignment
from cloister.privacy.release import NoiseDuty
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.multiparty_lloyd.messages import (
    LocalUpdate,
    MaskedFinish,
    MaskedRound,
    MaskedUpdate,
    NaiveFinish,
    NaiveRound,
)
from cloister.protocols.multiparty_lloyd.walker import Walker
from cloister.records import FloatArray, IntArray, Records
from cloister.roles import Message
from cloister.wire import Array


class LloydParty:
    """One party of any of the protocols.

    Parameters
    ----------
    number
        This party's number, from 1.
    agreement
        The public parameters.
    records
        This party's records in [-1, 1]^d; they never leave this object.
    identity, entropy, session
        Who we are, where our keys come from, which session this is.
    assignment
        How records join clusters (thesis 4.1).
    duty
        Where sums are released with noise: this party's own books and its source of noise.
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
        assignment: Assignment | None = None,
        duty: NoiseDuty | None = None,
    ) -> None:
        agreement.require_star()
        self._number = number
        self._agreement = agreement
        self._session = session
        self._walker = Walker(agreement=agreement, records=records, assignment=assignment, duty=duty)
        self._opened = False
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=session,
            entropy=entropy,
        )
        self._masks: MaskSchedule | None = None
        self._answered = 0  # the last round answered; each round is answered once, or a mask would serve twice
        self._finished = False

    @property
    def centres(self) -> FloatArray:
        """The result, in [-1, 1]^d, once the session has finished."""
        if self._walker.centres is None or not self._finished:
            raise LocalProtocolError("the session must be finished before it has centres; it is not")
        return self._walker.centres

    @property
    def released_totals(self) -> tuple[IntArray, ...]:
        """The noisy sums and weighted counts of each round that this party has read; empty where no noise was added."""
        return self._walker.released_totals

    @property
    def released_counts(self) -> FloatArray | None:
        """Each cluster's number of records as the last noisy sums have it; None where it was not released."""
        return self._walker.released_counts

    @property
    def finished(self) -> bool:
        """Whether this party has the final centres."""
        return self._finished

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        if self._finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        if self._agreement.masked:
            if isinstance(request, MaskedRound):
                return self._masked_round(request)
            if isinstance(request, MaskedFinish):
                return self._masked_finish(request)
            return self._seed_holder.handle(request)
        if isinstance(request, OpenSession):
            check_agreement(request, self._agreement.digest)
            self._opened = True
            return Ready()
        if self._opened and isinstance(request, NaiveRound):
            return self._naive_round(request)
        if self._opened and isinstance(request, NaiveFinish):
            self._walker.centres = self._received_centres(request.centres)
            self._finished = True
            return Ready()
        raise RemoteProtocolError(
            f"naive takes OpenSession, then rounds, then the finish; got {type(request).__name__} out of turn."
        )

    # --- naive, 5.2.1 -------------------------------------------------------------------------------------------

    def _naive_round(self, request: NaiveRound) -> LocalUpdate:
        self._check_round(request.round)
        walker = self._walker.branch()
        walker.centres = self._received_centres(request.centres)
        exact_update = walker.contribute(request.round)
        self._walker, self._answered = walker, request.round
        return LocalUpdate(Array.of(exact_update))

    def _received_centres(self, array: Array) -> FloatArray:
        centres = array.to_numpy(np.float64, self._agreement.clusters, self._agreement.dimensions)
        if (np.abs(centres) > 1).any():
            raise RemoteProtocolError("centres must lie inside the public bounds; some do not.")
        return centres

    # --- masked, 5.3.1 and 5.4.1 --------------------------------------------------------------------------------

    def _masked_round(self, request: MaskedRound) -> MaskedUpdate:
        self._check_round(request.round)
        masks = self._ready_masks()
        walker = self._follow(request.news, masks, upto=request.round - 1, start=request.start)
        try:
            contribution = walker.contribute(request.round)
        except InfeasibleError as error:
            raise InfeasibleError(f"party {self._number}: {error}") from None
        elements = self._agreement.ring.encode(contribution)
        masked = masks.mask(elements, request.round, self._number)
        self._masks, self._walker, self._answered = masks, walker, request.round
        return MaskedUpdate(Array.of(masked))

    def _masked_finish(self, request: MaskedFinish) -> Ready:
        self._walker = self._follow(request.news, self._ready_masks(), upto=self._agreement.iterations, start=None)
        self._finished = True
        return Ready()

    def _ready_masks(self) -> MaskSchedule:
        """The session's masks, or a refusal if the seed has not been agreed on yet."""
        if self._masks is not None:
            return self._masks
        if self._seed_holder.seed is None:
            raise RemoteProtocolError("the common seed must be agreed on before the first round; it is not.")
        return MaskSchedule(
            self._seed_holder.seed,
            session=self._session,
            ring=self._agreement.ring,
            parties=self._agreement.parties,
        )

    def _follow(self, news: tuple[Aggregate, ...], masks: MaskSchedule, *, upto: int, start: Array | None) -> Walker:
        """Return a walker that has taken each round up to ``upto``; changes no state.

        Sums that this party has already are skipped: the coordinator repeats them if our last answer was lost.
        """
        walker = self._walker.branch()
        first = news[0].round if news else upto + 1
        if first > walker.taken + 1 or [a.round for a in news] != list(range(first, upto + 1)):
            raise RemoteProtocolError(
                f"the sums of rounds {walker.taken + 1} to {upto} must all come, in order; they do not."
            )
        if walker.centres is None:
            self._start(walker, start)
        for aggregate in news[walker.taken + 1 - first :]:
            elements, members = masks.unmask(
                aggregate, length=self._agreement.length, members_min=self._agreement.members_min
            )
            walker.take(aggregate.round, self._agreement.ring.decode(elements), len(members))
        return walker

    def _start(self, walker: Walker, start: Array | None) -> None:
        """Give a walker its first centres."""
        if self._agreement.initialisation == "given" or self._agreement.start_by == "parties":
            assert self._seed_holder.seed is not None
            walker.begin(self._seed_holder.seed, self._session)
        elif start is None:
            raise RemoteProtocolError("the first round must bring the coordinator's centres; it does not.")
        else:
            walker.centres = self._received_centres(start)

    def _check_round(self, round_: int) -> None:
        if not self._answered < round_ <= self._agreement.iterations:
            raise RemoteProtocolError(
                f"the round must be from {self._answered + 1} to {self._agreement.iterations}; got {round_}."
            )
