"""Sessions of FastLloyd, sound and as published, with books and recorded noise for each role; and their rehearsal."""

from __future__ import annotations

import numpy as np

from cloister.kmeans import Unconstrained
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Joint
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd.published import PublishedSettings, plan_published
from cloister.protocols.fastlloyd.rehearsal import rehearse
from cloister.protocols.fastlloyd.sound import SoundSettings, plan_fastlloyd
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from tests.protocols.multiparty_lloyd.sessions import Rounds
from tests.sessions import RecordingSampler, blobs, make_directory

PRESETS = ("published", "csulloyd", "sulloyd", "mna", "amn")
POINTS = FixedPoint().quantise(blobs(240, 2, 3, seed=8))
START = tuple(tuple(row) for row in POINTS[[0, 100, 200]].tolist())


def deal(points=POINTS, parties=3):
    """Deal the records out evenly: each party can meet its part of the constraints."""
    return [points[party::parties] for party in range(parties)]


class Replay:
    """Gives what others drew, in their order, to whoever asks for the same distribution."""

    is_simulation = True

    def __init__(self, drawn):
        self.left = list(drawn)

    def draw(self, mechanism, entries, on_progress=None):
        expected, noise = self.left.pop(0)
        assert (mechanism, entries) == (expected, noise.size)
        return noise


class FastLloydSession(Rounds):
    """One job's roles, each with books and a recording sampler.

    ``kind`` is "sound" or a preset, ``records`` what is declared of a preset if it is not true.
    """

    def __init__(
        self,
        kind="sound",
        parts=None,
        *,
        clusters=3,
        epsilon=4.0,
        noise="gaussian",
        placement=None,
        members_min=1,
        max_records=1000,
        start=START,
        initialisation="sphere-packing",
        seed=7,
        records=None,
        options=None,
        masks="common",
    ):
        parts = deal() if parts is None else parts
        self.kind, self.epsilon, self.start = kind, epsilon, start
        self.clusters, self.dimensions, self.parties = clusters, parts[0].shape[1], len(parts)
        pure = (kind != "sound" or noise == "laplace") and not isinstance(placement, Joint)
        self.budget = Budget(epsilon=epsilon, delta=0.0 if pure else 1e-6)
        sizes = {"clusters": clusters, "dimensions": self.dimensions, "parties": self.parties, **(options or {})}
        variant, assignment = "fastlloyd", Unconstrained()
        if kind == "sound":
            settings = SoundSettings(max_records=max_records, kind=noise, **sizes)
            self.plan = plan_fastlloyd(settings, self.budget, placement=placement)
        else:
            settings = PublishedSettings(preset=kind, records=records or sum(map(len, parts)), **sizes)
            self.plan = plan_published(settings, self.budget, placement=placement)
            variant = "average-mask-noise" if settings.by_centroids else "mask-noise-average"
            assignment = settings.make_assignment()
        agreement = Agreement(
            variant=variant,
            parties=self.parties,
            clusters=clusters,
            dimensions=self.dimensions,
            iterations=len(self.plan.targets),
            noise=self.plan,
            masks=masks,
            colluding_max=placement.colluding_max if masks == "double" else 0,
            max_records=max_records,
            members_min=max(members_min, self.plan.members_min),
            initialisation="given" if start else initialisation,
            start=start,
            directory=make_directory(seed, self.parties),
        )
        self.duty = self.make_duty("coordinator", seed)
        super().__init__(
            agreement,
            parts,
            assignment=assignment,
            seed=seed,
            duties=[self.make_duty(f"party {number}", seed) for number in range(1, self.parties + 1)],
            coordinator_duty=self.duty if self.plan.by_coordinator else None,
        )

    def make_duty(self, label, seed):
        return NoiseDuty(charger=Accountant(self.budget), sampler=RecordingSampler(label, seed=seed))

    @property
    def assignment(self):
        return self.agreed.assignment

    def drawn(self):
        """All noise that was drawn, in the order of rounds, then of parties."""
        if self.plan.by_coordinator:
            return self.duty.sampler.drawn
        drawn = [duty.sampler.drawn for duty in self.duties.values()]
        return [draw for round_ in zip(*drawn, strict=True) for draw in round_]

    def rehearse(self):
        """The same rounds without messages, with the noise that the session drew."""
        sampler = Replay(self.drawn())
        start = np.array(self.start)
        found = rehearse(self.plan, self.record_tables, start, sampler=sampler, assignment=self.assignment)
        assert not sampler.left
        return found
