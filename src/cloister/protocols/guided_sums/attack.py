"""Attacks on guided sums: the synopsis, and FedDP-KMeans.

Two made-up inputs differ by one unit of the first party: a record at the corner of the domain, or everything the party
holds; or by a person with many records at several parties. All other records are harmless ones in the middle of the
domain, enough for the algorithm to ask its queries rather than skip them.

The adversary is a party; of one table, whoever sees the result. It knows every question, it is given every total, as if
it led, and all records but one unit's. It subtracts what these add and looks for the rest, v, in noise: the most
powerful statistic is the likelihood ratio (Neyman and Pearson), for Gaussian noise the sum over rounds of
(<x, v> - |v|^2 / 2) / sigma^2, for Laplace noise that of (|x|_1 - |x - v|_1) / b. Queries, and with them v, change from
run to run, which is why no fixed projection of the totals would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from cloister.audit import Attack, Claim, JobUnderAudit, Neighbour
from cloister.audit.attack import (
    ADVERSARY,
    SESSIONS_AT_ONCE,
    KeptNoise,
    find_corner,
    find_far_outside,
    find_middle,
    make_identities,
    make_table,
)
from cloister.audit.persons import JoinedRecords, list_canaries, make_persons
from cloister.crypto import Identity, Stream
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.privacy.accounting import Accountant
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import PersonBudget
from cloister.protocol import Clustering, OwnInput
from cloister.protocols.guided_sums.algorithm import GuidedSession, Pipeline
from cloister.protocols.guided_sums.alone import LoneParty
from cloister.protocols.guided_sums.coordinator import NoBooks
from cloister.protocols.guided_sums.party import GuidedParty
from cloister.protocols.guided_sums.query import Asking, Query, relay
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, GuidedSettings, Slot
from cloister.records import ArrayRecords, FloatArray, IntArray, Records
from cloister.roles import Seat
from cloister.runtime import run_local

_CLEAR = 40.0  # records over noise, per column: from about half of this on, all queries are asked
_CLEAR_SCALED = 60.0
_MOST_HARMLESS = 10_000
_CLIENT_RECORDS = 20
_RAW_ENTRIES = 32  # of each slot, as they were read: shows noise that repeats
_FRACTION = 2.0**20  # scores are passed on as integers, in units of 1 / 2^20


def attack_sums(protocol: Clustering[GuidedSession[Any]], job: Job, agreed: GuidedSession[Any]) -> JobUnderAudit:
    """Build the attacks on a job of guided sums; ``agreed`` is for the identities of `make_identities`."""
    settings = agreed.agreement.settings
    if settings.sample_size < settings.parties:
        raise ConfigError("a job to be audited must ask all parties in every round; this one asks a sample of them.")
    charges = protocol.charges(agreed)
    assert charges is not None  # a job of guided sums has a budget
    spent = Accountant(settings.budget).would_spend(charges.prepaid)
    identities = make_identities(job)
    return JobUnderAudit(
        attacks=tuple(
            Attack(
                name=name,
                run=GuidedSessions(protocol, job, agreed, identities, rows).run,
                labels=tuple(name_entries(settings.slots)),
                most_at_once=SESSIONS_AT_ONCE,
            )
            for name, rows in choose_units(job, settings).items()
        ),
        claim=Claim(epsilon=settings.budget.epsilon, delta=settings.budget.delta, rho=spent.rho),
    )


def choose_units(job: Job, settings: GuidedSettings) -> dict[str, FloatArray]:
    """The rows of the unit that is there or not, by what they are; of a person, those at each of its parties."""
    if isinstance(settings.budget, PersonBudget):
        return list_canaries(job)
    corner, outside = find_corner(job)[None, :], find_far_outside(job)[None, :]
    if not settings.client_level:
        return {
            "one more record, at a corner of the domain": corner,
            "one more record, far outside the domain": outside,
        }
    opposite = 2 * find_middle(job)[None, :] - corner
    return {
        "one more party, all its records at a corner of the domain": np.repeat(corner, _CLIENT_RECORDS, axis=0),
        "one more party, its records at two opposite corners": np.repeat(
            np.vstack([corner, opposite]), _CLIENT_RECORDS // 2, axis=0
        ),
    }


def count_harmless(settings: GuidedSettings) -> int:
    """Return how many harmless records each party holds."""
    needed = (
        (_CLEAR_SCALED if settings.scaled else _CLEAR) * max(settings.dimensions, 5) / settings.signal(BUDGET_UNITS)
    )
    return ceil(min(needed, _MOST_HARMLESS) / settings.parties)


def make_harmless(job: Job, settings: GuidedSettings) -> FloatArray:
    """Return harmless records: in the middle; where columns are scaled by a spread, halfway to two opposite corners.

    Where all records were alike no column would count, and nothing be asked of the one that is attacked.
    """
    middle, count = find_middle(job), count_harmless(settings)
    if not settings.scaled:
        return np.repeat(middle[None, :], count, axis=0)
    half = (find_corner(job) - middle) / 2
    return np.resize(np.stack([middle - half, middle + half]), (count, len(middle)))


class GuidedSessions:
    """Runs a job's protocol over and over on two neighbouring inputs.

    Parameters
    ----------
    protocol, job, agreed, identities
        What runs, and who takes part.
    rows
        The unit, in the job's units: records that the first party holds on one input only, or a person's parties.
    """

    def __init__(
        self,
        protocol: Clustering[GuidedSession[Any]],
        job: Job,
        agreed: GuidedSession[Any],
        identities: tuple[Identity, ...],
        rows: FloatArray,
    ) -> None:
        self.agreed = agreed
        self._protocol, self._identities = protocol, identities
        settings = agreed.agreement.settings
        self._tables = self._make_tables(job, settings, rows)
        without, present = (self._tables[side] for side in Neighbour)
        held = [number for number, table in enumerate(present) if table is not without[number]]
        self.unit = HiddenUnit(
            settings=settings,
            others=tuple(table for number, table in enumerate(present) if number not in held),
            without=JoinedRecords(parts=[without[number] for number in held]),
            present=JoinedRecords(parts=[present[number] for number in held]),
        )

    @staticmethod
    def _make_tables(job: Job, settings: GuidedSettings, rows: FloatArray) -> Mapping[Neighbour, tuple[Records, ...]]:
        """Return every party's records on either input; those that are the same are one object."""
        if isinstance(settings.budget, PersonBudget):
            return make_persons(job, rows, others=count_harmless(settings))
        harmless = make_harmless(job, settings)
        others = [make_table(job, harmless) for _ in job.parties[1:]]
        if settings.client_level:  # a party without records is one that is not there
            without: Records = ArrayRecords(np.zeros((0, job.dimensions)))
            present = make_table(job, rows)
        else:
            without = make_table(job, harmless)
            present = make_table(job, np.vstack([harmless, rows]))
        return {Neighbour.WITHOUT: (without, *others), Neighbour.WITH: (present, *others)}

    def run(self, side: Neighbour, runs: int, stream: Stream) -> IntArray:
        """Return what the second party makes of what a leader reads, one row per run."""
        roles = range(self.agreed.agreement.settings.parties + 1)
        samplers = [KeptNoise(stream.child("noise", role)) for role in roles]
        entropies = [stream.child("keys", role) for role in roles]
        tables = list(self._tables[side])
        return np.array([self.run_once(tables, samplers, entropies) for _ in range(runs)])

    def run_once(self, tables: list[Records], samplers: list[KeptNoise], entropies: list[Stream]) -> IntArray:
        """Return what the second party makes of one session; samplers and entropies begin with the coordinator's."""
        protocol, agreement = self._protocol, self.agreed.agreement
        session = entropies[0].bytes(16)
        known = [sampler.start() for sampler in samplers]
        own = None if len(tables) == 1 else known[ADVERSARY]  # of one table, the adversary sees the result alone
        budget = agreement.settings.budget
        watch = Watch(self.agreed.algorithm)
        watched = replace(self.agreed, algorithm=watch)
        parties = [
            protocol.seat(
                watched,
                Seat(
                    number=number,
                    identity=self._identities[number - 1],
                    entropy=entropies[number],
                    session=session,
                ),
                OwnInput(records=table),
                duty=NoiseDuty(charger=Accountant(budget, plan=self.agreed.plan), sampler=samplers[number]),
            )
            for number, table in enumerate(tables, start=1)
        ]
        leader = parties[0]  # whoever leads reads all totals, and any party may: the adversary is given them
        assert isinstance(leader, GuidedParty | LoneParty)
        if isinstance(leader, LoneParty):
            leader.work()
        else:
            duty = NoiseDuty(charger=NoBooks(), sampler=samplers[0]) if agreement.by_coordinator else None
            coordinator = protocol.coordinate(watched, session=session, entropy=entropies[0], duty=duty)
            run_local(coordinator, parties, codec=protocol.codec(watched), session=session, threads=1)
        totals = leader.released_totals
        if own:
            totals = tuple(total - noise for total, noise in zip(totals, own, strict=True))
        return self.unit.read(watch.queries, totals)


class Watch:
    """The algorithm, with a record of its queries."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.queries: list[Query] = []

    def __call__(self, settings: GuidedSettings, stream: Stream) -> Asking[Any]:
        """Run it."""
        self.queries.clear()
        return relay(self._pipeline(settings, stream), self._keep)

    def _keep(self, query: Query) -> Query:
        self.queries.append(query)
        return query


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenUnit:
    """What the adversary knows.

    Parameters
    ----------
    settings
        Public: the noise of each round.
    others
        The records of every party whose records are the same on both inputs.
    without, present
        The records of the party whose records differ, on either input.
    """

    settings: GuidedSettings
    others: tuple[Records, ...]
    without: Records
    present: Records

    def read(self, queries: Sequence[Query], totals: Sequence[IntArray]) -> IntArray:
        """Return one run's view: the score of all rounds, that of each, and the first entries of each slot."""
        scores, entries = [], []
        for query, total, slot in zip(queries, totals, self.settings.slots, strict=True):
            rest, without = total.copy(), query.measure(self.without)
            rest[: query.length] -= sum((query.measure(records) for records in self.others), start=without)
            v = (query.measure(self.present) - without).astype(np.float64)
            scores.append(_FRACTION * self._score(rest[: query.length].astype(np.float64), v, slot))
            entries.append(rest[:_RAW_ENTRIES])
        rounded = np.rint([sum(scores), *scores]).astype(np.int64)
        return np.concatenate([rounded, *entries])

    def _score(self, x: FloatArray, v: FloatArray, slot: Slot) -> float:
        """The logarithm of the likelihood ratio; of shared noise, of a Gaussian with its variance."""
        noise = self.settings.noise_in(slot)
        if isinstance(noise, DiscreteLaplace):
            return float((np.abs(x) - np.abs(x - v)).sum() / noise.scale)
        return float(x @ v - v @ v / 2) / self.settings.placement.total_variance(noise)


def name_entries(slots: Sequence[Slot]) -> Iterator[str]:
    """Yield the names of a view's entries, in order."""
    yield "likelihood ratio of all rounds"
    for slot in slots:
        yield f"likelihood ratio of {slot.name!r}"
    for slot in slots:
        for entry in range(1, min(slot.length, _RAW_ENTRIES) + 1):
            yield f"{slot.name!r}, number {entry}"
