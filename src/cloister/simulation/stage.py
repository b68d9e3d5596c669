"""The stage that a job is played on: tables, identities, a session; and what a play leaves, whatever the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from cloister.crypto import Entropy, Identity, make_entropy
from cloister.data import Table, TableCheck, open_table
from cloister.errors import LocalProtocolError, PrecisionError
from cloister.job import Job
from cloister.numeric import FixedPoint
from cloister.privacy.card import PrivacyCard
from cloister.protocol import LeakageTable
from cloister.protocols.vertical.settings import VERTICAL
from cloister.records import FloatArray
from cloister.report.labels import PartyLabels
from cloister.report.result import CellBook, KChoice
from cloister.roles import Coordinator, Party, Result
from cloister.runtime import NETWORKS, LocalRun, run_local
from cloister.runtime.local import OnProgress
from cloister.simulation.sources import check_source_names, find_source
from cloister.simulation.vertical_tables import VerticalTables, open_vertical_tables
from cloister.wire import Codec

OnTable = Callable[[str, TableCheck], None]
"""Told what a party's table holds; it describes that party's records and is for that party's eyes."""
OnLabels = Callable[[PartyLabels], None]
"""Told the labels of a party that is granted them; for that party's eyes."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What every protocol is given: one table and one identity a party, and a session.

    Attributes
    ----------
    job
        What was agreed.
    tables, identities
        In the order of the job's parties; a vertical job's tables are in ``vertical`` instead.
    session
        Which session this is.
    sources
        Tables by party name in place of the job's files.
    on_progress
        Told about each step.
    vertical
        The aligned columns of a vertical job.
    """

    job: Job
    tables: tuple[Table, ...]
    identities: tuple[Identity, ...]
    session: bytes
    sources: Mapping[str, object] = field(default_factory=dict)
    on_progress: OnProgress | None = None
    vertical: VerticalTables | None = None

    @property
    def directory(self) -> tuple[bytes, ...]:
        """The parties' public identities."""
        return tuple(identity.public_bytes for identity in self.identities)

    def make_entropy(self, role: str) -> Entropy:
        """Where a role's keys come from: the operating system, or the job's seed."""
        return make_entropy(role, seed=self.job.seed)

    def run(self, coordinator: Coordinator[Result], parties: Sequence[Party], codec: Codec) -> LocalRun[Result]:
        """Run the session to its end."""
        return run_local(
            coordinator,
            parties,
            codec=codec,
            session=self.session,
            names=[party.name for party in self.job.parties],
            network=None if self.job.network is None else NETWORKS[self.job.network],
            network_seed=self.job.seed or 0,
            on_progress=self.on_progress,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Played:
    """What a protocol leaves on the stage.

    Attributes
    ----------
    run
        Traffic, transcript and times.
    centres
        In [-1, 1]^d, the same at every party that finished.
    rounds
        Rounds of Lloyd's algorithm.
    leakage, public, breaks_if
        Who learned what; what everyone knows; which coalition breaks it.
    ring_bits
        None where nothing was masked in a ring.
    fractional_bits
        Of the coordinates, where that is not the job's.
    card, notes
        What is promised, and what the reader must know besides.
    middleman
        Whoever stands between the parties: the coordinator, or a relay.
    cluster_records, cluster_records_noise, released_records, curve, codebooks
        As in ``report.result.Result``.
    labels
        What the job hands to some parties besides, each for that party's eyes.
    """

    run: LocalRun[Any]
    centres: FloatArray
    rounds: int
    leakage: LeakageTable
    public: str
    breaks_if: str
    ring_bits: int | None
    fractional_bits: int | None = None
    card: PrivacyCard | None = None
    notes: tuple[str, ...] = ()
    middleman: str = "coordinator"
    cluster_records: tuple[float, ...] = ()
    cluster_records_noise: float | None = None
    released_records: float | None = None
    curve: tuple[KChoice, ...] = ()
    codebooks: tuple[CellBook, ...] = ()
    labels: tuple[PartyLabels, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Walked:
    """What the rounds of multiparty Lloyd leave, whoever added up.

    ``released_counts`` are the noisy sizes of the clusters before the last step; None where they were not released.
    """

    run: LocalRun[Any]
    centres: FloatArray
    released_counts: FloatArray | None


class Finisher(Protocol):
    """A party that may have finished."""

    @property
    def finished(self) -> bool:
        """Whether it has the final centres."""

    @property
    def centres(self) -> FloatArray:
        """The final centres."""


def find_common_centres(parties: Sequence[Finisher]) -> FloatArray:
    """Return the centres that the parties ended with; those who stayed to the end must agree to the last bit."""
    found = [party.centres for party in parties if party.finished]
    if not found or any(not np.array_equal(centres, found[0]) for centres in found[1:]):
        raise LocalProtocolError("all parties that finish must have the same centres; they do not: this is a bug.")
    return found[0]


def set_stage(
    job: Job,
    sources: Mapping[str, object],
    *,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
    records_least: int | None = None,
) -> Stage:
    """Open and check every table before anything is sent, and draw who is who.

    ``records_least`` is how many records a vertical job must align, where that is not its number of clusters.
    """
    vertical = None
    if job.protocol.name == VERTICAL:
        vertical = open_vertical_tables(
            job, sources, on_table=on_table, on_progress=on_progress, records_least=records_least
        )
    return Stage(
        job=job,
        tables=() if vertical is not None else _open_tables(job, sources, on_table),
        identities=tuple(Identity(make_entropy(f"identity of {party.name}", seed=job.seed)) for party in job.parties),
        session=make_entropy("session", seed=job.seed).bytes(16),
        sources=sources,
        on_progress=on_progress,
        vertical=vertical,
    )


def _open_tables(job: Job, sources: Mapping[str, object], on_table: OnTable | None) -> tuple[Table, ...]:
    check_source_names(job, sources)
    tables = []
    for party in job.parties:
        found = find_source(job, party, sources)
        table = open_table(
            found.source,
            job.columns,
            fixed_point=FixedPoint(job.protocol.fractional_bits),
            match=job.data.match,
            may_be_empty=job.budget is not None,  # with noise, a refusal would tell whether the last record is there
            label=found.label,
        )
        check = table.check()
        # Only where sums are exact: with noise, an abort would tell records apart.
        if job.budget is None and job.data.max_records is not None and check.records > job.data.max_records:
            raise PrecisionError(
                f"party {party.name!r} must hold at most data.max_records = {job.data.max_records} records, "
                f"the public cap that the ring is chosen for; it holds {check.records}. Raise the cap with all parties."
            )
        if on_table is not None:
            on_table(party.name, check)
        tables.append(table)
    return tuple(tables)
