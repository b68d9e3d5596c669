"""Builds sessions of the synopsis with every desk recorded; and a small algorithm that shows who was counted."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from cloister.crypto import SeededEntropy, Stream
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.guided_sums.party import derive_stream_key
from cloister.protocols.guided_sums.query import IDLE, Query
from cloister.protocols.synopsis import CODEC, Agreement, NoBooks, SharedThinking, SynopsisParty, coordinate
from cloister.protocols.synopsis.pipeline import Finding, run_synopsis
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.records import ArrayRecords
from cloister.runtime import run_local
from cloister.wire import CoordinatorEndpoint
from tests.harness import SESSION, identity

BUDGET = Budget(epsilon=1.0, delta=1e-6)
COUNTED = [np.zeros((10**power, 1)) for power in range(4)]  # each party in its own digit: a 2 is a double count
SMALL = Knobs(cells_max=64, rounds_max=3, rounds_min=2, restarts=2)


class RecordingSampler:
    """A sampler whose every draw is kept: the mechanisms that really ran. With ``silent`` it draws zeros."""

    is_simulation = True

    def __init__(self, label, *, seed=11, silent=False):
        self._inner = SimulationSampler(Stream.from_seed(seed, label))
        self._silent = silent
        self.drawn = []

    def draw(self, mechanism, entries, on_progress=None):
        noise = np.zeros(entries, dtype=np.int64) if self._silent else self._inner.draw(mechanism, entries)
        self.drawn.append((mechanism, noise))
        return noise


class ReplayingSampler:
    """Gives out prepared noise, one vector a draw."""

    is_simulation = True

    def __init__(self, vectors):
        self._vectors = iter(vectors)

    def draw(self, mechanism, entries, on_progress=None):
        vector = next(self._vectors)
        assert len(vector) == entries
        return vector


def count_thrice(settings, stream):
    """A small algorithm: counts the records in the first, third and last round and idles in the others.

    Without noise, a party with 10^l records is a digit of the weights that it finds: a 2 is a double count.
    """
    counts = []
    for number in range(len(settings.slots)):
        if number in counting_rounds(settings):
            state = np.array(counts, dtype=np.float64).tobytes()
            total = yield Query(name=f"count {number}", measure=_count, length=1, l2_squared=1, state=state)
            counts.append(float(total[0]))
        else:
            yield IDLE
    return Finding(
        centres=np.array([[min(count / 1e9, 1.0)] for count in counts]),
        weights=np.array(counts),
        weight_noise=0.0,
        released_records=counts[0],
        centre_noise=0.0,
        rounds=1,
        route="direct",
        cells=1,
        axes=1,
    )


def counting_rounds(settings):
    return (0, 2, len(settings.slots) - 1)


def _count(records):
    return np.array([sum(len(batch) for batch in records.batches())], dtype=np.int64)


class Session:
    """A job's roles with one recorded desk each; every call of :meth:`party` makes the party anew, at the same desk."""

    def __init__(
        self,
        parts,
        *,
        clusters=3,
        budget=BUDGET,
        pipeline=run_synopsis,
        seed=7,
        silent=False,
        share_thoughts=False,
        members_min=2,
        max_records=10_000,
        **options,
    ):
        options.setdefault("knobs", SMALL)
        parties = len(parts)
        settings = Settings(clusters=clusters, dimensions=parts[0].shape[1], budget=budget, parties=parties, **options)
        self.agreement = Agreement(
            settings=settings,
            directory=tuple(identity(seed, number).public_bytes for number in range(1, parties + 1)),
            members_min=members_min,
            max_records=max_records,
        )
        self.records = [ArrayRecords(FixedPoint().quantise(part)) for part in parts]
        self.seed, self.pipeline = seed, pipeline
        self.shared = SharedThinking(guard=nullcontext(), pipeline=pipeline) if share_thoughts else None
        self.duties = [
            NoiseDuty(charger=Accountant(budget), sampler=RecordingSampler(f"party {number}", seed=seed, silent=silent))
            for number in range(1, parties + 1)
        ]
        self.noise = RecordingSampler("coordinator", seed=seed, silent=silent)

    @property
    def settings(self):
        return self.agreement.settings

    def thinking(self):
        return self.shared or SharedThinking(guard=nullcontext(), pipeline=self.pipeline)

    def party(self, number, **options):
        return SynopsisParty(
            number=number,
            **{
                "agreement": self.agreement,
                "records": self.records[number - 1],
                "identity": identity(self.seed, number),
                "entropy": SeededEntropy(self.seed, f"party {number}"),
                "session": SESSION,
                "duty": self.duties[number - 1],
                "thinking": self.thinking(),
                **options,
            },
        )

    def coordinator(self):
        duty = None
        if isinstance(self.settings.placement, Aggregator):
            duty = NoiseDuty(charger=NoBooks(), sampler=self.noise)
        return coordinate(self.agreement, session=SESSION, duty=duty)

    def run(self, parties=None, **options):
        parties = parties or [self.party(number) for number in range(1, self.settings.parties + 1)]
        options = {"restart": self.party, "threads": 1, **options}
        return run_local(self.coordinator(), parties, codec=CODEC, session=SESSION, **options), parties

    def spent(self):
        return [duty.charger.spent() for duty in self.duties]

    def added_noise(self):
        """All noise of each round, whoever added it; only where every party took part in every round."""
        if self.noise.drawn:
            return [noise for _, noise in self.noise.drawn]
        rounds = zip(*(duty.sampler.drawn for duty in self.duties), strict=True)
        return [np.sum([noise for _, noise in shares], axis=0) for shares in rounds]


class Table:
    """A coordinator and its parties with every message in the tester's hands."""

    def __init__(self, session):
        self.session = session
        self.coordinator = CoordinatorEndpoint(session.coordinator(), codec=CODEC, session=SESSION)
        self.parties = {n: session.party(n) for n in range(1, session.settings.parties + 1)}

    def play(self, steps):
        for _ in range(steps):
            for number, request in self.coordinator.ask.requests.items():
                self.deliver(number, self.parties[number].handle(request))
            self.coordinator.close_step()
        return self

    def deliver(self, number, reply):
        frame = CODEC.encode(reply, session=SESSION, step=self.coordinator.step, sender=number)
        self.coordinator.receive(number, frame)

    def request(self, number=1):
        return self.coordinator.ask.requests[number]


def stream_of(party):
    """The common stream of a session that has run."""
    return Stream(derive_stream_key(party._seed_holder.seed, SESSION, "synopsis"))


def counting(parties=4, **options):
    """A session of the small algorithm without noise."""
    return Session(COUNTED[:parties], pipeline=count_thrice, silent=True, **options)
