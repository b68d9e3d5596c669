"""Run a job in one process: every party's role on its own table, the coordinator's role, real messages between them.

The roles are the ones that a deployment would run. What only a simulator can do is kept apart and labelled: it holds
every table, so it can compute the loss over all records and compare it with k-means on one joint table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import numpy as np

from cloister.crypto import Identity, make_entropy
from cloister.data import Table, TableCheck, open_table, to_original, to_unit
from cloister.errors import ConfigError, LocalProtocolError, PrecisionError
from cloister.job import Job
from cloister.kmeans.assignment import (
    Assignment,
    ConstrainedEExclusive,
    ConstrainedExclusive,
    ConstrainedNonExclusive,
    DistanceConstrained,
    Unconstrained,
)
from cloister.kmeans.records import FloatArray
from cloister.numeric import FixedPoint
from cloister.protocols.leakage import LeakageTable
from cloister.protocols.multiparty_lloyd import CODEC, LEAKAGE, Agreement, LloydParty, Outcome, coordinate
from cloister.protocols.multiparty_lloyd.agreement import MAX_RECORDS
from cloister.report.evaluation import evaluate_centres
from cloister.report.result import Learned, NetworkTime, PartyTraffic, Result
from cloister.runtime import NETWORKS, LocalRun, run_local
from cloister.runtime.progress import OnProgress
from cloister.simulation_desks import make_noise_plan, open_desks

OnTable = Callable[[str, TableCheck], None]
"""Told what a party's table holds; it describes that party's records and is for that party's eyes."""


def simulate(
    job: Job,
    *,
    sources: Mapping[str, object] | None = None,
    evaluate: bool = True,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
) -> Result:
    """Run a job and return what its parties would have in their hands afterwards.

    Parameters
    ----------
    job
        What was agreed.
    sources
        Tables by party name (paths, DataFrames, Arrow tables, arrays) in place of the job's files.
    evaluate
        Compute the loss over all records and that of k-means on one joint table; a pass or two over every table.
    on_progress, on_table
        Told about each step, and about each party's table once it has been checked.

    Raises
    ------
    CloisterError
        If the job, a table or the run does not hold what it must. Nothing has been sent when a table is at fault.
    """
    network = None if job.network is None else NETWORKS[job.network]
    tables = _open_tables(job, sources or {}, on_table)
    session = make_entropy("session", seed=job.seed).bytes(16)
    identities = [Identity(make_entropy(f"identity of {party.name}", seed=job.seed)) for party in job.parties]
    agreement = make_agreement(job, tuple(identity.public_bytes for identity in identities))
    assignment = make_assignment(job)
    with closing(open_desks(job, agreement, tables, session)) as desks:
        desks.pay_ledgers(agreement.iterations)
        parties = [
            LloydParty(
                number=number,
                agreement=agreement,
                records=table,
                identity=identity,
                entropy=make_entropy(f"party {number}", seed=job.seed),
                session=session,
                assignment=assignment,
                duty=desks.of_party(number),
            )
            for number, (table, identity) in enumerate(zip(tables, identities, strict=True), start=1)
        ]
        run = run_local(
            coordinate(
                agreement,
                entropy=make_entropy("coordinator", seed=job.seed),
                session=session,
                duty=desks.of_coordinator(),
            ),
            parties,
            codec=CODEC,
            session=session,
            names=[party.name for party in job.parties],
            network=network,
            network_seed=job.seed or 0,
            on_progress=on_progress,
        )
    centres = _common_centres(parties)
    return Result(
        name=job.name,
        protocol=job.protocol.name,
        columns=job.columns,
        centres=to_original(centres, job.columns),
        rounds=run.result.rounds,
        parties=_traffic(job, run),
        leakage=_learned(LEAKAGE[agreement.variant]),
        breaks_if=agreement.breaks_if,
        transcript_sha256=run.transcript_sha256,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        cloister_version=version("cloister"),
        fractional_bits=agreement.fractional_bits,
        ring_bits=agreement.ring.bits if agreement.masked else None,
        seeded=job.seed is not None,
        evaluation=evaluate_centres(tables, centres) if evaluate else None,
        network=None if network is None else NetworkTime(model=network.name, simulated_s=run.network_s or 0.0),
        notes=_notes(job),
        card=desks.card(parties, fewest_members=min(map(len, run.result.members))),
    )


def make_agreement(job: Job, directory: tuple[bytes, ...]) -> Agreement:
    """Translate a job into the protocol's public parameters, records in [-1, 1]."""
    options = job.protocol
    constraints = ("assignment", "size_min", "size_max", "alpha_min", "alpha_max", "memberships_max", "radius")
    context = {
        "columns": [asdict(column) for column in job.columns],
        **{name: getattr(options, name) for name in constraints},
    }
    return Agreement(
        variant=options.name,
        parties=len(job.parties),
        clusters=job.k,
        dimensions=len(job.columns),
        iterations=options.iterations,
        initialisation=options.initialisation,
        start=() if options.start is None else tuple(map(tuple, to_unit(options.start, job.columns))),
        start_by="coordinator" if options.starter == "coordinator" else "parties",
        noise=make_noise_plan(job),
        fractional_bits=options.fractional_bits,
        ring_bits=options.ring,
        max_records=job.data.max_records or MAX_RECORDS,
        members_min=options.resolve_min_parties(len(job.parties)),
        tolerance=options.tolerance,
        directory=directory,
        context=json.dumps(context, sort_keys=True),
    )


def make_assignment(job: Job) -> Assignment:
    """Translate a job's assignment options into the object that assigns records (thesis 4.1, FastLloyd 7.1)."""
    kinds: dict[str, Callable[..., Assignment]] = {
        kind.name: kind
        for kind in (
            Unconstrained,
            ConstrainedNonExclusive,
            ConstrainedExclusive,
            ConstrainedEExclusive,
            DistanceConstrained,
        )
    }
    given = {
        name: getattr(job.protocol, name)
        for name in ("size_min", "size_max", "alpha_min", "alpha_max", "memberships_max", "radius")
        if getattr(job.protocol, name) is not None
    }
    return kinds[job.protocol.assignment](**given)


def _open_tables(job: Job, sources: Mapping[str, object], on_table: OnTable | None) -> list[Table]:
    """Open and check every table before anything is sent."""
    unknown = sorted(set(sources) - {party.name for party in job.parties})
    if unknown:
        raise ConfigError(f"sources must be named after the job's parties; got {unknown[0]!r}, which is none of them.")
    tables = []
    for party in job.parties:
        source = sources.get(party.name, job.find_data(party))
        if source is None:
            raise ConfigError(
                f"party {party.name!r} must have a table; got none. Give its data in the job, or pass it in sources."
            )
        table = open_table(
            source,
            job.columns,
            fixed_point=FixedPoint(job.protocol.fractional_bits),
            match=job.data.match,
            label=f"party {party.name!r}" + (f" ({source})" if isinstance(source, str | Path) else ""),
        )
        check = table.check()
        if job.budget is None and job.data.max_records is not None and check.records > job.data.max_records:
            raise PrecisionError(
                f"party {party.name!r} must hold at most data.max_records = {job.data.max_records} records, "
                f"the public cap that the ring is chosen for; it holds {check.records}. Raise the cap with all parties."
            )
        if on_table is not None:
            on_table(party.name, check)
        tables.append(table)
    return tables


def _common_centres(parties: Sequence[LloydParty]) -> FloatArray:
    """The centres that the parties ended with; those who stayed to the end must agree to the last bit."""
    found = [party.centres for party in parties if party.finished]
    if not found or any(not np.array_equal(centres, found[0]) for centres in found[1:]):
        raise LocalProtocolError("all parties that finish must have the same centres; they do not: this is a bug.")
    return found[0]


def _traffic(job: Job, run: LocalRun[Outcome]) -> tuple[PartyTraffic, ...]:
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


def _learned(table: LeakageTable) -> tuple[Learned, ...]:
    """The leakage table in words, one line for each role and degree."""
    rows = []
    for (role, learns), group in groupby(table.rows, key=lambda row: (row.role, row.learns)):
        name = {"coordinator": "the coordinator", "party": "each party"}[role]
        rows.append(Learned(role=name, what="; ".join(row.meaning for row in group), how=learns.value))
    public = "columns, bounds, k, the number of rounds, who takes part and who missed which round"
    return (*rows, Learned(role="everyone", what=public, how="exactly", note=f"public; see {table.source}"))


def _notes(job: Job) -> tuple[str, ...]:
    notes = []
    if job.budget is None:
        notes.append("Sums and centres are exact: nothing here is differentially private.")
    if job.protocol.name == "masked-centroid":
        notes.append(
            "The centres are averages of the parties' local centres, weighted equally whatever their size (thesis 5.4)."
        )
    if len(job.parties) == 2 and job.protocol.name != "naive" and job.budget is None:
        notes.append(
            "Two parties: each can subtract its own part from the sum and has the other's. Three or more hide it."
        )
    if job.seed is not None:
        notes.append(f"Made with seed {job.seed}: reproducible, and whoever knows the seed can remove every mask.")
    return tuple(notes)
