"""The traffic of guided sums, counted with a hollow session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cloister.aggregation import SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Identity, Stream
from cloister.crypto.identity import SIGNATURE_BYTES
from cloister.forecast.model import TrafficForecast
from cloister.forecast.traffic import HOLLOW_SESSION, HollowSession, NoNoise, measure_star
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.protocols.guided_sums.algorithm import GuidedSession
from cloister.protocols.guided_sums.coordinator import NoBooks, coordinate
from cloister.protocols.guided_sums.messages import Answer, Finish, Lead, MaskedUpdate, Sign, Signed, make_codec
from cloister.protocols.guided_sums.query import Idle
from cloister.protocols.guided_sums.statements import Statements
from cloister.roles import Message
from cloister.wire import Array


def measure_sums(agreed: GuidedSession[Any]) -> TrafficForecast:
    """Return what a session of guided sums sends: of the synopsis, or of FedDP-KMeans.

    With a sample of the parties in each round, this is an upper bound: a party that is not asked in a round sends
    nothing, and receives the total later.
    """
    agreement, settings = agreed.agreement, agreed.agreement.settings
    sampled = settings.sample_size < settings.parties
    return measure_star(
        lambda parties: _hollow_session(agreed, parties), settings.parties, steps=agreement.steps, at_most=sampled
    )


def _hollow_session(agreed: GuidedSession[Any], parties: int) -> HollowSession:
    """A session of so many parties that all are asked in every round."""
    agreement, settings = agreed.agreement, agreed.agreement.settings
    stream = Stream.from_seed(0, "traffic of guided sums")
    identities = [Identity(stream.child("identity", number)) for number in range(1, parties + 1)]
    agreement = replace(
        agreement,
        settings=replace(settings, placement=Aggregator()).scaled_to(parties),  # who adds noise changes no length
        ring_bits=agreement.ring.bits,
        directory=tuple(identity.public_bytes for identity in identities),
        members_min=min(agreement.members_min, parties),
    )
    agreed = replace(agreed, agreement=agreement)
    duty = NoiseDuty(charger=NoBooks(), sampler=NoNoise())
    return HollowSession(
        coordinator=coordinate(agreed, session=HOLLOW_SESSION, duty=duty),
        parties=[
            _HollowParty(
                agreed,
                number,
                identity,
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
    """Agrees on a seed, states nothing in boxes of the right length, and answers with zeros of the right length."""

    def __init__(self, agreed: GuidedSession[Any], number: int, identity: Identity, seed_holder: SeedHolder) -> None:
        self._agreement, self._forms = agreed.agreement, agreed.forms
        self._number, self._identity, self._seed_holder = number, identity, seed_holder

    def handle(self, request: Message) -> Message:
        """Answer."""
        match request:
            case Lead():
                return self._statements.state(
                    request.round, Idle(), leader=self._number, identity=self._identity, entropy=Stream(bytes(32))
                )
            case Answer():
                length = self._agreement.length_of(request.round)
                return MaskedUpdate(Array.of(np.zeros(length, dtype=self._agreement.ring.dtype)))
            case Sign():
                return Signed(bytes(SIGNATURE_BYTES))
            case Finish():
                return Ready()
        return self._seed_holder.handle(request)

    @property
    def _statements(self) -> Statements:
        directory = self._agreement.directory
        return Statements(forms=self._forms, directory=directory, seed=bytes(32), session=HOLLOW_SESSION)
