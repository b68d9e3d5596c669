"""A party: assigns its own records, sums them, masks the sums; unmasks the total and moves the centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Aggregate, MaskSchedule, SeedHolder
from cloister.aggregation.seed_agreement import OpenSession, Ready, check_agreement
from cloister.crypto import Entropy, Identity, Stream
from cloister.errors import LocalProtocolError, PrecisionError, RemoteProtocolError
from cloister.kmeans.assignment import Assignment, Unconstrained
from cloister.kmeans.kernel import ClusterSums
from cloister.kmeans.records import FloatArray, Records
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
    """One party of any of the three protocols.

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
    ) -> None:
        self._number = number
        self._agreement = agreement
        self._records = records
        self._session = session
        self._assignment = assignment or Unconstrained()
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

    @property
    def centres(self) -> FloatArray:
        """The result, in [-1, 1]^d, once the session has finished."""
        if self._centres is None or not self._finished:
            raise LocalProtocolError("the session must be finished before it has centres; it is not")
        return self._centres

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
        centres = self._apply(request.news, masks, upto=request.round - 1, start=request.start)
        if self._agreement.variant == "masked-centroid":
            exact_update = self._exact_centroids(centres)
        else:
            exact_update = self._exact_update(centres)
        elements = self._agreement.ring.encode(exact_update.ravel())
        masked = masks.mask(elements, request.round, self._number)
        self._masks, self._centres = masks, centres
        self._applied, self._answered = request.round - 1, request.round
        return MaskedUpdate(Array.of(masked))

    def _masked_finish(self, request: MaskedFinish) -> Ready:
        masks = self._ready_masks()
        self._centres = self._apply(request.news, masks, upto=self._agreement.iterations, start=None)
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
            length=self._agreement.length,
            parties=self._agreement.parties,
        )

    def _apply(self, news: tuple[Aggregate, ...], masks: MaskSchedule, *, upto: int, start: Array | None) -> FloatArray:
        """Unmask each round not seen yet, in order, and return the centres after round ``upto``; changes no state.

        Sums that this party has already are skipped: the coordinator repeats them if our last answer was lost.
        """
        first = news[0].round if news else upto + 1
        if first > self._applied + 1 or [a.round for a in news] != list(range(first, upto + 1)):
            raise RemoteProtocolError(
                f"the sums of rounds {self._applied + 1} to {upto} must all come, in order; they do not."
            )
        centres = self._centres if self._centres is not None else self._first_centres(start)
        for aggregate in news[self._applied + 1 - first :]:
            elements, members = masks.unmask(aggregate, members_min=self._agreement.members_min)
            total = self._agreement.ring.decode(elements).reshape(self._agreement.clusters, -1)
            centres = move_centres(centres, total, self._agreement, members=len(members))
        return centres

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
        sums = self._agreement.fixed_point.encode(exact.sums)
        return np.hstack([sums, exact.counts[:, None]])

    def _exact_centroids(self, centres: FloatArray) -> NDArray[np.int64]:
        """S_li / (M C_li) as integers (5.4.1); an empty local cluster leaves its centre where it is."""
        exact = self._exact_sums(centres)
        counts = exact.counts[:, None]
        local = np.where(counts > 0, exact.sums / np.maximum(counts, 1), centres)
        return self._agreement.fixed_point.encode(local / self._agreement.parties)

    def _exact_sums(self, centres: FloatArray) -> ClusterSums:
        exact = self._assignment.sums(self._records, centres)
        if int(exact.counts.max()) > self._agreement.max_records:
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
