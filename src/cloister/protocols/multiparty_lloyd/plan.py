"""The forecast of Lloyd's rounds: the noise of the last one, and the traffic, counted with a hollow session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.crypto import Stream
from cloister.forecast.advice import STEADY
from cloister.forecast.model import Forecast, PlacementForecast, PlanRequest, RoundNoise, TrafficForecast
from cloister.forecast.placements import PlacedNoise, compare_placements
from cloister.forecast.traffic import (
    HOLLOW_SESSION,
    HollowSession,
    HollowSums,
    NoNoise,
    extend,
    make_seats,
    measure,
    measure_star,
    scale_quorum,
    sum_up,
)
from cloister.forecast.trials import refuse_epsilons
from cloister.job import Job
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.protocol import Clustering, PublicInput, placeholder_directory
from cloister.protocols.multiparty_lloyd import messages
from cloister.protocols.multiparty_lloyd.agreement import AVERAGES, Agreement, LloydSession
from cloister.protocols.multiparty_lloyd.coordinator import coordinate
from cloister.protocols.multiparty_lloyd.noise import NoisePlan
from cloister.protocols.serverless.messages import CODEC as RING_CODEC
from cloister.protocols.serverless.party import RingParty
from cloister.protocols.serverless.relay import relay
from cloister.protocols.serverless.terms import Terms
from cloister.records import IntArray
from cloister.roles import Message, Seat
from cloister.wire import Array

_PURPOSE = "traffic of Lloyd's rounds"
_ROUNDS_MEASURED = 3  # the first centres may be sent twice; from the third round on, all rounds are alike


def forecast_rounds(
    protocol: Clustering[LloydSession], job: Job, agreed: LloydSession, request: PlanRequest
) -> Forecast:
    """Forecast what a job would do and send, and how much noise a round has."""
    refuse_epsilons(job, request)
    agreement, noise = agreed.agreement, agreed.agreement.noise
    traffic = measure_session(agreed)
    round_noise = () if noise is None else tuple(_estimate_noise(noise, number) for number in request.numbers)
    return Forecast(
        leakage=protocol.leakage(agreed),
        who_adds_noise=None if noise is None else noise.placement.who_adds,
        warnings=() if noise is None else noise.placement.warnings,
        rounds_max=agreement.iterations,
        traffic=traffic,
        round_noise=round_noise,
        placements=() if noise is None else _compare(protocol, job, _place(agreed, noise, traffic)),
        advice=_advise(
            protocol.name,
            round_noise,
            flaw="" if noise is None else noise.flaw,
            averages=agreement.variant in AVERAGES,
        ),
        middleman=agreed.middleman,
    )


def _compare(protocol: Clustering[LloydSession], job: Job, own: PlacedNoise) -> tuple[PlacementForecast, ...]:
    """Compare the choices of who adds the noise of a job; ``own`` is the job's own."""

    def place(other: Job) -> PlacedNoise:
        agreed = protocol.agree(other, placeholder_directory(other), PublicInput())
        assert agreed.agreement.noise is not None
        return _place(agreed, agreed.agreement.noise, measure_session(agreed))

    return compare_placements(job, own, place)


def _place(agreed: LloydSession, noise: NoisePlan, traffic: TrafficForecast) -> PlacedNoise:
    return PlacedNoise(
        placement=noise.placement, target=noise.targets[-1], masks=agreed.agreement.masks, traffic=traffic
    )


def _estimate_noise(noise: NoisePlan, records: int) -> RoundNoise:
    """The noise on a centre of average size."""
    return RoundNoise(records=records, centre_noise=noise.blur_centre(max(1.0, records / noise.clusters)))


def _advise(protocol: str, noise: Sequence[RoundNoise], *, flaw: str, averages: bool) -> str:
    """Say what is not forecast, and what the noise means."""
    if not noise:
        centres = "those of Lloyd's algorithm on one joint table, from the same start"
        if averages:
            centres = "averages of the parties' own centres, which are not those of k-means on one joint table"
        return f"{protocol} has no noise: its centres are {centres}, and nothing here is differentially private."
    if flaw:
        return f"For reproduction only: the guarantee as published does not hold. {flaw}"
    unusable = [case.records for case in noise if case.centre_noise > STEADY]
    said = "Losses are not predicted for this protocol: they depend on the start more than on the noise."
    if unusable:
        said += (
            f" With {max(unusable):,} records or fewer, the noise of one round moves a centre by more than a twentieth "
            "of a column: use the synopsis, fewer rounds or a larger epsilon."
        )
    return said


def measure_session(agreed: LloydSession) -> TrafficForecast:
    """Return the traffic of a session, around a coordinator or in a ring."""
    return measure_rounds(agreed.agreement) if agreed.terms is None else measure_ring(agreed.terms)


def measure_rounds(agreement: Agreement) -> TrafficForecast:
    """Return the traffic of a session around a coordinator; a naive one with a tolerance may stop earlier."""

    def measure_short(iterations: int) -> TrafficForecast:
        return measure_star(
            lambda parties: _hollow_star(agreement, parties, iterations), agreement.parties, steps=agreement.steps
        )

    last = measure_short(min(agreement.iterations, _ROUNDS_MEASURED))
    leader, other = last.leader, last.other
    if agreement.iterations > _ROUNDS_MEASURED:
        before = measure_short(_ROUNDS_MEASURED - 1)
        later = agreement.iterations - _ROUNDS_MEASURED + 2
        leader, other = extend((before.leader, before.other), (leader, other), later)
    total = leader.bytes_up + leader.bytes_down + (agreement.parties - 1) * (other.bytes_up + other.bytes_down)
    return replace(last, leader=leader, other=other, total_bytes=total, at_most=agreement.tolerance > 0)


def _hollow_star(agreement: Agreement, parties: int, iterations: int) -> HollowSession:
    """Make a session with messages of the same length; noise does not change any length."""
    seats, noise, duty = make_seats(parties, _PURPOSE), agreement.noise, None
    if noise is not None:
        noise = replace(noise, targets=noise.targets[:iterations], placement=Aggregator())
        duty = NoiseDuty(charger=Accountant(noise.budget), sampler=NoNoise())
    members_min, colluding_max = scale_quorum(agreement.sums, parties)
    agreement = replace(
        agreement,
        parties=parties,
        iterations=iterations,
        ring_bits=agreement.ring.bits,
        noise=noise,
        directory=tuple(seat.identity.public_bytes for seat in seats),
        members_min=members_min,
        colluding_max=colluding_max,
        tolerance=0.0,
    )
    entropy = Stream.from_seed(0, "coordinator")
    return HollowSession(
        coordinator=coordinate(agreement, entropy=entropy, session=HOLLOW_SESSION, duty=duty),
        parties=[_HollowParty(agreement, seat) for seat in seats],
        codec=messages.CODEC,
    )


class _HollowParty:
    """Meets the others, and answers with zeros of the right lengths."""

    def __init__(self, agreement: Agreement, seat: Seat) -> None:
        self._agreement = agreement
        self._sums = HollowSums(seat, agreement.sums)

    def handle(self, request: Message) -> Message:
        """Answer."""
        agreement = self._agreement
        match request:
            case messages.MaskedRound():
                return self._sums.answer(request.attempt, agreement.length)
            case messages.NaiveRound():
                return messages.LocalUpdate(Array.of(np.zeros(agreement.length, dtype=np.int64)))
            case messages.NaiveFinish():
                return Ready()
            case OpenSession() if not agreement.masked:
                return Ready()
        return self._sums.handle(request)


def measure_ring(terms: Terms) -> TrafficForecast:
    """Return the traffic of a session in a ring; every further round sends as much as the second."""
    one, two = (measure(_hollow_ring(terms, rounds)) for rounds in (1, 2))
    return sum_up(extend(one, two, terms.rounds), steps=terms.steps)


def _hollow_ring(terms: Terms, rounds: int) -> HollowSession:
    seats = make_seats(terms.parties, _PURPOSE)
    terms = replace(terms, rounds=rounds, directory=tuple(seat.identity.public_bytes for seat in seats))
    return HollowSession(
        coordinator=relay(terms, entropy=Stream.from_seed(0, "relay"), session=HOLLOW_SESSION),
        parties=[RingParty(seat=seat, terms=terms, contributor=_Zeros(terms.length)) for seat in seats],
        codec=RING_CODEC,
    )


class _Zeros:
    """Contributes zeros and keeps nothing."""

    def __init__(self, length: int) -> None:
        self._length = length

    def begin(self, seed: bytes, session: bytes) -> None:
        """Nothing to draw."""

    def contribute(self, round_: int) -> IntArray:
        """Return zeros."""
        return np.zeros(self._length, dtype=np.int64)

    def take(self, round_: int, total: IntArray, members: int) -> None:
        """Nothing to move."""

    def branch(self) -> Self:
        """Nothing to copy."""
        return self

    @property
    def subject(self) -> bytes:
        """Nothing to compare."""
        return b""
