"""Builds sessions of FedDP-KMeans with every desk recorded."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from cloister.crypto import SeededEntropy, Stream
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import Budget
from cloister.protocols.feddp import CODEC, FeddpKnobs, FeddpSettings, bind_server, list_plan
from cloister.protocols.guided_sums import Agreement, GuidedParty, NoBooks, SharedThinking, coordinate
from cloister.protocols.guided_sums.party import derive_stream_key
from cloister.records import ArrayRecords
from cloister.runtime import run_local
from tests.harness import SESSION, identity
from tests.protocols.synopsis_session import RecordingSampler

BUDGET = Budget(epsilon=1.0, delta=1e-6)
SMALL = FeddpKnobs(restarts=2)


def make_mixture(*, clients=6, each=60, d=7, k=3, spread=0.05, seed=3):
    """Return the parties' points, and the server's: two thirds from the mixture, a third uniform (appendix G.1)."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.7, 0.7, size=(k, d))
    points = centres[rng.integers(k, size=clients * each)] + rng.normal(scale=spread, size=(clients * each, d))
    server = np.concatenate(
        [np.repeat(centres, 8, axis=0) + rng.normal(scale=spread, size=(8 * k, d)), rng.uniform(-0.7, 0.7, (4 * k, d))]
    )
    quantise = FixedPoint(16).quantise
    return np.split(quantise(np.clip(points, -1, 1)), clients), quantise(np.clip(server, -1, 1)), centres


class Session:
    """A job's roles with one recorded desk each."""

    def __init__(self, parts, server, *, clusters=3, budget=BUDGET, seed=7, silent=False, members_min=2, **options):
        options.setdefault("knobs", SMALL)
        parties = len(parts)
        settings = FeddpSettings(
            clusters=clusters, dimensions=parts[0].shape[1], budget=budget, parties=parties, **options
        ).for_server(server)
        self.agreement = Agreement(
            settings=settings,
            directory=tuple(identity(seed, number).public_bytes for number in range(1, parties + 1)),
            members_min=members_min,
            max_records=10_000,
        )
        self.settings, self.server, self.seed = settings, server, seed
        self.records = [ArrayRecords(part) for part in parts]
        plan = list_plan(settings) if settings.variant == "published" else None
        self.duties = [
            NoiseDuty(charger=Accountant(budget, plan=plan), sampler=RecordingSampler(f"party {n}", silent=silent))
            for n in range(1, parties + 1)
        ]
        self.noise = RecordingSampler("coordinator", seed=seed, silent=silent)
        self.thinking = SharedThinking(guard=nullcontext(), pipeline=bind_server(server))

    def party(self, number):
        return GuidedParty(
            number=number,
            agreement=self.agreement,
            records=self.records[number - 1],
            identity=identity(self.seed, number),
            entropy=SeededEntropy(self.seed, f"party {number}"),
            session=SESSION,
            duty=self.duties[number - 1],
            thinking=self.thinking,
        )

    def run(self, **options):
        by_coordinator = isinstance(self.settings.placement, Aggregator)
        duty = NoiseDuty(charger=NoBooks(), sampler=self.noise) if by_coordinator else None
        parties = [self.party(number) for number in range(1, self.settings.parties + 1)]
        coordinator = coordinate(self.agreement, session=SESSION, duty=duty)
        options = {"restart": self.party, "threads": 1, **options}
        return run_local(coordinator, parties, codec=CODEC, session=SESSION, **options), parties

    def added_noise(self):
        if self.noise.drawn:
            return [noise for _, noise in self.noise.drawn]
        rounds = zip(*(duty.sampler.drawn for duty in self.duties), strict=True)
        return [np.sum([noise for _, noise in shares], axis=0) for shares in rounds]

    def stream(self, party):
        return Stream(derive_stream_key(party._seed_holder.seed, SESSION, "feddp"))
