"""The smallest useful protocol: one centre, the mean, from sums to which each party adds all of the noise itself.

CONTRIBUTING.md explains it part by part. It has everything that a protocol needs, and nothing else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec import Struct

from cloister.audit import Attack, Claim, JobUnderAudit, Neighbour
from cloister.audit.attack import find_corner, find_middle, make_table
from cloister.forecast.model import Forecast
from cloister.forecast.traffic import HollowSession, NoNoise, measure, sum_up
from cloister.job import Facts, Options
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.books import Charges
from cloister.privacy.calibration import calibrate_gaussian
from cloister.privacy.card import Circumstances
from cloister.privacy.centre_noise import blur_means
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.placement import Local
from cloister.privacy.release import NoiseDuty, release
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, LeakageTable, Learns, Row, Sensitivity
from cloister.protocol import Clustering, Explanation, Finding, placeholder_directory
from cloister.records import ArrayRecords
from cloister.report.sizes import fit_sizes
from cloister.roles import Ask, expect
from cloister.wire import Array, Codec

GRID = FixedPoint(8)


class Question(Struct, frozen=True, tag=0, array_like=True):
    """The total of all parties, once it is known; before, the request for a party's part of it."""

    total: Array | None = None


class Answer(Struct, frozen=True, tag=0, array_like=True):
    """A party's noisy sums and number of records; empty where it was told the total."""

    part: Array | None = None


CODEC = Codec("mean", requests=Question, replies=Answer)


class MeanOptions(Options, tag="mean"):
    facts = Facts(budget="required", clusters_most=1)

    @property
    def grid(self):
        return GRID


@dataclass(frozen=True, kw_only=True)
class Agreed:
    dimensions: int
    parties: int
    budget: Budget

    @property
    def release(self) -> Release:
        """One party's sums and count, the count in units of 2^8 too: each entry of one record is at most that."""
        entries, l2_squared = self.dimensions + 1, (self.dimensions + 1) * GRID.scale**2
        sensitivity = Sensitivity(l1=entries * GRID.scale, l2_squared=l2_squared)
        noise = DiscreteGaussian(sigma=calibrate_gaussian(self.budget, l2_squared, 1))
        return Release(name="sums and count", mechanism=noise, sensitivity=sensitivity, entries=entries)


class MeanParty:
    def __init__(self, agreed, records, duty):
        self.agreed, self.records, self.duty, self.total = agreed, records, duty, None

    def handle(self, request):
        if request.total is not None:
            self.total = request.total.to_numpy(np.int64, self.agreed.dimensions + 1)
            return Answer()
        exact = np.zeros(self.agreed.dimensions + 1, dtype=np.int64)
        for batch in self.records.batches():
            exact += np.append(GRID.encode(batch).sum(axis=0), GRID.scale * len(batch))
        return Answer(Array.of(release(exact, self.agreed.release, duty=self.duty)))


def add_up(agreed):
    numbers, entries = range(1, agreed.parties + 1), agreed.dimensions + 1
    replies = yield Ask(label="sum", requests=dict.fromkeys(numbers, Question()), check=expect(Answer), steps=2)
    total = np.sum([replies[number].part.to_numpy(np.int64, entries) for number in numbers], axis=0)
    told = Question(Array.of(total))
    yield Ask(label="total", requests=dict.fromkeys(numbers, told), check=expect(Answer), steps=2)


class Mean(Clustering[Agreed]):
    Options = MeanOptions

    def agree(self, job, directory, public):
        return Agreed(dimensions=len(job.columns), parties=len(job.parties), budget=job.budget)

    def digest(self, agreed):
        return hashlib.sha256(msgspec.msgpack.encode(agreed)).digest()

    def charges(self, agreed):
        return Charges(budget=agreed.budget, placement=Local(parties=agreed.parties), prepaid=(agreed.release,))

    def leakage(self, agreed):
        role, value, meaning = "coordinator", "sums", "each party's sums and number of records"
        row = Row(role=role, value=value, meaning=meaning, learns=Learns.NOISY)
        withstands = Local(parties=agreed.parties).withstands(masked_twice=False)
        return LeakageTable(source="CONTRIBUTING.md", rows=(row,), withstands=withstands, breaks_if="Nobody.")

    def codec(self, agreed):
        return CODEC

    def seat(self, agreed, seat, own, *, duty=None):
        return MeanParty(agreed, own.records, duty)

    def coordinate(self, agreed, *, session, entropy, duty=None):
        return add_up(agreed)

    def find(self, agreed, party, outcome):
        sums, counts = party.total[None, :-1] / GRID.scale, np.maximum(party.total[-1:] / GRID.scale, 1)
        noise = agreed.release.mechanism.sigma * agreed.parties**0.5 / GRID.scale
        variances = blur_means(sums / counts, counts, sum_std=noise, count_variances=noise**2)
        return Finding(
            centres=np.clip(sums / counts, -1, 1),
            rounds=1,
            sizes=fit_sizes(counts, np.array([noise**2])),
            centre_noise=np.sqrt(variances),
        )

    def explain(self, job, agreed, finding, outcome, make_card):
        card = make_card(Circumstances(parties_in_sum=agreed.parties))
        return Explanation(leakage=self.leakage(agreed), public="columns and bounds", card=card)

    def forecast(self, job, public, request):
        agreed = self.agree(job, placeholder_directory(job), public)
        duties = (NoiseDuty(charger=Accountant(agreed.budget), sampler=NoNoise()) for _ in job.parties)
        parties = [MeanParty(agreed, ArrayRecords(np.zeros((0, agreed.dimensions))), duty) for duty in duties]
        links = measure(HollowSession(coordinator=add_up(agreed), parties=parties, codec=CODEC))
        return Forecast(leakage=self.leakage(agreed), rounds_max=1, traffic=sum_up(links, steps=2))

    def attacks(self, job, public):
        agreed = self.agree(job, placeholder_directory(job), public)
        rows = {Neighbour.WITHOUT: find_middle(job), Neighbour.WITH: np.vstack([find_middle(job), find_corner(job)])}

        def run(side, runs, stream):
            records, sampler = make_table(job, np.atleast_2d(rows[side])), SimulationSampler(stream)
            duties = (NoiseDuty(charger=Accountant(agreed.budget), sampler=sampler) for _ in range(runs))
            answers = [MeanParty(agreed, records, duty).handle(Question()) for duty in duties]
            return np.stack([answer.part.to_numpy(np.int64, agreed.dimensions + 1) for answer in answers])

        rho = Accountant(agreed.budget).would_spend((agreed.release,)).rho
        claim = Claim(epsilon=agreed.budget.epsilon, delta=agreed.budget.delta, rho=rho)
        return JobUnderAudit(attacks=(Attack(name="one more record, at a corner", run=run),), claim=claim)
