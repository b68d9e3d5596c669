"""Attacks on multiparty Lloyd with noise.

Two made-up tables differ by one record of the first party. Every party holds one harmless record besides, in the middle
of the domain. The adversary reads the noisy totals of every round, and subtracts whatever noise it added itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
from cloister.audit.claims import Claim, Neighbour
from cloister.audit.harness import Attack
from cloister.audit.worst_cases import entry_labels
from cloister.crypto import Identity, Stream
from cloister.data import Table
from cloister.job import Job
from cloister.kmeans.records import FloatArray
from cloister.privacy.accounting import Accountant
from cloister.privacy.release import NoiseDuty
from cloister.protocols.multiparty_lloyd import CODEC, Agreement, LloydParty, NoisePlan, coordinate
from cloister.runtime import run_local
from cloister.simulation import make_agreement


def prepare_lloyd(job: Job, identities: tuple[Identity, ...]) -> JobUnderAudit:
    """Build the attacks on a job of multiparty Lloyd with a budget."""
    agreement = make_agreement(job, tuple(identity.public_bytes for identity in identities))
    assert agreement.noise is not None
    plan = agreement.noise
    books = Accountant(plan.budget)
    spent = books.would_spend(plan.release_of(t) for t in range(1, agreement.iterations + 1))
    records = {
        "one more record, at a corner of the domain": find_corner(job),
        "one more record, far outside the domain": find_far_outside(job),
    }
    labels = entry_labels(agreement.dimensions, clusters=agreement.clusters, rounds=agreement.iterations)
    return JobUnderAudit(
        attacks=tuple(
            Attack(
                name=name,
                run=_Sessions(job, agreement, plan, identities, record).run,
                labels=labels,
                most_at_once=SESSIONS_AT_ONCE,
            )
            for name, record in records.items()
        ),
        claim=Claim(epsilon=plan.budget.epsilon, delta=plan.budget.delta, rho=spent.rho),
    )


class _Sessions:
    """Runs a job's protocol over and over on two neighbouring inputs."""

    def __init__(
        self,
        job: Job,
        agreement: Agreement,
        plan: NoisePlan,
        identities: tuple[Identity, ...],
        record: FloatArray,
    ) -> None:
        self._agreement = agreement
        self._plan = plan
        self._identities = identities
        middle = find_middle(job)[None, :]
        self._others = [make_table(job, middle) for _ in job.parties[1:]]
        self._first = {
            Neighbour.WITHOUT: make_table(job, middle),
            Neighbour.WITH: make_table(job, np.vstack([middle, record])),
        }

    def run(self, side: Neighbour, runs: int, stream: Stream) -> NDArray[np.int64]:
        """Return what the second party reads, one row a run."""
        samplers = [KeptNoise(stream.child("noise", role)) for role in range(self._agreement.parties + 1)]
        entropies = [stream.child("keys", role) for role in range(self._agreement.parties + 1)]
        tables = [self._first[side], *self._others]
        return np.array([self._run_once(tables, samplers, entropies) for _ in range(runs)])

    def _run_once(self, tables: list[Table], samplers: list[KeptNoise], entropies: list[Stream]) -> NDArray[np.int64]:
        session = entropies[0].bytes(16)
        own = samplers[ADVERSARY].start()
        duties = [NoiseDuty(charger=Accountant(self._plan.budget), sampler=sampler) for sampler in samplers]
        parties = [
            LloydParty(
                number=number,
                agreement=self._agreement,
                records=table,
                identity=self._identities[number - 1],
                entropy=entropies[number],
                session=session,
                duty=duties[number],
            )
            for number, table in enumerate(tables, start=1)
        ]
        duty = duties[0] if self._plan.by_coordinator else None
        coordinator = coordinate(self._agreement, entropy=entropies[0], session=session, duty=duty)
        run_local(coordinator, parties, codec=CODEC, session=session, threads=1)
        totals = np.concatenate([total.ravel() for total in parties[ADVERSARY - 1].released_totals])
        return totals - np.concatenate(own) if own else totals
