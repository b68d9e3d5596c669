"""Attacks on Lloyd's rounds with noise.

Two made-up inputs differ by one record of the first party, or by one person. The adversary reads the noisy totals of
every round and subtracts any noise that it added itself and what all other records add, since it knows them and all
centres. What is left is noise and maybe one unit's part v, on which it computes the likelihood ratio (Neyman and
Pearson).

The first centres are fixed and known to it: they are public and do not depend on records, so a claim must hold for all
of them. If each record joins its nearest centre, every party holds one harmless record in the middle of the domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

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
from cloister.crypto import Stream
from cloister.errors import AbsentError, InfeasibleError
from cloister.job import Job
from cloister.kmeans import DistanceConstrained
from cloister.privacy.accounting import Accountant
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import PersonBudget
from cloister.protocol import OwnInput, Roles
from cloister.protocols.multiparty_lloyd.agreement import Agreement, LloydSession
from cloister.protocols.multiparty_lloyd.party import LloydParty
from cloister.protocols.multiparty_lloyd.rules import Last
from cloister.records import FloatArray, IntArray, Records
from cloister.roles import Seat
from cloister.runtime import run_local

_PERSONS = 8  # besides the canary, at each party
_FRACTION = 2.0**20  # scores are passed on as integers, in units of 1 / 2^20


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbours:
    """Two inputs that differ by one record of the first party, or by one person: every party's records on each."""

    name: str
    tables: Mapping[Neighbour, tuple[Records, ...]]

    @classmethod
    def of_record(
        cls, name: str, job: Job, *, rows: FloatArray, record: FloatArray, others: Sequence[FloatArray]
    ) -> Neighbours:
        """Return inputs that differ by a record of the first party; all in the job's units."""
        same = [make_table(job, table) for table in others]
        without, present = make_table(job, rows), make_table(job, np.vstack([rows, record]))
        return cls(name=name, tables={Neighbour.WITHOUT: (without, *same), Neighbour.WITH: (present, *same)})


def make_harmless(job: Job, agreement: Agreement) -> tuple[FloatArray, list[Neighbours]]:
    """Return first centres, and inputs in which every party holds one record in the middle, and one perhaps another.

    For persons, in which every party holds a few of them, and some a canary.
    """
    start = agreement.draw_start(Stream.from_seed(0, "audit", "start"))
    if isinstance(job.budget, PersonBudget):
        return start, [
            Neighbours(name=name, tables=make_persons(job, rows, others=_PERSONS))
            for name, rows in list_canaries(job).items()
        ]
    middle = find_middle(job)[None, :]
    records = {
        "one more record, at a corner of the domain": find_corner(job),
        "one more record, far outside the domain": find_far_outside(job),
    }
    others = (middle,) * (agreement.parties - 1)
    return start, [
        Neighbours.of_record(name, job, rows=middle, record=row, others=others) for name, row in records.items()
    ]


def attack_rounds(
    roles: Roles[LloydSession], job: Job, agreed: LloydSession, start: FloatArray, inputs: Sequence[Neighbours]
) -> JobUnderAudit:
    """Build the attacks on a job; ``agreed`` is for the identities of `make_identities`.

    Sessions run around a coordinator even if the job's parties form a ring: the sums are the same.
    """
    plan = agreed.agreement.noise
    assert plan is not None
    if plan.placement.sampled_jointly:  # a star cannot sample jointly; noise of the same distribution replaces it
        plan = replace(plan, placement=Aggregator())
    agreement = replace(agreed.agreement, noise=plan, initialisation="given", start=tuple(map(tuple, start.tolist())))
    agreed = replace(agreed, agreement=agreement, terms=None)
    return JobUnderAudit(
        attacks=tuple(
            Attack(
                name=one.name,
                run=LloydSessions(roles, job, agreed, one).run,
                labels=tuple(_name_entries(agreement)),
                most_at_once=SESSIONS_AT_ONCE,
            )
            for one in inputs
        ),
        flaw=plan.flaw,
        claim=Claim(
            epsilon=plan.budget.epsilon,
            delta=plan.budget.delta,
            rho=Accountant(plan.budget).would_spend(plan.releases).rho,
        ),
    )


def _name_entries(agreement: Agreement) -> Iterator[str]:
    """Yield the names of a view's entries, in order; everything counts from 1."""
    yield "likelihood ratio of all rounds"
    yield "number of rounds"
    columns, width = agreement.dimensions, agreement.rule.width
    parts = [f"column {column + 1}" for column in range(columns)] + ["count"] * (width - columns)
    for round_ in range(1, agreement.iterations + 1):
        for cluster in range(1, agreement.clusters + 1):
            yield from (f"round {round_}, cluster {cluster}, {part}" for part in parts)


class LloydSessions:
    """Runs a job's protocol over and over on two neighbouring inputs."""

    def __init__(self, roles: Roles[LloydSession], job: Job, agreed: LloydSession, inputs: Neighbours) -> None:
        assert agreed.agreement.noise is not None
        self._roles, self._agreed = roles, agreed
        self._agreement, self._plan = agreed.agreement, agreed.agreement.noise
        self._identities = make_identities(job)
        self._tables = inputs.tables
        without, present = (inputs.tables[side] for side in Neighbour)
        held = [number for number, table in enumerate(present) if table is not without[number]]
        self._others = [table for number, table in enumerate(present) if number not in held]
        self._held = {
            side: JoinedRecords(parts=[tables[number] for number in held]) for side, tables in inputs.tables.items()
        }

    def run(self, side: Neighbour, runs: int, stream: Stream) -> IntArray:
        """Return what the second party makes of what it reads, one row per run."""
        samplers = [KeptNoise(stream.child("noise", role)) for role in range(self._agreement.parties + 1)]
        entropies = [stream.child("keys", role) for role in range(self._agreement.parties + 1)]
        tables = list(self._tables[side])
        return np.array([self._run_once(tables, samplers, entropies) for _ in range(runs)])

    def _run_once(self, tables: list[Records], samplers: list[KeptNoise], entropies: list[Stream]) -> IntArray:
        session = entropies[0].bytes(16)
        own = [sampler.start() for sampler in samplers][ADVERSARY]
        duties = [NoiseDuty(charger=Accountant(self._plan.budget), sampler=sampler) for sampler in samplers]
        parties = [
            self._roles.seat(
                self._agreed,
                Seat(
                    number=number,
                    identity=self._identities[number - 1],
                    entropy=entropies[number],
                    session=session,
                ),
                OwnInput(records=table),
                duty=duties[number],
            )
            for number, table in enumerate(tables, start=1)
        ]
        duty = duties[0] if self._plan.by_coordinator else None
        coordinator = self._roles.coordinate(self._agreed, session=session, entropy=entropies[0], duty=duty)
        # A party whose records cannot meet the constraints visibly stops the run. With a thread for each party, the
        # others have read the last total by then.
        threads = len(parties) if isinstance(self._agreed.assignment, DistanceConstrained) else 1
        with suppress(AbsentError):
            run_local(coordinator, parties, codec=self._roles.codec(self._agreed), session=session, threads=threads)
        adversary = parties[ADVERSARY - 1]
        assert isinstance(adversary, LloydParty)
        return self._read(adversary.state.released_totals, own)

    def _read(self, totals: Sequence[IntArray], own: Sequence[IntArray]) -> IntArray:
        """Return the score of all rounds, their number, and what is left of each total; missing ones are zeros."""
        agreement, score = self._agreement, 0.0
        left = np.zeros((agreement.iterations, agreement.clusters, agreement.rule.width), dtype=np.int64)
        centres = np.array(agreement.start)
        last: Last = None
        for round_, total in enumerate(totals, start=1):
            with suppress(InfeasibleError):  # on the other input only
                first = {side: self._contribute(table, centres, round_, last) for side, table in self._held.items()}
                rest = total - first[Neighbour.WITHOUT]
                for table in self._others:
                    rest -= self._contribute(table, centres, round_, last)
                if own:
                    rest -= own[round_ - 1].reshape(total.shape)
                score += self._weigh(rest, first[Neighbour.WITH] - first[Neighbour.WITHOUT], round_)
                left[round_ - 1] = rest
            centres = agreement.rule.move(centres, total, round_=round_, members=agreement.parties, last=last)
            last = total
        return np.concatenate([[round(score * _FRACTION), len(totals)], left.ravel()])

    def _contribute(self, table: Records, centres: FloatArray, round_: int, last: Last) -> IntArray:
        return self._agreement.rule.contribute(table, centres, round_, self._agreed.assignment, last)

    def _weigh(self, rest: IntArray, part: IntArray, round_: int) -> float:
        """Return log p(rest - v) / p(rest) for the noise that was agreed on, v the record's part."""
        target, v = self._plan.target_of(round_), part.astype(np.float64)
        if isinstance(target, DiscreteLaplace):
            return float((np.abs(rest) - np.abs(rest - v)).sum() / target.scale)
        return float(((rest * v).sum() - np.square(v).sum() / 2) / target.sigma**2)
