"""A party: what it computes in any topology, and how it takes part in a session around a coordinator."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Follower, Introduction, Masks
from cloister.aggregation.messages import Answered, Conclude, OpenTotal, RestoreMasks, Settle, Voted
from cloister.aggregation.seed_agreement import OpenSession, Ready, check_agreement
from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.kmeans import Assignment, Unconstrained
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.multiparty_lloyd import messages
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.multiparty_lloyd.rules import ExactRule, Last
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
        self.missing = 0
        """How many parties were not in the last of these sums."""
        self.confined = 0
        """How many of these sums no records could give."""
        self.released_totals: tuple[IntArray, ...] = ()
        """The noisy sums of the rounds taken; empty where no noise was added."""

    @property
    def subject(self) -> bytes:
        """The centres as they are now, which all parties have computed in common."""
        return b"" if self.centres is None else self.centres.astype("<f8", copy=False).tobytes()

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
        """Move the centres by the sum of a round over ``members`` parties.

        A sum that no records could give is confined to what some could, and never refused: a coordinator that adds
        numbers of its own to a masked sum would learn from every refusal how large the true sum is.
        """
        assert self.centres is not None
        shaped, rule = total.reshape(self._agreement.clusters, -1), self._agreement.rule
        if isinstance(rule, ExactRule):
            exact, shaped = shaped, rule.confine(shaped, members=members)
            self.confined += not np.array_equal(exact, shaped)
        self.centres = rule.move(self.centres, shaped, round_=round_, members=members, last=self._last)
        self.taken, self.missing = round_, self._agreement.parties - members
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
        self._opened = False
        self._introduction = Introduction(seat=seat, terms=agreement.sums)
        self._follower = Follower(seat=seat, terms=agreement.sums, contributor=state, length=agreement.length)
        self._answered = 0  # the last round answered
        self._voted = False
        self._finished = False

    @property
    def centres(self) -> FloatArray:
        """The result, in [-1, 1]^d, once the session has finished."""
        if not self._finished:
            raise LocalProtocolError("the session must be finished before it has centres; it is not")
        assert self.state.centres is not None
        return self.state.centres

    @property
    def state(self) -> LloydState:
        """Records, centres and released sums as they are now."""
        assert isinstance(self._follower.contributor, LloydState)
        return self._follower.contributor

    @property
    def finished(self) -> bool:
        """Whether this party has the final centres."""
        return self._finished

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        if self._finished:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        if self._agreement.masked:
            return self._handle_masked(request)
        if isinstance(request, OpenSession) and not self._opened:
            check_agreement(request, self._agreement.digest)
            self._opened = True
            return Ready()
        if self._opened and isinstance(request, messages.NaiveRound):
            return self._naive_round(request)
        if self._opened and isinstance(request, messages.NaiveFinish):
            self.state.centres = self._received_centres(request.centres)
            self._finished = True
            return Ready()
        raise RemoteProtocolError(
            f"naive takes OpenSession, then rounds, then the finish; got {type(request).__name__} out of turn."
        )

    # --- naive, 5.2.1 -------------------------------------------------------------------------------------------

    def _naive_round(self, request: messages.NaiveRound) -> messages.LocalUpdate:
        self._check_round(request.round)
        state = self.state.branch()
        state.centres = self._received_centres(request.centres)
        exact_update = state.contribute(request.round)
        self._follower.contributor, self._answered = state, request.round
        return messages.LocalUpdate(Array.of(exact_update))

    def _received_centres(self, array: Array) -> FloatArray:
        centres = array.to_numpy(np.float64, self._agreement.clusters, self._agreement.dimensions)
        if (np.abs(centres) > 1).any():
            raise RemoteProtocolError("centres must lie inside the public bounds; some do not.")
        return centres

    # --- masked, 5.3.1 and 5.4.1 --------------------------------------------------------------------------------

    def _handle_masked(self, request: Message) -> Message:
        masks = self._introduction.masks
        if masks is None:
            return self._introduction.handle(request)
        match request:
            case messages.MaskedRound():
                return self._masked_round(request, masks)
            case OpenTotal() | RestoreMasks():
                return masks.handle(request)
            case Settle():
                return self._settle(request, masks)
            case Conclude():
                return self._conclude(request, masks)
        raise RemoteProtocolError(f"masks must be agreed on once; got {type(request).__name__} after that.")

    def _masked_round(self, request: messages.MaskedRound, masks: Masks) -> Answered:
        round_ = request.attempt.round
        if not self._answered <= round_ <= self._agreement.iterations or self._voted:
            raise RemoteProtocolError(
                f"the round must be from {self._answered} to {self._agreement.iterations}; got {round_}."
            )
        follower = self._follow(request, masks, upto=round_ - 1)

        def contribute() -> NDArray[Any]:
            return self._agreement.ring.encode(follower.contributor.contribute(round_))

        answered = masks.answer(request.attempt, follower.place, contribute)
        self._follower, self._answered = follower, round_
        return answered

    def _settle(self, request: Settle, masks: Masks) -> Voted:
        if self._voted:
            raise RemoteProtocolError("a party must be asked for its vote once; it was asked again.")
        self._follower, self._voted = self._follow(request, masks, upto=self._agreement.iterations), True
        return self._follower.vote(masks)

    def _conclude(self, request: Conclude, masks: Masks) -> Ready:
        follower = self._follow(request, masks, upto=self._agreement.iterations)
        follower.check_votes(request.votes, masks)
        self._follower, self._finished = follower, True
        return Ready()

    def _follow(self, request: messages.MaskedRound | Settle | Conclude, masks: Masks, *, upto: int) -> Follower:
        """Return a follower that has taken each round up to ``upto``; changes no state."""
        follower = self._follower.branch()
        state = follower.contributor
        assert isinstance(state, LloydState)
        if state.centres is None:
            self._start(state, masks, request.start if isinstance(request, messages.MaskedRound) else None)
        follower.take(request.news, upto=upto, masks=masks)
        return follower

    def _start(self, state: LloydState, masks: Masks, start: Array | None) -> None:
        """Give a state its first centres."""
        if self._agreement.initialisation == "given" or self._agreement.start_by == "parties":
            state.begin(masks.seed, self._session)
        elif start is None:
            raise RemoteProtocolError("the first round must bring the coordinator's centres; it does not.")
        else:
            state.centres = self._received_centres(start)

    def _check_round(self, round_: int) -> None:
        if not self._answered < round_ <= self._agreement.iterations:
            raise RemoteProtocolError(
                f"the round must be from {self._answered + 1} to {self._agreement.iterations}; got {round_}."
            )
