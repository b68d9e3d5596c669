"""Attacks on multiparty Lloyd with noise, FastLloyd and its published variants among it.

Two made-up tables differ by one record of the first party. The adversary reads the noisy totals of every round and
subtracts whatever noise it added itself, and what all other records add: it knows them, and every round's centres. What
is left is noise, and maybe one record's part v; of these it makes the likelihood ratio (Neyman and Pearson).

The first centres are fixed, and known to it: they are public and do not depend on records, so a claim must hold for all
of them. Where each record joins its nearest centre, every party holds one harmless record in the middle of the domain.
Under size constraints the first party holds a chain (:mod:`~cloister.audit.assignment_chain`), with as few records as
show it: sizes are in proportion to the number of records, so that fewer make a claim no easier to refute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from cloister.audit.adversary import (
    ADVERSARY,
    SESSIONS_AT_ONCE,
    JobUnderAudit,
    KeptNoise,
    find_corner,
    find_far_outside,
    find_middle,
    make_table,
)
from cloister.audit.assignment_chain import build_chain
from cloister.audit.claims import Claim, Neighbour
from cloister.audit.harness import Attack
from cloister.crypto import Identity, Stream
from cloister.data import Table, to_original
from cloister.errors import InfeasibleError
from cloister.job import Job
from cloister.kmeans.assignment import DistanceConstrained, Unconstrained
from cloister.privacy.accounting import Accountant
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.protocols.multiparty_lloyd import CODEC, Agreement, LloydParty, NoisePlan, coordinate
from cloister.protocols.multiparty_lloyd.rules import Last
from cloister.records import FloatArray, IntArray
from cloister.runtime import run_local
from cloister.simulation import make_agreement, make_assignment
from cloister.simulation.lloyd_plans import make_published_options

_CHAIN_SIZE = 10  # records in a cluster of the chain
_FRACTION = 2.0**20  # scores are handed on as integers


@dataclass(frozen=True, kw_only=True, eq=False)
class _Case:
    """Neighbouring inputs, in the job's units."""

    name: str
    rows: FloatArray
    record: FloatArray
    others: tuple[FloatArray, ...]


def prepare_lloyd(job: Job, identities: tuple[Identity, ...]) -> JobUnderAudit:
    """Build the attacks on a job of multiparty Lloyd with a budget."""
    constrained = not isinstance(make_assignment(job), Unconstrained)
    if constrained:
        job = _declare_fewer(job)
    agreement = make_agreement(job, tuple(identity.public_bytes for identity in identities))
    assert agreement.noise is not None
    plan = agreement.noise
    if plan.placement.sampled_jointly:  # a star has nobody to sample with; one noise of the same law will do
        plan = replace(plan, placement=Aggregator())
    start, cases = _make_chain(job) if constrained else _make_harmless(job, agreement)
    agreement = replace(agreement, noise=plan, initialisation="given", start=tuple(map(tuple, start.tolist())))
    spent = Accountant(plan.budget).would_spend(plan.release_of(t) for t in range(1, agreement.iterations + 1))
    return JobUnderAudit(
        attacks=tuple(
            Attack(
                name=case.name,
                run=LloydSessions(job, agreement, plan, identities, case).run,
                labels=tuple(_name_entries(agreement)),
                most_at_once=SESSIONS_AT_ONCE,
            )
            for case in cases
        ),
        flaw=plan.flaw,
        claim=Claim(epsilon=plan.budget.epsilon, delta=plan.budget.delta, rho=spent.rho),
    )


def _make_harmless(job: Job, agreement: Agreement) -> tuple[FloatArray, list[_Case]]:
    """Every party holds one record in the middle; the first maybe one more."""
    middle = find_middle(job)[None, :]
    records = {
        "one more record, at a corner of the domain": find_corner(job),
        "one more record, far outside the domain": find_far_outside(job),
    }
    others = (middle,) * (agreement.parties - 1)
    start = agreement.draw_start(Stream.from_seed(0, "audit", "start"))
    return start, [_Case(name=name, rows=middle, record=row, others=others) for name, row in records.items()]


def _declare_fewer(job: Job) -> Job:
    """The same published variant for as many records as a chain needs, with as many rounds as it has now."""
    assert job.budget is not None
    options = make_published_options(job)
    enough = math.floor(len(job.parties) * _CHAIN_SIZE * options.records / options.size_min)
    return replace(
        job,
        data=replace(job.data, records=min(options.records, max(enough, job.k)), max_records=None),
        protocol=replace(job.protocol, iterations=options.count_rounds(job.budget.epsilon)),
    )


def _make_chain(job: Job) -> tuple[FloatArray, list[_Case]]:
    """A chain at the first party; the others hold what is left of the declared records, spread over the clusters."""
    options = make_published_options(job)
    size, most = options.local_sizes
    reach = options.make_radii(1)[0] if options.kind == "distance-constrained" else math.inf
    chain = build_chain(job.k, options.dimensions, size=size, reach=reach)
    left = math.ceil((options.records - len(chain.rows)) / (options.parties - 1))
    held = min(max(left, job.k * size), job.k * most)
    spread = to_original(chain.start[np.arange(held) % job.k], job.columns)
    case = _Case(
        name="one more record, at the end of a chain of clusters that cannot be smaller",
        rows=to_original(chain.rows, job.columns),
        record=to_original(chain.record[None, :], job.columns)[0],
        others=(spread,) * (options.parties - 1),
    )
    return chain.start, [case]


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

    def __init__(
        self, job: Job, agreement: Agreement, plan: NoisePlan, identities: tuple[Identity, ...], case: _Case
    ) -> None:
        self._agreement = agreement
        self._plan = plan
        self._identities = identities
        self._assignment = make_assignment(job)
        self._others = [make_table(job, rows) for rows in case.others]
        self._first = {
            Neighbour.WITHOUT: make_table(job, case.rows),
            Neighbour.WITH: make_table(job, np.vstack([case.rows, case.record])),
        }

    def run(self, side: Neighbour, runs: int, stream: Stream) -> IntArray:
        """Return what the second party makes of what it reads, one row a run."""
        samplers = [KeptNoise(stream.child("noise", role)) for role in range(self._agreement.parties + 1)]
        entropies = [stream.child("keys", role) for role in range(self._agreement.parties + 1)]
        tables = [self._first[side], *self._others]
        return np.array([self._run_once(tables, samplers, entropies) for _ in range(runs)])

    def _run_once(self, tables: list[Table], samplers: list[KeptNoise], entropies: list[Stream]) -> IntArray:
        session = entropies[0].bytes(16)
        own = [sampler.start() for sampler in samplers][ADVERSARY]
        duties = [NoiseDuty(charger=Accountant(self._plan.budget), sampler=sampler) for sampler in samplers]
        parties = [
            LloydParty(
                number=number,
                agreement=self._agreement,
                records=table,
                identity=self._identities[number - 1],
                entropy=entropies[number],
                session=session,
                assignment=self._assignment,
                duty=duties[number],
            )
            for number, table in enumerate(tables, start=1)
        ]
        duty = duties[0] if self._plan.by_coordinator else None
        coordinator = coordinate(self._agreement, entropy=entropies[0], session=session, duty=duty)
        # A party whose records fit no constraints stops the run, for all to see. With a thread for each party, the
        # others have read the last total by then.
        threads = len(parties) if isinstance(self._assignment, DistanceConstrained) else 1
        with suppress(InfeasibleError):
            run_local(coordinator, parties, codec=CODEC, session=session, threads=threads)
        return self._read(parties[ADVERSARY - 1].released_totals, own)

    def _read(self, totals: Sequence[IntArray], own: Sequence[IntArray]) -> IntArray:
        """The score of all rounds, how many there were, and what is left of each total; zeros where there is none."""
        agreement, score = self._agreement, 0.0
        left = np.zeros((agreement.iterations, agreement.clusters, agreement.rule.width), dtype=np.int64)
        centres = np.array(agreement.start)
        last: Last = None
        for round_, total in enumerate(totals, start=1):
            with suppress(InfeasibleError):  # on the other input only
                first = {side: self._contribute(table, centres, round_, last) for side, table in self._first.items()}
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

    def _contribute(self, table: Table, centres: FloatArray, round_: int, last: Last) -> IntArray:
        return self._agreement.rule.contribute(table, centres, round_, self._assignment, last)

    def _weigh(self, rest: IntArray, part: IntArray, round_: int) -> float:
        """Return log p(rest - v) / p(rest) for the noise that was agreed on, v the record's part."""
        target, v = self._plan.target_of(round_), part.astype(np.float64)
        if isinstance(target, DiscreteLaplace):
            return float((np.abs(rest) - np.abs(rest - v)).sum() / target.scale)
        return float(((rest * v).sum() - np.square(v).sum() / 2) / target.sigma**2)
