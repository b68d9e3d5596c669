"""A party: what it computes in any topology, and how it takes part in a session around a coordinator."""

from __future__ import annotations

from copy import copy

import numpy as np

from cloister.aggregation import Aggregate, MaskSchedule, SeedHolder
from cloister.aggregation.seed_agreement import OpenSession, Ready, check_agreement
from cloister.crypto import Stream
from cloister.errors import ConfigError, InfeasibleError, LocalProtocolError, RemoteProtocolError
from cloister.kmeans import Assignment, Unconstrained
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.multiparty_lloyd import messages
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.multiparty_lloyd.rules import Last
from cloister.records import FloatArray, IntArray, Records
from cloister.roles import Message, Seat
from cloister.wire import Array


class LloydState:
    """One party's records and centres.

    Parameters
    ----------
    agreement
        The public parameters.
    records
        This party's records in [-1, 1]^d; they never leave this object.
    assignment
        How records join clusters (thesis 4.1).
    duty
        If sums are released with noise: this party's own books, charged for a round before the round's vector
        leaves, and its source of noise if the parties add it.
    """

    def __init__(
        self,
        *,
        agreement: Agreement,
        records: Records,
        assignment: Assignment | None = None,
        duty: NoiseDuty | None = None,
    ) -> None:
        self._agreement = agreement
        self._records = records
        self._assignment = assignment or Unconstrained()
        self._duty = duty
        if agreement.noise is not None:
            if duty is None:
                raise ConfigError(f"a party of {agreement.variant} must keep books; got no duty.")
            if agreement.noise.rule.nearest_only and not isinstance(self._assignment, Unconstrained):
                raise ConfigError(
                    f"a party of {agreement.variant} must assign each record to its nearest centre: with size "
                    "constraints one record can move others, and the sensitivity would not hold; got "
                    f"{self._assignment.name}."
                )
        self.centres: FloatArray | None = None
        self.taken = 0
        """How many rounds' sums are in the centres."""
        self.released_totals: tuple[IntArray, ...] = ()
        """The noisy sums of the rounds taken; empty where no noise was added."""

    def begin(self, seed: bytes, session: bytes) -> None:
        """Draw the first centres from the common seed (thesis 5.1.1), or take the given ones."""
        self.centres = self._agreement.draw_start(Stream.from_seed(seed, "start", session))

    def branch(self) -> LloydState:
        """Return a copy that evolves independently, for steps that may turn out to be invalid."""
        return copy(self)

    def contribute(self, round_: int) -> IntArray:
        """Return the vector of one round: exact integers, plus our noise if the parties add it.

        Our books are charged before the vector leaves. Each round must be asked for once.
        """
        assert self.centres is not None
        agreement = self._agreement
        exact = agreement.rule.contribute(self._records, self.centres, round_, self._assignment, self._last).ravel()
        plan = agreement.noise
        if plan is None or self._duty is None:
            return exact
        event = plan.release_of(round_)
        if not plan.placement.each_party_draws:
            self._duty.charger.charge(event)
            return exact
        share = plan.placement.mechanism_for_share(plan.target_of(round_))
        return release(exact, event, duty=self._duty, share=share)

    def take(self, round_: int, total: IntArray, members: int) -> None:
        """Move the centres by the sum of a round over ``members`` parties; errors leave the state unchanged."""
        assert self.centres is not None
        shaped = total.reshape(self._agreement.clusters, -1)
        self.centres = self._agreement.rule.move(self.centres, shaped, round_=round_, members=members, last=self._last)
        self.taken = round_
        if self._agreement.noise is not None:
            self.released_totals = (*self.released_totals, shaped)

    @property
    def _last(self) -> Last:
        return self.released_totals[-1] if self.released_totals else None

    @property
    def released_counts(self) -> FloatArray | None:
        """Return each cluster's number of records by the last noisy sums; None if it was not released."""
        if self._agreement.noise is None or not self.released_totals:
            return None
        return self._agreement.noise.rule.read_counts(self.released_totals[-1])


class LloydParty:
    """One party of any of the protocols, around a coordinator.

    Parameters
    ----------
    seat
        Its place in the session.
    agreement
        The public parameters.
    state
        Its records, centres and books.
    """

    def __init__(self, *, seat: Seat, agreement: Agreement, state: LloydState) -> None:
        agreement.require_star()
        self._number = seat.number
        self._agreement = agreement
        self._session = seat.session
        self._state = state
        self._opened = False
        self._seed_holder = SeedHolder(
            number=seat.number,
            identity=seat.identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=seat.session,
            entropy=seat.entropy,
        )
        self._masks: MaskSchedule | None = None
        self._answered = 0  # the last round answered; each is answered once, or a mask would be used twice
        self._finished = False

    @property
    def centres(self) -> FloatArray:
        """The result, in [-1, 1]^d, once the session has finished."""
        if self._state.centres is None or not self._finished:
            raise LocalProtocolError("the session must be finished before it has centres; it is not.")
        return self._state.centres

    @property
    def state(self) -> LloydState:
        """Records, centres and released sums as they are now."""
        return self._state

    @property
    def finished(self) -> bool:
        """Whether this party has the final centres."""
        return self._finished

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        if self._finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        if self._agreement.masked:
            if isinstance(request, messages.MaskedRound):
                return self._masked_round(request)
            if isinstance(request, messages.MaskedFinish):
                return self._masked_finish(request)
            return self._seed_holder.handle(request)
        if isinstance(request, OpenSession):
            check_agreement(request, self._agreement.digest)
            self._opened = True
            return Ready()
        if self._opened and isinstance(request, messages.NaiveRound):
            return self._naive_round(request)
        if self._opened and isinstance(request, messages.NaiveFinish):
            self._state.centres = self._received_centres(request.centres)
            self._finished = True
            return Ready()
        raise RemoteProtocolError(
            f"naive takes OpenSession, then rounds, then the finish; got {type(request).__name__} out of turn."
        )

    # --- naive, 5.2.1 -------------------------------------------------------------------------------------------

    def _naive_round(self, request: messages.NaiveRound) -> messages.LocalUpdate:
        self._check_round(request.round)
        state = self._state.branch()
        state.centres = self._received_centres(request.centres)
        exact_update = state.contribute(request.round)
        self._state, self._answered = state, request.round
        return messages.LocalUpdate(Array.of(exact_update))

    def _received_centres(self, array: Array) -> FloatArray:
        centres = array.to_numpy(np.float64, self._agreement.clusters, self._agreement.dimensions)
        if (np.abs(centres) > 1).any():
            raise RemoteProtocolError("centres must lie inside the public bounds; some do not.")
        return centres

    # --- masked, 5.3.1 and 5.4.1 --------------------------------------------------------------------------------

    def _masked_round(self, request: messages.MaskedRound) -> messages.MaskedUpdate:
        self._check_round(request.round)
        masks = self._ready_masks()
        state = self._follow(request.news, masks, upto=request.round - 1, start=request.start)
        try:
            contribution = state.contribute(request.round)
        except InfeasibleError as error:
            raise InfeasibleError(f"party {self._number}: {error}") from None
        elements = self._agreement.ring.encode(contribution)
        masked = masks.mask(elements, request.round, self._number)
        self._masks, self._state, self._answered = masks, state, request.round
        return messages.MaskedUpdate(Array.of(masked))

    def _masked_finish(self, request: messages.MaskedFinish) -> Ready:
        self._state = self._follow(request.news, self._ready_masks(), upto=self._agreement.iterations, start=None)
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

    def _follow(
        self, news: tuple[Aggregate, ...], masks: MaskSchedule, *, upto: int, start: Array | None
    ) -> LloydState:
        """Return a state that has taken each round up to ``upto``; this party's own state does not change.

        Sums that this party already has are skipped: the coordinator repeats them if our last answer was lost.
        """
        state = self._state.branch()
        first = news[0].round if news else upto + 1
        if first > state.taken + 1 or [a.round for a in news] != list(range(first, upto + 1)):
            raise RemoteProtocolError(
                f"the sums of rounds {state.taken + 1} to {upto} must all come, in order; they do not."
            )
        if state.centres is None:
            self._start(state, start)
        for aggregate in news[state.taken + 1 - first :]:
            elements, members = masks.unmask(
                aggregate, length=self._agreement.length, members_min=self._agreement.members_min
            )
            state.take(aggregate.round, self._agreement.ring.decode(elements), len(members))
        return state

    def _start(self, state: LloydState, start: Array | None) -> None:
        """Give a state its first centres."""
        if self._agreement.initialisation == "given" or self._agreement.start_by == "parties":
            assert self._seed_holder.seed is not None
            state.begin(self._seed_holder.seed, self._session)
        elif start is None:
            raise RemoteProtocolError("the first round must bring the coordinator's centres; it does not.")
        else:
            state.centres = self._received_centres(start)

    def _check_round(self, round_: int) -> None:
        if not self._answered < round_ <= self._agreement.iterations:
            raise RemoteProtocolError(
                f"the round must be from {self._answered + 1} to {self._agreement.iterations}; got {round_}."
            )
