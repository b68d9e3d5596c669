"""Builds sessions of guided sums with recorded books and noise; and a small algorithm that shows who was counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Shared
from cloister.privacy.release import NoiseDuty
from cloister.protocols.guided_sums.agreement import Agreement
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, Layout
from cloister.protocols.guided_sums.coordinator import NoBooks
from cloister.protocols.guided_sums.query import IDLE, Ground, pose
from cloister.protocols.guided_sums.refinement import Offsets
from cloister.protocols.guided_sums.statistics import Count
from cloister.protocols.synopsis.questions import Grid
from cloister.report.sizes import Sizes
from cloister.wire import Array
from tests.sessions import RecordingSampler, Session, make_directory

COUNTED = [np.zeros((10**power, 1)) for power in range(4)]  # each party in its own digit: a 2 is a double count


class GuidedSums(Session):
    """A session in which every party keeps its books, and every draw of noise is recorded.

    Attributes
    ----------
    noise
        The coordinator's sampler.
    common
        The stream that the parties have in common, once one of them has begun.
    """

    def __init__(
        self,
        protocol,
        settings,
        algorithm,
        parts,
        *,
        plan=None,
        points=None,
        seed=7,
        silent=False,
        members_min=2,
        max_records=10_000,
        masks=None,
    ):
        placement = settings.placement
        agreement = Agreement(
            settings=settings,
            directory=make_directory(seed, len(parts)),
            members_min=max(members_min, placement.members_min),
            max_records=max_records,
            masks=masks or ("double" if isinstance(placement, Shared) else "common"),
            colluding_max=placement.colluding_max if isinstance(placement, Shared) else 0,
        )
        self.algorithm = algorithm

        def recorded(public, stream):
            self.common = stream
            return algorithm(public, stream)

        agreed = GuidedSession(agreement=agreement, algorithm=recorded, plan=plan, points=points)
        self.noise = RecordingSampler("coordinator", seed=seed, silent=silent)
        super().__init__(
            protocol,
            agreed,
            [settings.fixed_point.quantise(part) for part in parts],
            seed=seed,
            duties={
                number: NoiseDuty(
                    charger=Accountant(settings.budget, plan=plan),
                    sampler=RecordingSampler(f"party {number}", seed=seed, silent=silent),
                )
                for number in range(1, len(parts) + 1)
            },
            coordinator_duty=NoiseDuty(charger=NoBooks(), sampler=self.noise) if agreement.by_coordinator else None,
        )

    @property
    def agreement(self):
        return self.agreed.agreement

    @property
    def settings(self):
        return self.agreement.settings

    @property
    def records(self):
        return [own.records for own in self.inputs]

    def party(self, number, *, algorithm=None):
        """A party; with an ``algorithm`` of its own it runs another one than was agreed on, where it leads."""
        if algorithm is None:
            return super().party(number)
        agreed = replace(self.agreed, algorithm=algorithm)
        return self.roles.seat(agreed, self.seat(number), self.inputs[number - 1], duty=self.duties[number])

    def spent(self):
        return [duty.charger.spent() for duty in self.duties.values()]

    def added_noise(self):
        """All noise of each round, whoever added it; only where every party took part in every round."""
        if self.noise.drawn:
            return [noise for _, noise in self.noise.drawn]
        rounds = zip(*(duty.sampler.drawn for duty in self.duties.values()), strict=True)
        return [np.sum([noise for _, noise in shares], axis=0) for shares in rounds]


def count_thrice(settings, stream):
    """A small algorithm: counts the records in the first, third and last round and idles in the others.

    The third round has one cell and the last one cluster, so that without noise, a party with 10^l records is a digit
    of the weights that it finds: a 2 is a double count.
    """
    d, counts = settings.dimensions, []
    asked = {
        0: Count(share=1),
        2: Grid(low=-np.ones(d), high=np.ones(d), bins=np.ones(d, dtype=np.int64)).pack(1),
        len(settings.slots) - 1: Offsets(share=38, centres=Array.of(np.zeros((1, d))), radii=Array.of(np.ones(1))),
    }
    for number, slot in enumerate(settings.slots):
        if number in asked:
            total = yield pose(Ground(settings=settings), slot.name, asked[number])
            counts.append(float(total[-1]))
        else:
            yield IDLE
    sizes = tuple(map(abs, counts))
    return GuidedFinding(
        centres=np.array([[min(size / 1e9, 1.0)] * d for size in sizes]),
        centre_noise=np.zeros((len(counts), d)),
        sizes=Sizes(unit="records", clusters=sizes, noise=(0.0,) * len(sizes), total=sum(sizes), total_noise=0.0),
        rounds=1,
        layout=Layout(route="direct", cells=1, axes=1),
    )


def counting_rounds(settings):
    return (0, 2, len(settings.slots) - 1)


def counted_names(settings):
    """What is charged for in these rounds."""
    return [settings.slots[number].name for number in counting_rounds(settings)]
