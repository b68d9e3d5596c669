"""Attacks on a whole job: real tables, roles, messages, masks and noise; what another party reads is what is judged.

Two made-up tables differ by one record of the first party. Every party holds one harmless record besides, in the middle
of the domain. The adversary is the second party: it reads the noisy totals of every round, and subtracts whatever noise
it added itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.audit.claims import Claim, Neighbour
from cloister.audit.harness import Attack
from cloister.audit.worst_cases import entry_labels
from cloister.crypto import Identity, SeededEntropy, Stream
from cloister.data import Table, open_table
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import Noise, OnProgress
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocols.multiparty_lloyd import CODEC, Agreement, LloydParty, NoisePlan, coordinate
from cloister.runtime import run_local
from cloister.simulation import make_agreement

_ADVERSARY = 2
_SESSIONS_AT_ONCE = 100  # about a second
_FAR_OUTSIDE = 10.0  # widths of a column: a record that must be clipped


@dataclass(frozen=True, kw_only=True)
class JobUnderAudit:
    """A job's attacks, and what it claims."""

    attacks: tuple[Attack, ...]
    claim: Claim


def prepare_audit(job: Job) -> JobUnderAudit:
    """Build the attacks on a differentially private job.

    Raises
    ------
    ConfigError
        If the job claims nothing.
    """
    if job.budget is None:
        raise ConfigError(
            f"an audit must have a claim to refute; got the protocol {job.protocol.name} without a [budget]. "
            "Audit a differentially private job."
        )
    identities = tuple(Identity(SeededEntropy(0, f"identity {party.name}")) for party in job.parties)
    agreement = make_agreement(job, tuple(identity.public_bytes for identity in identities))
    assert agreement.noise is not None
    plan = agreement.noise
    books = Accountant(plan.budget)
    spent = books.would_spend(plan.release_of(t) for t in range(1, agreement.iterations + 1))
    low = np.array([column.low for column in job.columns])
    high = np.array([column.high for column in job.columns])
    outside = high + _FAR_OUTSIDE * (high - low)
    records = {
        "one more record, at a corner of the domain": high,
        "one more record, far outside the domain": outside,
    }
    labels = entry_labels(agreement.dimensions, clusters=agreement.clusters, rounds=agreement.iterations)
    return JobUnderAudit(
        attacks=tuple(
            Attack(
                name=name,
                run=_Sessions(job, agreement, plan, identities, record).run,
                labels=labels,
                most_at_once=_SESSIONS_AT_ONCE,
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
        record: NDArray[np.float64],
    ) -> None:
        self._agreement = agreement
        self._plan = plan
        self._identities = identities
        middle = np.array([[(column.low + column.high) / 2 for column in job.columns]])
        self._others = [_make_table(job, middle) for _ in job.parties[1:]]
        self._first = {
            Neighbour.WITHOUT: _make_table(job, middle),
            Neighbour.WITH: _make_table(job, np.vstack([middle, record])),
        }

    def run(self, side: Neighbour, runs: int, stream: Stream) -> NDArray[np.int64]:
        """Return what the second party reads, one row a run."""
        samplers = [_KeptNoise(stream.child("noise", role)) for role in range(self._agreement.parties + 1)]
        entropies = [stream.child("keys", role) for role in range(self._agreement.parties + 1)]
        tables = [self._first[side], *self._others]
        return np.array([self._run_once(tables, samplers, entropies) for _ in range(runs)])

    def _run_once(self, tables: list[Table], samplers: list[_KeptNoise], entropies: list[Stream]) -> NDArray[np.int64]:
        session = entropies[0].bytes(16)
        own = samplers[_ADVERSARY].start()
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
        totals = np.concatenate([total.ravel() for total in parties[_ADVERSARY - 1].released_totals])
        return totals - np.concatenate(own) if own else totals


class _KeptNoise:
    """A sampler that remembers what it drew since :meth:`start`: its holder knows its own noise."""

    is_simulation = True

    def __init__(self, stream: Stream) -> None:
        self._sampler = SimulationSampler(stream)
        self._drawn: list[NDArray[np.int64]] = []

    def start(self) -> list[NDArray[np.int64]]:
        """Forget what was drawn; the list fills from now on."""
        self._drawn = []
        return self._drawn

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> NDArray[np.int64]:
        """Draw and remember."""
        noise = self._sampler.draw(mechanism, entries)
        self._drawn.append(noise)
        return noise


def _make_table(job: Job, rows: NDArray[np.float64]) -> Table:
    table = open_table(rows, job.columns, fixed_point=FixedPoint(job.protocol.fractional_bits))
    table.check()
    return table
