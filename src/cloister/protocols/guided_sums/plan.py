"""The traffic of guided sums, counted with a hollow session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cloister.aggregation import SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Identity, Stream
from cloister.forecast.model import TrafficForecast
from cloister.forecast.traffic import HOLLOW_SESSION, HollowSession, NoNoise, measure_star
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.protocols.guided_sums.agreement import Agreement
from cloister.protocols.guided_sums.coordinator import NoBooks, coordinate
from cloister.protocols.guided_sums.messages import Confirm, Finish, MaskedUpdate, Round, make_codec
from cloister.roles import Message
from cloister.wire import Array


def measure_sums(agreement: Agreement[Any]) -> TrafficForecast:
    """Return the traffic of a session of guided sums: of the synopsis, or of FedDP-KMeans.

    With a sample of the parties in each round, this is an upper bound: a party that is not asked in a round sends
    nothing, and receives the total later.
    """
    settings = agreement.settings
    sampled = settings.sample_size < settings.parties
    return measure_star(
        lambda parties: _hollow_session(agreement, parties), settings.parties, steps=agreement.steps, at_most=sampled
    )


def _hollow_session(agreement: Agreement[Any], parties: int) -> HollowSession:
    """A session of so many parties that all are asked in every round."""
    settings = agreement.settings
    stream = Stream.from_seed(0, "traffic of guided sums")
    identities = [Identity(stream.child("identity", number)) for number in range(1, parties + 1)]
    agreement = replace(
        agreement,
        settings=replace(settings, placement=Aggregator()).scaled_to(parties),  # who adds noise changes no length
        ring_bits=agreement.ring.bits,
        directory=tuple(identity.public_bytes for identity in identities),
        members_min=min(agreement.members_min, parties),
    )
    duty = NoiseDuty(charger=NoBooks(), sampler=NoNoise())
    return HollowSession(
        coordinator=coordinate(agreement, session=HOLLOW_SESSION, duty=duty),
        parties=[
            _HollowParty(
                agreement,
                SeedHolder(
                    number=number,
                    identity=identity,
                    directory=agreement.directory,
                    agreement=agreement.digest,
                    session=HOLLOW_SESSION,
                    entropy=stream.child("party", number),
                ),
            )
            for number, identity in enumerate(identities, start=1)
        ],
        codec=make_codec(settings.protocol),
    )


class _HollowParty:
    """Agrees on a seed and answers every round with zeros of the right length."""

    def __init__(self, agreement: Agreement[Any], seed_holder: SeedHolder) -> None:
        self._agreement, self._seed_holder = agreement, seed_holder

    def handle(self, request: Message) -> Message:
        """Answer."""
        if isinstance(request, Finish):
            return Ready()
        if not isinstance(request, Round | Confirm):
            return self._seed_holder.handle(request)
        round_ = request.round if isinstance(request, Round) else len(self._agreement.slots) + 1
        return MaskedUpdate(Array.of(np.zeros(self._agreement.length_of(round_), dtype=self._agreement.ring.dtype)))
