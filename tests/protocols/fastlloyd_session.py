"""Sessions of FastLloyd, sound and as published, with one recorded desk for each role; and their rehearsal."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloister.crypto import SeededEntropy, Stream
from cloister.kmeans.assignment import Unconstrained
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator, Joint
from cloister.privacy.release import NoiseDuty
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd import (
    FastLloydOptions,
    PublishedOptions,
    plan_fastlloyd,
    plan_published,
    rehearse,
)
from cloister.protocols.multiparty_lloyd import CODEC, Agreement, LloydParty, coordinate
from cloister.records import ArrayRecords
from cloister.runtime import run_local
from tests.harness import SESSION, blobs, identity

PRESETS = ("published", "csulloyd", "sulloyd", "mna", "amn")
POINTS = FixedPoint().quantise(blobs(240, 2, 3, seed=8))
START = tuple(tuple(row) for row in POINTS[[0, 100, 200]].tolist())


def deal(points=POINTS, parties=3):
    """Deal the records out evenly: each party can meet its part of the constraints."""
    return [points[party::parties] for party in range(parties)]


class RecordingSampler:
    """A sampler whose every draw is kept: the noise that really ran."""

    is_simulation = True

    def __init__(self, label, seed):
        self._inner = SimulationSampler(Stream.from_seed(seed, "fastlloyd", label))
        self.drawn = []

    def draw(self, mechanism, entries, on_progress=None):
        noise = self._inner.draw(mechanism, entries)
        self.drawn.append((mechanism, noise))
        return noise


class ReplayingSampler:
    """Gives what others drew, in their order; asks for the same distribution."""

    is_simulation = True

    def __init__(self, drawn):
        self.left = deque(drawn)

    def draw(self, mechanism, entries, on_progress=None):
        expected, noise = self.left.popleft()
        assert mechanism == expected
        assert entries == noise.size
        return noise


@dataclass
class FastLloydSession:
    """One job's roles; ``kind`` is "sound" or a preset, ``records`` what is declared of a preset if it is not true."""

    kind: str = "sound"
    parts: list = None
    clusters: int = 3
    epsilon: float = 4.0
    noise: str = "gaussian"
    placement: object = None
    members_min: int = 1
    max_records: int = 1000
    start: tuple = START
    initialisation: str = "sphere-packing"
    seed: int = 7
    records: int = None
    options: dict = None

    def __post_init__(self):
        self.parts = deal() if self.parts is None else self.parts
        self.dimensions = self.parts[0].shape[1]
        self.parties = len(self.parts)
        pure = self.kind != "sound" or self.noise == "laplace"
        pure = pure and not isinstance(self.placement, Joint)
        self.budget = Budget(epsilon=self.epsilon, delta=0.0 if pure else 1e-6)
        self.duties = [self._duty(f"party {number}") for number in range(1, self.parties + 1)]
        self.coordinator = self._duty("coordinator")

    def _duty(self, label):
        return NoiseDuty(charger=Accountant(self.budget), sampler=RecordingSampler(label, self.seed))

    @cached_property
    def published(self):
        return PublishedOptions(
            preset=self.kind,
            records=self.records or sum(map(len, self.parts)),
            clusters=self.clusters,
            dimensions=self.dimensions,
            parties=self.parties,
            **(self.options or {}),
        )

    @cached_property
    def plan(self):
        if self.kind != "sound":
            return plan_published(self.published, self.budget, placement=self.placement)
        options = FastLloydOptions(
            clusters=self.clusters,
            dimensions=self.dimensions,
            parties=self.parties,
            max_records=self.max_records,
            kind=self.noise,
            **(self.options or {}),
        )
        return plan_fastlloyd(options, self.budget, placement=self.placement)

    @property
    def assignment(self):
        return Unconstrained() if self.kind == "sound" else self.published.make_assignment()

    @cached_property
    def agreement(self):
        variant = "fastlloyd"
        if self.kind != "sound":
            variant = "average-mask-noise" if self.published.by_centroids else "mask-noise-average"
        return Agreement(
            variant=variant,
            parties=self.parties,
            clusters=self.clusters,
            dimensions=self.dimensions,
            iterations=len(self.plan.targets),
            noise=self.plan,
            max_records=self.max_records,
            members_min=max(self.members_min, self.plan.members_min),
            initialisation="given" if self.start else self.initialisation,
            start=self.start,
            directory=tuple(identity(self.seed, number).public_bytes for number in range(1, self.parties + 1)),
        )

    def party(self, number, kind=LloydParty):
        return kind(
            number=number,
            agreement=self.agreement,
            records=ArrayRecords(self.parts[number - 1]),
            identity=identity(self.seed, number),
            entropy=SeededEntropy(self.seed, f"party {number}"),
            session=SESSION,
            assignment=self.assignment,
            duty=self.duties[number - 1],
        )

    def run(self, *, kinds=None, **options):
        """Run it; ``kinds`` maps a party's number to another class of party."""
        duty = self.coordinator if self.plan.by_coordinator else None
        coordinator = coordinate(self.agreement, entropy=SeededEntropy(self.seed, "c"), session=SESSION, duty=duty)
        parties = [self.party(n, (kinds or {}).get(n, LloydParty)) for n in range(1, self.parties + 1)]
        return run_local(coordinator, parties, codec=CODEC, session=SESSION, threads=1, **options), parties

    def drawn(self):
        """All noise that was drawn, in the order of rounds, then of parties."""
        if isinstance(self.plan.placement, Aggregator):
            return self.coordinator.sampler.drawn
        return [draw for round_ in zip(*(duty.sampler.drawn for duty in self.duties), strict=True) for draw in round_]

    def rehearse(self):
        """The same rounds without messages, with the noise that the session drew."""
        sampler = ReplayingSampler(self.drawn())
        records = [ArrayRecords(part) for part in self.parts]
        rehearsal = rehearse(self.plan, records, np.array(self.start), sampler=sampler, assignment=self.assignment)
        assert not sampler.left
        return rehearsal
