"""A party: assigns its own records, sums them, masks the sums; unmasks the total and moves the centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Aggregate, MaskSchedule, SeedHolder
from cloister.aggregation.seed_agreement import OpenSession, Ready, check_agreement
from cloister.crypto import Entropy, Identity, Stream
from cloister.errors import ConfigError, LocalProtocolError, PrecisionError, RemoteProtocolError
from cloister.kmeans.assignment import Assignment, Unconstrained
from cloister.kmeans.kernel import ClusterSums
from cloister.kmeans.records import FloatArray, Records
from cloister.privacy.encoder import BoundedRecords
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.multiparty_lloyd.messages import (
    LocalUpdate,
    MaskedFinish,
    MaskedRound,
    MaskedUpdate,
    NaiveFinish,
    NaiveRound,
)
from cloister.protocols.multiparty_lloyd.update import move_centres
from cloister.roles import Message
from cloister.wire import Array


class LloydParty:
    """One party of any of the four protocols.

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
        For ``mask-noise-average``: this party's own books, charged for a round before the round's vector leaves, and
        its source of noise where the parties add shares.
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
        self._number = number
        self._agreement = agreement
        self._records: Records = records
        self._session = session
        self._assignment = assignment or Unconstrained()
        self._duty = duty
        if agreement.noise is not None:
            if duty is None or not isinstance(self._assignment, Unconstrained):
                raise ConfigError(
                    "a party of mask-noise-average must keep books (duty) and assign each record to its nearest "
                    "centre: with size constraints one record can move others, and the sensitivity would not hold."
                )
            self._records = BoundedRecords(records, agreement.noise.encoder)
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
        self._centres: FloatArray | None = None
        self._applied = 0  # rounds whose sum is in the centres
        self._answered = 0  # the last round answered; each round is answered once, or a mask would serve twice
        self._finished = False
        self._released_totals: tuple[NDArray[np.int64], ...] = ()

    @property
    def centres(self) -> FloatArray:
        """The result, in [-1, 1]^d, once the session has finished."""
        if self._centres is None or not self._finished:
            raise LocalProtocolError("the session must be finished before it has centres; it is not")
        return self._centres

    @property
    def released_totals(self) -> tuple[NDArray[np.int64], ...]:
        """The noisy sums and weighted counts of each round that this party has read; empty where no noise was added."""
        return self._released_totals

    @property
    def released_records(self) -> float | None:
        """The number of records as the last noisy counts have it; None where no noise was added."""
        if self._agreement.noise is None or not self._released_totals:
            return None
        return float(self._agreement.noise.encoder.decode_counts(self._released_totals[-1]).sum())

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
            self._centres = self._received_centres(request.centres)
            self._finished = True
            return Ready()
        raise RemoteProtocolError(
            f"naive takes OpenSession, then rounds, then the finish; got {type(request).__name__} out of turn."
        )

    # --- naive, 5.2.1 -------------------------------------------------------------------------------------------

    def _naive_round(self, request: NaiveRound) -> LocalUpdate:
        self._check_round(request.round)
        centres = self._received_centres(request.centres)
        exact_update = self._exact_update(centres)
        self._answered = request.round
        return LocalUpdate(Array.of(exact_update.ravel()))

    def _received_centres(self, array: Array) -> FloatArray:
        centres = array.to_numpy(np.float64, self._agreement.clusters, self._agreement.dimensions)
        if (np.abs(centres) > 1).any():
            raise RemoteProtocolError("centres must lie inside the public bounds; some do not.")
        return centres

    # --- masked, 5.3.1 and 5.4.1 --------------------------------------------------------------------------------

    def _masked_round(self, request: MaskedRound) -> MaskedUpdate:
        self._check_round(request.round)
        masks = self._ready_masks()
        centres, released = self._apply(request.news, masks, upto=request.round - 1, start=request.start)
        if self._agreement.variant == "masked-centroid":
            exact_update = self._exact_centroids(centres)
        else:
            exact_update = self._exact_update(centres)
        elements = self._agreement.ring.encode(self._pay(exact_update, request.round).ravel())
        masked = masks.mask(elements, request.round, self._number)
        self._masks, self._centres, self._released_totals = masks, centres, released
        self._applied, self._answered = request.round - 1, request.round
        return MaskedUpdate(Array.of(masked))

    def _pay(self, exact_update: NDArray[np.int64], round_: int) -> NDArray[np.int64]:
        """Charge our books before the vector leaves, and add our share of the noise where the parties add it."""
        plan = self._agreement.noise
        if plan is None or self._duty is None:
            return exact_update
        event = plan.release_of(round_)
        if plan.by_coordinator:
            self._duty.charger.charge(event)
            return exact_update
        return release(exact_update, event, duty=self._duty, share=plan.placement.mechanism_for_share(plan.target))

    def _masked_finish(self, request: MaskedFinish) -> Ready:
        masks = self._ready_masks()
        applied = self._apply(request.news, masks, upto=self._agreement.iterations, start=None)
        self._centres, self._released_totals = applied
        self._applied = self._agreement.iterations
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

    def _apply(
        self, news: tuple[Aggregate, ...], masks: MaskSchedule, *, upto: int, start: Array | None
    ) -> tuple[FloatArray, tuple[NDArray[np.int64], ...]]:
        """Unmask each round not seen yet, in order; changes no state.

        Returns the centres after round ``upto`` and, where sums are noisy, all that have been read. Sums that this
        party has already are skipped: the coordinator repeats them if our last answer was lost.
        """
        first = news[0].round if news else upto + 1
        if first > self._applied + 1 or [a.round for a in news] != list(range(first, upto + 1)):
            raise RemoteProtocolError(
                f"the sums of rounds {self._applied + 1} to {upto} must all come, in order; they do not."
            )
        centres = self._centres if self._centres is not None else self._first_centres(start)
        released = self._released_totals
        for aggregate in news[self._applied + 1 - first :]:
            elements, members = masks.unmask(
                aggregate, length=self._agreement.length, members_min=self._agreement.members_min
            )
            total = self._agreement.ring.decode(elements).reshape(self._agreement.clusters, -1)
            centres = move_centres(centres, total, self._agreement, members=len(members))
            if self._agreement.noise is not None:
                released = (*released, total)
        return centres, released

    def _first_centres(self, start: Array | None) -> FloatArray:
        agreement = self._agreement
        if agreement.initialisation == "given" or agreement.start_by == "parties":
            assert self._seed_holder.seed is not None
            return agreement.draw_start(Stream.from_seed(self._seed_holder.seed, "start", self._session))
        if start is None:
            raise RemoteProtocolError("the first round must bring the coordinator's centres; it does not.")
        return self._received_centres(start)

    # --- what is computed on records ----------------------------------------------------------------------------

    def _exact_update(self, centres: FloatArray) -> NDArray[np.int64]:
        """S_li and C_li as integers, (k, d+1): exact, since records lie on the fixed-point grid."""
        exact = self._exact_sums(centres)
        if self._agreement.noise is not None:
            return self._agreement.noise.encoder.encode_sums(exact.sums, exact.counts)
        return np.hstack([self._agreement.fixed_point.encode(exact.sums), exact.counts[:, None]])

    def _exact_centroids(self, centres: FloatArray) -> NDArray[np.int64]:
        """S_li / (M C_li) as integers (5.4.1); an empty local cluster leaves its centre where it is."""
        exact = self._exact_sums(centres)
        counts = exact.counts[:, None]
        local = np.where(counts > 0, exact.sums / np.maximum(counts, 1), centres)
        return self._agreement.fixed_point.encode(local / self._agreement.parties)

    def _exact_sums(self, centres: FloatArray) -> ClusterSums:
        exact = self._assignment.sums(self._records, centres)
        # With noise, an abort would tell records apart; a sum that wraps around spoils a centre and no one's privacy.
        if self._agreement.noise is None and int(exact.counts.max()) > self._agreement.max_records:
            raise PrecisionError(
                f"a party must hold at most max_records = {self._agreement.max_records} records, the public cap that "
                "the ring was chosen for; this one holds more. Declare a larger cap with all parties."
            )
        return exact

    def _check_round(self, round_: int) -> None:
        if not self._answered < round_ <= self._agreement.iterations:
            raise RemoteProtocolError(
                f"the round must be from {self._answered + 1} to {self._agreement.iterations}; got {round_}."
            )
