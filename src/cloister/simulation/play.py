"""From a job to a result: set the stage, play the protocol, judge what it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby

from cloister.data import to_original
from cloister.job import Job
from cloister.job.secfc_checks import SECFC
from cloister.protocols.feddp.settings import FEDDP
from cloister.protocol import Learns
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.protocols.vertical.settings import VERTICAL
from cloister.report.evaluation import evaluate_centres
from cloister.report.result import Learned, NetworkTime, PartyTraffic, Result
from cloister.runtime.local import OnProgress
from cloister.simulation.feddp import play_feddp
from cloister.simulation.lloyd import play_lloyd
from cloister.simulation.secfc import play_secfc
from cloister.simulation.stage import OnLabels, OnTable, Played, Stage, set_stage
from cloister.simulation.synopsis import play_synopsis
from cloister.simulation.vertical import play_vertical
from cloister.simulation.vertical_tables import join_columns

_PLAYS: dict[str, Callable[[Stage], Played]] = {
    SYNOPSIS: play_synopsis,
    FEDDP: play_feddp,
    SECFC: play_secfc,
    VERTICAL: play_vertical,
}


def simulate(
    job: Job,
    *,
    sources: Mapping[str, object] | None = None,
    evaluate: bool = True,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
    on_labels: OnLabels | None = None,
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
    on_labels
        Told the labels of each party that a vertical job grants them to. They are in no result.

    Raises
    ------
    CloisterError
        If the job, a table or the run does not hold what it must. Nothing has been sent when a table is at fault.
    """
    stage = set_stage(job, sources or {}, on_progress=on_progress, on_table=on_table)
    played = _PLAYS.get(job.protocol.name, play_lloyd)(stage)
    tables = stage.tables if stage.vertical is None else (join_columns(job, stage.vertical),)
    if on_labels is not None:
        for labels in played.labels:
            on_labels(labels)
    seeded = f"Made with seed {job.seed}: reproducible, and whoever knows the seed can remove every mask."
    return Result(
        name=job.name,
        protocol=job.protocol.name,
        variant=job.protocol.full_variant,
        columns=job.columns,
        centres=to_original(played.centres, job.columns),
        rounds=played.rounds,
        parties=_list_traffic(job, played),
        leakage=_list_learned(played),
        breaks_if=played.breaks_if,
        transcript_sha256=None if job.seed is None else played.run.transcript_sha256,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        cloister_version=version("cloister"),
        fractional_bits=job.protocol.fractional_bits if played.fractional_bits is None else played.fractional_bits,
        ring_bits=played.ring_bits,
        seeded=job.seed is not None,
        evaluation=evaluate_centres(tables, played.centres) if evaluate else None,
        network=None
        if job.network is None
        else NetworkTime(model=job.network, simulated_s=played.run.network_s or 0.0),
        notes=played.notes if job.seed is None else (*played.notes, seeded),
        card=played.card,
        cluster_records=played.cluster_records,
        cluster_records_noise=played.cluster_records_noise,
        released_records=played.released_records,
        curve=played.curve,
        codebooks=played.codebooks,
    )


def _list_traffic(job: Job, played: Played) -> tuple[PartyTraffic, ...]:
    return tuple(
        PartyTraffic(
            name=party.name,
            bytes_sent=traffic.bytes_sent,
            bytes_received=traffic.bytes_received,
            messages_sent=traffic.messages_sent,
            messages_received=traffic.messages_received,
            rounds_missed=traffic.steps_missed,
        )
        for party, traffic in zip(job.parties, played.run.traffic.values(), strict=True)
    )


def _list_learned(played: Played) -> tuple[Learned, ...]:
    """The leakage table in words, one line for each role and degree."""
    table = played.leakage
    flawed = played.card is not None and bool(played.card.flaw)
    rows = []
    for (role, learns), group in groupby(table.rows, key=lambda row: (row.role, row.learns)):
        name = {"coordinator": f"the {played.middleman}", "party": "each party"}[role]
        how = "with noise that proves nothing" if flawed and learns is Learns.NOISY else learns.value
        rows.append(Learned(role=name, what="; ".join(row.meaning for row in group), how=how))
    return (*rows, Learned(role="everyone", what=played.public, how="exactly", note=f"public; see {table.source}"))
