"""The traffic of guided sums, counted with a hollow session; and what other placements of their noise would cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cloister.aggregation.seed_agreement import Ready
from cloister.crypto.identity import SIGNATURE_BYTES
from cloister.forecast.model import PartyBytes, PlacementForecast, TrafficForecast
from cloister.forecast.placements import PlacedNoise, Sightings, compare_placements
from cloister.forecast.traffic import (
    HOLLOW_SESSION,
    HollowSession,
    HollowSums,
    NoNoise,
    make_seats,
    measure_star,
    scale_quorum,
)
from cloister.job import Job, NoiseOptions
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.protocols.guided_sums.algorithm import GuidedSession
from cloister.protocols.guided_sums.coordinator import NoBooks, coordinate
from cloister.protocols.guided_sums.messages import Answer, Finish, Lead, Sign, Signed, make_codec
from cloister.protocols.guided_sums.protocol import agree_on_sums
from cloister.protocols.guided_sums.query import Idle
from cloister.protocols.guided_sums.statements import Statements
from cloister.roles import Message, Seat


def place_sums(agreed: GuidedSession[Any]) -> PlacedNoise:
    """Say who adds the noise of a session, how much of it is needed, and what is sent."""
    settings = agreed.agreement.settings
    return PlacedNoise(
        placement=settings.placement,
        target=settings.noise_in(settings.slots[-1]),
        masks=agreed.agreement.masks,
        traffic=measure_sums(agreed),
    )


def compare_sums(
    job: Job, agreed: GuidedSession[Any], own: PlacedNoise, *, sightings: Sightings | None = None
) -> tuple[PlacementForecast, ...]:
    """Compare the choices of who adds the noise of a job; ``own`` is the job's own."""
    agreement = agreed.agreement

    def place(other: Job) -> PlacedNoise:
        assert isinstance(other.protocol, NoiseOptions)
        settings = replace(agreement.settings, placement=other.protocol.make_placement(len(other.parties)))
        return place_sums(replace(agreed, agreement=agree_on_sums(other, settings, agreement.directory)))

    return compare_placements(job, own, place, sightings=sightings)


def measure_sums(agreed: GuidedSession[Any]) -> TrafficForecast:
    """Return what a session of guided sums sends: of the synopsis, or of FedDP-KMeans.

    With a sample of the parties in each round, this is an upper bound: a party that is not asked in a round sends
    nothing, and receives the total later.
    """
    agreement, settings = agreed.agreement, agreed.agreement.settings
    if settings.alone:
        nothing = PartyBytes(bytes_up=0, bytes_down=0, messages_up=0, messages_down=0)
        return TrafficForecast(steps=0, leader=nothing, other=nothing, total_bytes=0)
    sampled = settings.sample_size < settings.parties
    return measure_star(
        lambda parties: _hollow_session(agreed, parties), settings.parties, steps=agreement.steps, at_most=sampled
    )


def _hollow_session(agreed: GuidedSession[Any], parties: int) -> HollowSession:
    """A session of so many parties that all are asked in every round."""
    agreement, settings = agreed.agreement, agreed.agreement.settings
    seats = make_seats(parties, "traffic of guided sums")
    members_min, colluding_max = scale_quorum(agreement.sums, parties)
    agreement = replace(
        agreement,
        settings=replace(settings, placement=Aggregator()).scaled_to(parties),  # who adds noise changes no length
        ring_bits=agreement.ring.bits,
        directory=tuple(seat.identity.public_bytes for seat in seats),
        members_min=members_min,
        colluding_max=colluding_max,
    )
    agreed = replace(agreed, agreement=agreement)
    duty = NoiseDuty(charger=NoBooks(), sampler=NoNoise())
    return HollowSession(
        coordinator=coordinate(agreed, session=HOLLOW_SESSION, duty=duty),
        parties=[_HollowParty(agreed, seat) for seat in seats],
        codec=make_codec(settings.protocol),
    )


class _HollowParty:
    """States nothing in boxes of the right length, and answers with zeros of the right length."""

    def __init__(self, agreed: GuidedSession[Any], seat: Seat) -> None:
        agreement = agreed.agreement
        self._seat, self._slots = seat, agreement.slots
        self._sums = HollowSums(seat, agreement.sums)
        self._statements = Statements(
            forms=agreed.forms, directory=agreement.directory, seed=bytes(32), session=HOLLOW_SESSION
        )

    def handle(self, request: Message) -> Message:
        """Answer."""
        match request:
            case Lead():
                return self._statements.state(request.round, Idle(), seat=self._seat)
            case Answer():
                return self._sums.answer(request.attempt, self._slots[request.attempt.round - 1].length)
            case Sign():
                return Signed(bytes(SIGNATURE_BYTES))
            case Finish():
                return Ready()
        return self._sums.handle(request)
