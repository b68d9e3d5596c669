"""A job in one process: everybody runs on the local runtime and exchanges the messages of a deployment.

The roles are those that a deployment would run. What only a simulator can do is kept separate and labelled: it holds
every table, so it can compute the loss over all records and compare it with k-means on one joint table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Identity, make_entropy
from cloister.data import Table, open_points
from cloister.errors import ConfigError, LocalProtocolError, require_kind
from cloister.job import COORDINATOR, Job, Setup
from cloister.job.refusals import check_choice
from cloister.privacy.books import JobBooks, prepay
from cloister.privacy.ledger import LedgerSession
from cloister.protocol import (
    SERVER,
    Coordinator,
    Explanation,
    Finding,
    OwnInput,
    Party,
    PublicInput,
    Roles,
    Seat,
    find_protocol,
    read_public_input,
)
from cloister.report.evaluation import evaluate_centres
from cloister.report.labels import PartyLabels
from cloister.report.progress import Follow, follow
from cloister.report.result import Evaluation, NetworkTime, Result
from cloister.runtime import NETWORKS, LocalRun, OnProgress, Traffic, run_local
from cloister.sessions.alignment import Aligned, align_tables
from cloister.sessions.alone import is_alone, run_alone, told_if_alone
from cloister.sessions.assembly import (
    know_alignment,
    list_books,
    open_session,
    seat_coordinator,
    seat_party,
    take_input,
)
from cloister.sessions.instruments import Instruments
from cloister.sessions.results import describe_alignment, make_result, name_labels
from cloister.sessions.tables import OnTable, OwnTable, check_source_names, open_own_table

OnLabels = Callable[[PartyLabels], None]
"""Receives the labels of a party that is granted them; only that party may see them."""
OnRecords = Callable[[Sequence[Table]], None]
"""Receives the records of all parties in [-1, 1]^d, which only a simulator has; for pictures that show them."""
OnLedger = Callable[[str, LedgerSession], None]
"""Receives what the run holds of a party's ledger, before it is charged; only that party may see what it states."""


def simulate(
    job: Job | Setup,
    *,
    sources: Mapping[str, object] | None = None,
    seed: int | None = None,
    evaluate: bool | None = None,
    on_progress: Follow = None,
    on_table: OnTable | None = None,
    on_labels: OnLabels | None = None,
    on_records: OnRecords | None = None,
    on_ledger: OnLedger | None = None,
) -> Result:
    """Run a job and return what its parties would hold afterwards.

    Parameters
    ----------
    job
        What was agreed; with everybody's own side if it came from a job file.
    sources
        Tables by party name (paths, DataFrames, Arrow tables, arrays) in place of files.
    seed
        Makes the run reproducible, but its masks and noise no longer secret.
    evaluate
        Compute the exact loss over all records, and that of k-means on one joint table: one or two passes over every
        table. By default only where the job has no budget: an exact loss is not private.
    on_progress
        Called with each step; or ``"rich"``: a bar on standard error; or ``"log"``: the logger ``cloister``.
    on_table
        Called with each party's table once it has been checked.
    on_labels
        Called with the labels of each party that the job grants them to. No result contains labels.
    on_records
        Called with the records of all parties.
    on_ledger
        Called with the ledger of each party that keeps one, before anything is charged. No result says what it states.

    Raises
    ------
    CloisterError
        If the job, a table or the run breaks a rule. If a table is at fault, nothing has been sent.
    """
    setup = Setup.of(job) if seed is None else replace(Setup.of(job), seed=seed)
    require_kind("sources", sources, Mapping, type(None), then="Give each party's table by its name.")
    with told_if_alone(setup.job), follow(on_progress) as show:
        simulation = Simulation.open(setup, sources or {}, on_progress=show, on_table=on_table)
        clustered = simulation.cluster(on_ledger)
    if on_labels is not None:
        for labels in clustered.labels:
            on_labels(labels)
    evaluation = None
    measures_loss = setup.job.budget is None if evaluate is None else evaluate
    if measures_loss or on_records is not None:
        everything = simulation.join_records()
        if on_records is not None:
            on_records(everything)
        if measures_loss:
            scale = clustered.finding.scale
            clustered_in = everything if scale is None else [table.encoded_by(scale) for table in everything]
            evaluation = evaluate_centres(clustered_in, clustered.finding.centres)
    return summarise(setup, clustered, evaluation)


def label_records(
    result: Result,
    job: Job | Setup,
    *,
    sources: Mapping[str, object] | None = None,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
) -> tuple[PartyLabels, ...]:
    """Label new records with the centres and cells of a result whose columns are split across parties.

    Nothing is charged: labels are not differentially private.

    Parameters
    ----------
    result
        From a run over split columns.
    job
        A job whose tables are the new records: with the same columns, bounds, k and split as the result, and
        with ``labels`` in ``[protocol]``.
    sources, on_progress, on_table
        As in `simulate`.

    Raises
    ------
    ConfigError
        If the job does not match the result or grants labels to nobody.
    """
    setup = Setup.of(job)
    job = setup.job
    if result.protocol != job.protocol.name or not result.codebooks:
        raise ConfigError(
            f"the result must be from the job's protocol, {job.protocol.name}, over split columns; got "
            f"{result.protocol}. Name a table instead of a job."
        )
    if sorted(job.columns, key=lambda column: column.name) != sorted(result.columns, key=lambda column: column.name):
        raise ConfigError("the job's [columns] and their bounds must be the result's; got others.")
    if job.k != result.k:
        raise ConfigError(f"clusters.k must be the result's, {result.k}; got {job.k}.")
    order = [[axis.name for axis in result.coordinates].index(axis.name) for axis in job.coordinates]
    finding = Finding(
        centres=job.to_unit(np.ascontiguousarray(result.centres[:, order])),
        rounds=result.rounds,
        codebooks=result.codebooks,
    )
    simulation = Simulation.open(setup, sources or {}, on_progress=on_progress, on_table=on_table)
    found = simulation.distribute_labels(finding)
    if found is None:
        raise ConfigError('the job must say who gets labels; got nobody. Write labels = ["PARTY"] in [protocol].')
    return found[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class Clustered:
    """The outcome of a clustering session; its roles are there for audits."""

    agreed: Any
    parties: Sequence[Party]
    run: LocalRun[Any]
    finding: Finding
    explanation: Explanation
    labels: tuple[PartyLabels, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """Everybody in one process: tables, identities, and how sessions are run."""

    setup: Setup
    instruments: Instruments
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
        on_progress: OnProgress | None = None,
        on_table: OnTable | None = None,
        instruments: Instruments | None = None,
    ) -> Simulation:
        """Open and check every table before anything is sent, align if the job says so, and draw identities."""
        job, instruments = setup.job, instruments or Instruments.of_seed(setup.seed)
        check_source_names(job, sources)
        if setup.network is not None:
            check_choice(("network", "model"), setup.network, NETWORKS)
        tables = {party.name: open_own_table(setup, party, sources, on_table) for party in job.parties}
        public = read_public_input(setup, sources.get(SERVER))
        aligned = align_tables(setup, tables, instruments, on_progress)
        public = know_alignment(job, tables, aligned, public)
        return cls(
            setup=setup,
            instruments=instruments,
            tables=tables,
            aligned=aligned,
            public=public,
            inputs={
                name: take_input(
                    job, name, table, aligned, public, make_entropy(f"persons of {name}", seed=instruments.keys)
                )
                for name, table in tables.items()
            },
            identities=tuple(
                Identity(make_entropy(f"identity of {party.name}", seed=instruments.keys)) for party in job.parties
            ),
            on_progress=on_progress,
        )

    @property
    def directory(self) -> tuple[bytes, ...]:
        """Everybody's public identity."""
        return tuple(identity.public_bytes for identity in self.identities)

    def cluster(self, on_ledger: OnLedger | None = None) -> Clustered:
        """Run the clustering session, and the one that distributes labels."""
        setup, seed, make_sampler = self.setup, self.instruments.keys, self.instruments.make_sampler
        session = open_session(
            setup.job, self.directory, self.public, session=make_entropy("session", seed=seed).bytes(16)
        )
        seeded = setup.seed is not None
        protocol, charges, leakage = session.protocol, session.charges, session.protocol.leakage(session.agreed)
        with ExitStack() as stack:
            seated = [
                seat_party(
                    session,
                    self._seat(number, session.id),
                    own,
                    setup.own_side(name),
                    self.tables[name],
                    sampler=make_sampler(name),
                    seeded=seeded,
                )
                for number, (name, own) in enumerate(self.inputs.items(), start=1)
            ]
            coordinator, duty = None, None
            if not is_alone(setup.job):
                coordinator, duty = seat_coordinator(
                    session, make_entropy(COORDINATOR, seed=seed), sampler=make_sampler(COORDINATOR)
                )
            books = None
            if charges is not None:
                books = JobBooks(
                    charges=charges,
                    leakage=leakage,
                    parties=list_books(seated),
                    coordinator=duty,
                    seeded=seeded,
                )
                stack.callback(books.close)
                for name, one in zip(self.inputs, seated, strict=True):
                    if on_ledger is not None and one.books is not None and one.books.ledger is not None:
                        on_ledger(name, one.books.ledger)
                prepay(books.parties, charges.prepaid)
            parties = [one.role for one in seated]
            for party in parties:
                stack.callback(protocol.close, party)  # wipes keys even if the session is aborted
            if coordinator is None:
                run = run_alone(protocol, session.agreed, parties[0], self.on_progress)
            else:
                run = self._run(protocol, session.agreed, coordinator, parties, session.id)
            findings = [protocol.find(session.agreed, party, run.result) for party in parties]
            finding = _find_common([found for found in findings if found is not None])
            explanation = protocol.explain(
                session.job, session.agreed, finding, run.result, None if books is None else books.make_card
            )
        about_books = () if books is None or explanation.card is None else books.describe_ledgers(explanation.card)
        about_order = describe_alignment(
            setup.job,
            is_aligned=self.aligned is not None,
            by_session=self.aligned is not None and self.aligned.run is not None,
        )
        notes = (*session.notes, *explanation.notes, *about_books, *about_order)
        explanation = replace(explanation, notes=notes)
        labelled = self.distribute_labels(finding)
        labels: tuple[PartyLabels, ...] = ()
        if labelled is not None:
            run, labels = _join_runs(run, labelled[0]), labelled[1]
        return Clustered(
            agreed=session.agreed,
            parties=parties,
            run=run,
            finding=finding,
            explanation=explanation,
            labels=labels,
        )

    def distribute_labels(self, finding: Finding) -> tuple[LocalRun[Any], tuple[PartyLabels, ...]] | None:
        """Run the session in which parties get the labels of their records; None if nobody is granted any."""
        job, seed = self.setup.job, self.instruments.keys
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
        granted = {number: labelling.read(parties[number - 1]) for number in labelling.granted}
        return run, tuple(self._name_labels(number, labels) for number, labels in granted.items())

    def _name_labels(self, number: int, labels: NDArray[np.int64]) -> PartyLabels:
        name = self.setup.job.parties[number - 1].name
        alignment = None if self.aligned is None else self.aligned.alignments[name]
        return name_labels(self.setup.job, name, self.tables[name], alignment, labels)

    def join_records(self) -> Sequence[Table]:
        """Return whole records in the job's column order, which only a simulator can do."""
        job = self.setup.job
        if job.protocol.facts.split == "rows":
            return [table.table for table in self.tables.values() if table.table is not None]
        joined = np.empty((self.public.records or 0, job.dimensions))
        positions = {axis.name: i for i, axis in enumerate(job.coordinates)}
        for party in job.parties:
            held = [positions[axis.name] for axis in job.find_coordinates(party)]
            if held:
                joined[:, held] = np.concatenate(list(self.inputs[party.name].records.batches()))
        grid = job.protocol.grid
        label = "the columns of all parties"
        return [open_points(job.to_original(joined), job.coordinates, fixed_point=grid, label=label)]

    def _seat(self, number: int, session: bytes, prefix: str = "") -> Seat:
        return Seat(
            number=number,
            identity=self.identities[number - 1],
            entropy=make_entropy(f"{prefix}party {number}", seed=self.instruments.keys),
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
            record_frames=self.instruments.record_frames,
            on_progress=self.on_progress,
        )


def _find_common(found: Sequence[Finding]) -> Finding:
    """Return the common finding; parties that stayed to the end must agree to the last bit."""
    if not found or any(not np.array_equal(one.centres, found[0].centres) for one in found[1:]):
        raise LocalProtocolError("all parties that finish must have the same centres; they differ: this is a bug.")
    return found[0]


def _join_runs(first: LocalRun[Any], second: LocalRun[Any]) -> LocalRun[Any]:
    """Merge two sessions of the same parties: their traffic is added up; the outcome is the first one's."""
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
        frames=(*first.frames, *second.frames),
        rejected=(*first.rejected, *second.rejected),
    )


def summarise(setup: Setup, clustered: Clustered, evaluation: Evaluation | None) -> Result:
    """Return what a run shows: nothing of what is only its parties' or the audit's."""
    explanation, run = clustered.explanation, clustered.run
    if setup.seed is not None:
        hidden = "the noise" if is_alone(setup.job) else "every mask"
        seeded = f"Made with seed {setup.seed}: reproducible, but anyone who knows the seed can remove {hidden}."
        explanation = replace(explanation, notes=(*explanation.notes, seeded))
    names = [party.name for party in setup.job.parties]
    return make_result(
        setup.job,
        explanation,
        clustered.finding,
        dict(zip(names, run.traffic.values(), strict=True)),
        ran="by its owner" if is_alone(setup.job) else "simulated",
        notes=explanation.notes,
        transcript_sha256=None if setup.seed is None or is_alone(setup.job) else run.transcript_sha256,
        seeded=setup.seed is not None,
        evaluation=evaluation,
        network=None if setup.network is None else NetworkTime(model=setup.network, simulated_s=run.network_s or 0.0),
    )
