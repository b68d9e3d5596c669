"""A job in one process: everybody is seated on the local runtime, with the messages they would send.

The roles are the ones that a deployment would run. What only a simulator can do is kept apart and labelled: it holds
every table, so it can compute the loss over all records and compare it with k-means on one joint table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from threading import Lock
from typing import Any

import numpy as np

from cloister.columns import to_original, to_unit
from cloister.crypto import Identity, make_entropy
from cloister.data import Table, open_table
from cloister.errors import ConfigError, LocalProtocolError
from cloister.job import COORDINATOR, Job, Setup
from cloister.numeric import FixedPoint
from cloister.protocol import Finding, LabelSession, Learns, OwnInput, PublicInput, Roles, Story, find_protocol
from cloister.records import FloatArray, Records
from cloister.report.evaluation import evaluate_centres
from cloister.report.labels import PartyLabels
from cloister.report.result import Evaluation, Learned, NetworkTime, PartyTraffic, Result
from cloister.roles import Coordinator, Party, Seat
from cloister.runtime import NETWORKS, LocalRun, run_local
from cloister.runtime.local import Traffic
from cloister.runtime.progress import OnProgress
from cloister.sessions.alignment import Aligned, align_tables
from cloister.sessions.assembly import (
    know_publicly,
    list_books,
    open_session,
    seat_coordinator,
    seat_party,
    take_input,
)
from cloister.sessions.books import JobBooks, prepay
from cloister.sessions.tables import SERVER, OnTable, OwnTable, check_source_names, open_own_table, read_server

OnLabels = Callable[[PartyLabels], None]
"""Told the labels of a party that is granted them; for that party's eyes."""
OnRecords = Callable[[Sequence[Records]], None]
"""Told the records of all parties in [-1, 1]^d: what only a simulator has. For pictures that show them."""


def simulate(
    job: Job | Setup,
    *,
    sources: Mapping[str, object] | None = None,
    seed: int | None = None,
    evaluate: bool = True,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
    on_labels: OnLabels | None = None,
    on_records: OnRecords | None = None,
) -> Result:
    """Run a job and return what its parties would have in their hands afterwards.

    Parameters
    ----------
    job
        What was agreed, with everybody's own side if it came from a job file.
    sources
        Tables by party name (paths, DataFrames, Arrow tables, arrays) in place of files.
    seed
        Makes the run reproducible, and its masks and noise no longer secret.
    evaluate
        Compute the loss over all records and that of k-means on one joint table; a pass or two over every table.
    on_progress, on_table
        Told about each step, and about each party's table once it has been checked.
    on_labels
        Told the labels of each party that the job grants them to. They are in no result.
    on_records
        Told the records of all parties.

    Raises
    ------
    CloisterError
        If the job, a table or the run does not hold what it must. Nothing has been sent when a table is at fault.
    """
    setup = as_setup(job, seed=seed)
    simulation = _Simulation.open(setup, sources or {}, on_progress=on_progress, on_table=on_table)
    clustered = simulation.cluster()
    if on_labels is not None:
        for labels in clustered.labels:
            on_labels(labels)
    evaluation = None
    if evaluate or on_records is not None:
        everything = simulation.join_records()
        if on_records is not None:
            on_records(everything)
        if evaluate:
            evaluation = evaluate_centres(everything, clustered.finding.centres)
    return _make_result(setup, clustered, evaluation)


def label_records(
    result: Result,
    job: Job | Setup,
    *,
    sources: Mapping[str, object] | None = None,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
) -> tuple[PartyLabels, ...]:
    """Label new records with the centres and cells of a result, where columns are at several parties.

    Nothing is charged: labels are not differentially private.

    Parameters
    ----------
    result
        From a run over columns at several parties.
    job
        A job whose tables are the new records: the same columns, bounds and k, split as the result's were, and
        ``labels`` in ``[protocol]``.
    sources, on_progress, on_table
        As in `simulate`.

    Raises
    ------
    ConfigError
        If the job does not fit the result, or grants labels to nobody.
    """
    setup = as_setup(job)
    job = setup.job
    if result.protocol != job.protocol.name or not result.codebooks:
        raise ConfigError(
            f"the result must be of the job's protocol, {job.protocol.name}, with columns at several parties; got "
            f"{result.protocol}. Name a table instead of a job."
        )
    if sorted(job.columns, key=lambda column: column.name) != sorted(result.columns, key=lambda column: column.name):
        raise ConfigError("the job's [columns] must be the result's, with the same bounds; got others.")
    if job.k != result.k:
        raise ConfigError(f"clusters.k must be the result's, {result.k}; got {job.k}.")
    order = [[column.name for column in result.columns].index(column.name) for column in job.columns]
    finding = Finding(
        centres=np.ascontiguousarray(to_unit(result.centres, result.columns)[:, order]),
        rounds=result.rounds,
        codebooks=result.codebooks,
    )
    simulation = _Simulation.open(setup, sources or {}, on_progress=on_progress, on_table=on_table)
    found = simulation.hand_out_labels(finding)
    if found is None:
        raise ConfigError('the job must say who gets labels; got nobody. Write labels = ["PARTY"] in [protocol].')
    return found[1]


def as_setup(job: Job | Setup, *, seed: int | None = None) -> Setup:
    """Return a job with everybody's own side; that of a bare job is what the caller hands in."""
    setup = Setup(job=job) if isinstance(job, Job) else job
    return setup if seed is None else replace(setup, seed=seed)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Clustered:
    """What a clustering session leaves."""

    run: LocalRun[Any]
    finding: Finding
    story: Story
    labels: tuple[PartyLabels, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Simulation:
    """Everybody in one process: tables, identities, and how sessions are run."""

    setup: Setup
    tables: Mapping[str, OwnTable]
    aligned: Aligned | None
    public: PublicInput
    inputs: Mapping[str, OwnInput]
    identities: tuple[Identity, ...]
    on_progress: OnProgress | None

    @classmethod
    def open(
        cls,
        setup: Setup,
        sources: Mapping[str, object],
        *,
        on_progress: OnProgress | None,
        on_table: OnTable | None,
    ) -> _Simulation:
        """Open and check every table before anything is sent, align where the job says so, and draw identities."""
        job = setup.job
        check_source_names(job, sources)
        tables = {party.name: open_own_table(setup, party, sources, on_table) for party in job.parties}
        server = read_server(setup, sources.get(SERVER))
        aligned = align_tables(setup, tables, on_progress)
        public = know_publicly(job, tables, aligned, server)
        return cls(
            setup=setup,
            tables=tables,
            aligned=aligned,
            public=public,
            inputs={name: take_input(job, name, table, aligned, public) for name, table in tables.items()},
            identities=tuple(
                Identity(make_entropy(f"identity of {party.name}", seed=setup.seed)) for party in job.parties
            ),
            on_progress=on_progress,
        )

    @property
    def directory(self) -> tuple[bytes, ...]:
        return tuple(identity.public_bytes for identity in self.identities)

    def cluster(self) -> _Clustered:
        """Run the clustering session, and the one that hands out labels."""
        setup, seed = self.setup, self.setup.seed
        session = open_session(
            setup.job, self.directory, self.public, session=make_entropy("session", seed=seed).bytes(16)
        )
        protocol, charges, leakage = session.protocol, session.charges, session.protocol.leakage(session.agreed)
        with ExitStack() as stack:
            cache = protocol.make_cache(session.agreed, Lock())
            seated = [
                seat_party(session, self._seat(number, session.id), own, setup.own_side(name), seed=seed, cache=cache)
                for number, (name, own) in enumerate(self.inputs.items(), start=1)
            ]
            coordinator, duty = seat_coordinator(session, make_entropy(COORDINATOR, seed=seed), seed=seed)
            books = None
            if charges is not None:
                books = JobBooks(
                    charges=charges,
                    breaks_if=leakage.breaks_if,
                    parties=list_books(seated),
                    coordinator=duty,
                    seeded=seed is not None,
                )
                stack.callback(books.close)
                prepay(books.parties, charges.prepaid)
            parties = [one.role for one in seated]
            for party in parties:
                stack.callback(protocol.close, party)  # keys are wiped also where the session is given up
            run = self._run(protocol, session.agreed, coordinator, parties, session.id)
            findings = [protocol.find(session.agreed, party, run.result) for party in parties]
            finding = _find_common([found for found in findings if found is not None])
            story = protocol.tell(
                session.job, session.agreed, finding, run.result, None if books is None else books.make_card
            )
        story = replace(story, notes=(*session.notes, *story.notes, *self._describe_alignment()))
        labelled = self.hand_out_labels(finding)
        if labelled is None:
            return _Clustered(run=run, finding=finding, story=story, labels=())
        return _Clustered(run=_join_runs(run, labelled[0]), finding=finding, story=story, labels=labelled[1])

    def hand_out_labels(self, finding: Finding) -> tuple[LocalRun[Any], tuple[PartyLabels, ...]] | None:
        """Run the session in which parties get the labels of their records; None where nobody is granted any."""
        job, seed = self.setup.job, self.setup.seed
        labelling = find_protocol(job).label_session(job, self.directory, self.public, finding)
        if labelling is None:
            return None
        session = make_entropy("session for labels", seed=seed).bytes(16)
        with ExitStack() as stack:
            parties = [
                labelling.roles.seat(labelling.agreed, self._seat(number, session, "labels: "), own)
                for number, own in enumerate(self.inputs.values(), start=1)
            ]
            for party in parties:
                stack.callback(labelling.roles.close, party)
            coordinator = labelling.roles.coordinate(
                labelling.agreed, session=session, entropy=make_entropy(f"labels: {COORDINATOR}", seed=seed)
            )
            run = self._run(labelling.roles, labelling.agreed, coordinator, parties, session)
        return run, tuple(self._name_labels(labelling, number, parties[number - 1]) for number in labelling.granted)

    def join_records(self) -> Sequence[Table]:
        """Return whole records in the job's column order: what only a simulator can."""
        job = self.setup.job
        if job.protocol.facts.split == "rows":
            return [table.table for table in self.tables.values() if table.table is not None]
        joined = np.empty((self.public.records or 0, len(job.columns)))
        positions = {column.name: i for i, column in enumerate(job.columns)}
        for party in job.parties:
            held = [positions[column.name] for column in job.find_columns(party)]
            if held:
                joined[:, held] = np.concatenate(list(self.inputs[party.name].records.batches()))
        grid = FixedPoint(job.protocol.grid_bits)
        label = "the columns of all parties"
        return [open_table(to_original(joined, job.columns), job.columns, fixed_point=grid, label=label)]

    def _seat(self, number: int, session: bytes, prefix: str = "") -> Seat:
        return Seat(
            number=number,
            identity=self.identities[number - 1],
            entropy=make_entropy(f"{prefix}party {number}", seed=self.setup.seed),
            session=session,
        )

    def _run(
        self, roles: Roles[Any], agreed: Any, coordinator: Coordinator[Any], parties: Sequence[Party], session: bytes
    ) -> LocalRun[Any]:
        network = self.setup.network
        return run_local(
            coordinator,
            parties,
            codec=roles.codec(agreed),
            session=session,
            names=[party.name for party in self.setup.job.parties],
            network=None if network is None else NETWORKS[network],
            network_seed=self.setup.seed or 0,
            on_progress=self.on_progress,
        )

    def _describe_alignment(self) -> tuple[str, ...]:
        if self.aligned is not None and self.aligned.run is not None:
            return (
                "IDs were aligned privately first: what that told whom is in docs/align.md, and its messages are not "
                "in the traffic.",
            )
        if self.aligned is None and self.setup.job.protocol.facts.split == "columns":
            return ("Rows were taken to be in the same order at all parties, as the job says; nothing can check that.",)
        return ()

    def _name_labels(self, labelling: LabelSession, number: int, party: Party) -> PartyLabels:
        """Put one party's labels in the order of its table, each with its ID or row."""
        name = self.setup.job.parties[number - 1].name
        table, labels = self.tables[name], labelling.read(party)
        rows = np.arange(len(labels)) if self.aligned is None else self.aligned.alignments[name].rows
        order = np.argsort(rows, kind="stable")
        own_rows = rows[order].tolist()
        cells = table.id_cells
        keys: list[object] = [row + 1 for row in own_rows] if cells is None else [cells[row] for row in own_rows]
        key_name = self.setup.job.data.id or "row"
        return PartyLabels(party=name, key_name=key_name, keys=keys, labels=labels[order])


def _find_common(found: Sequence[Finding]) -> Finding:
    """Return what the parties ended with; those who stayed to the end must agree to the last bit."""
    if not found or any(not np.array_equal(one.centres, found[0].centres) for one in found[1:]):
        raise LocalProtocolError("all parties that finish must have the same centres; they do not: this is a bug.")
    return found[0]


def _join_runs(first: LocalRun[Any], second: LocalRun[Any]) -> LocalRun[Any]:
    """Return two sessions of the same parties as one: what they took together; its outcome is the first one's."""
    both = {
        party: Traffic(
            **{name: count + getattr(second.traffic[party], name) for name, count in asdict(traffic).items()}
        )
        for party, traffic in first.traffic.items()
    }
    transcripts = bytes.fromhex(first.transcript_sha256 + second.transcript_sha256)
    return replace(
        first,
        steps=first.steps + second.steps,
        traffic=both,
        transcript_sha256=hashlib.sha256(transcripts).hexdigest(),
        network_s=None if first.network_s is None else first.network_s + (second.network_s or 0.0),
        rejected=(*first.rejected, *second.rejected),
    )


def _make_result(setup: Setup, clustered: _Clustered, evaluation: Evaluation | None) -> Result:
    job, story, finding = setup.job, clustered.story, clustered.finding
    seeded = f"Made with seed {setup.seed}: reproducible, and whoever knows the seed can remove every mask."
    return Result(
        name=job.name,
        protocol=job.protocol.name,
        variant=job.protocol.variant_in_words,
        columns=job.columns,
        centres=to_original(finding.centres, job.columns),
        rounds=finding.rounds,
        parties=_list_traffic(job, clustered.run),
        leakage=_list_learned(story),
        breaks_if=story.leakage.breaks_if,
        transcript_sha256=None if setup.seed is None else clustered.run.transcript_sha256,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        cloister_version=version("cloister"),
        fractional_bits=job.protocol.grid_bits if story.fractional_bits is None else story.fractional_bits,
        ring_bits=story.ring_bits,
        seeded=setup.seed is not None,
        evaluation=evaluation,
        network=None
        if setup.network is None
        else NetworkTime(model=setup.network, simulated_s=clustered.run.network_s or 0.0),
        notes=story.notes if setup.seed is None else (*story.notes, seeded),
        card=story.card,
        cluster_records=finding.cluster_records,
        cluster_records_noise=finding.cluster_records_noise,
        released_records=finding.released_records,
        curve=finding.curve,
        codebooks=finding.codebooks,
    )


def _list_traffic(job: Job, run: LocalRun[Any]) -> tuple[PartyTraffic, ...]:
    return tuple(
        PartyTraffic(
            name=party.name,
            bytes_sent=traffic.bytes_sent,
            bytes_received=traffic.bytes_received,
            messages_sent=traffic.messages_sent,
            messages_received=traffic.messages_received,
            rounds_missed=traffic.steps_missed,
        )
        for party, traffic in zip(job.parties, run.traffic.values(), strict=True)
    )


def _list_learned(story: Story) -> tuple[Learned, ...]:
    """The leakage table in words, one line for each role and degree."""
    flawed = story.card is not None and bool(story.card.flaw)
    rows = []
    for (role, learns), group in groupby(story.leakage.rows, key=lambda row: (row.role, row.learns)):
        name = {"coordinator": f"the {story.middleman}", "party": "each party"}[role]
        how = "with noise that proves nothing" if flawed and learns is Learns.NOISY else learns.value
        rows.append(Learned(role=name, what="; ".join(row.meaning for row in group), how=how))
    note = f"public; see {story.leakage.source}"
    return (*rows, Learned(role="everyone", what=story.public, how="exactly", note=note))
