"""Labels on the stage: at the end of a vertical run, or for new aligned records with the centres of an earlier one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from cloister.crypto import make_entropy
from cloister.data import to_unit
from cloister.data.alignment_file import load_alignment
from cloister.data.id_column import read_id_cells
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.vertical_roles import VerticalRoles, resolve_vertical
from cloister.protocols.vertical.coordinator import coordinate_vertical
from cloister.protocols.vertical.messages import CODEC
from cloister.protocols.vertical.settings import VERTICAL, Settings
from cloister.protocols.vertical_labels.agreement import LabelsAgreement
from cloister.protocols.vertical_labels.parties import LabelsComputing, LabelsHolder, LabelsParty
from cloister.records import FloatArray, IntArray
from cloister.report.labels import PartyLabels
from cloister.report.result import Result
from cloister.runtime import LocalRun
from cloister.runtime.local import OnProgress, Traffic
from cloister.simulation.sources import find_source
from cloister.simulation.stage import OnTable, Stage, set_stage


@dataclass(frozen=True, kw_only=True, eq=False)
class Labelled:
    """A session for labels: what each party was handed, and what the session took."""

    labels: tuple[PartyLabels, ...]
    run: LocalRun[Any]


def label_records(stage: Stage, *, reps: Sequence[FloatArray], centres: FloatArray) -> Labelled:
    """Hand the labels of the stage's records to the parties that the job grants them to.

    Parameters
    ----------
    stage
        A vertical job with its aligned tables.
    reps
        The cells of each party whose columns are encrypted, in the job's order of parties; in [-1, 1].
    centres
        (k, d) in [-1, 1], in the job's column order.
    """
    job, tables = stage.job, stage.vertical
    assert tables is not None
    roles = resolve_vertical(job)
    session = make_entropy("session for labels", seed=job.seed).bytes(16)
    context = {"columns": [asdict(column) for column in job.columns], "alignment": tables.digest}
    agreement = LabelsAgreement(
        settings=_make_settings(job, roles, tables.records),
        model=roles.model,
        computing=roles.computing + 1,
        encrypted=tuple(party + 1 for party in roles.encrypted),
        key_holders=tuple(party + 1 for party in roles.key_holders),
        directory=stage.directory,
        context=json.dumps(context, sort_keys=True),
        reps=tuple(reps),
        centres=centres,
        granted=tuple(party + 1 for party in roles.labels),
    )
    parties: list[LabelsParty] = []
    for place, (table, identity) in enumerate(zip(tables.parties, stage.identities, strict=True)):
        kind = LabelsComputing if place == roles.computing else LabelsHolder
        parties.append(
            kind(
                number=place + 1,
                agreement=agreement,
                columns=table.points,
                identity=identity,
                entropy=stage.make_entropy(f"labels: party {place + 1}"),
                session=session,
            )
        )
    own_stage = replace(stage, session=session)
    with ExitStack() as stack:
        for party in parties:
            if isinstance(party, LabelsHolder):
                stack.callback(party.close)  # keys are gone also where the session is given up
        run = own_stage.run(coordinate_vertical(agreement, session=session), parties, CODEC)
    labels = tuple(_name_records(stage, place, parties[place].exact_labels) for place in roles.labels)
    return Labelled(labels=labels, run=run)


def predict_vertical(
    result: Result,
    job: Job,
    *,
    sources: Mapping[str, object] | None = None,
    on_progress: OnProgress | None = None,
    on_table: OnTable | None = None,
) -> Labelled:
    """Label new aligned records with the centres and cells of a vertical result. Nothing is charged: labels are not DP.

    Parameters
    ----------
    result
        From a vertical run.
    job
        A vertical job whose tables are the new records: the same columns, bounds, k and split into computing and
        encrypted parties, and ``labels`` in [protocol].
    sources
        Tables by party name in place of the job's files.
    on_progress, on_table
        As in ``simulate``.

    Raises
    ------
    ConfigError
        If the job does not fit the result, or grants labels to nobody.
    """
    reps = _match_result(result, job)
    stage = set_stage(job, sources or {}, on_progress=on_progress, on_table=on_table, records_least=1)
    order = [[column.name for column in result.columns].index(column.name) for column in job.columns]
    centres = np.ascontiguousarray(to_unit(result.centres, result.columns)[:, order])
    return label_records(stage, reps=reps, centres=centres)


def join_runs(first: LocalRun[Any], second: LocalRun[Any]) -> LocalRun[Any]:
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


def _make_settings(job: Job, roles: VerticalRoles, records: int) -> Settings:
    return Settings(
        clusters=job.k,
        columns_alice=roles.columns[roles.computing],
        columns_encrypted=tuple(roles.columns[party] for party in roles.encrypted),
        records=records,
        residuals=False,
    )


def _match_result(result: Result, job: Job) -> tuple[FloatArray, ...]:
    """Return the cells of the job's encrypted parties from a result; refuse a job that does not fit it."""
    if result.protocol != VERTICAL or not result.codebooks:
        raise ConfigError(
            f"the result must be of the protocol {VERTICAL} to label columns at several parties; got "
            f"{result.protocol}. Name a table instead of a job."
        )
    if job.protocol.name != VERTICAL:
        raise ConfigError(f"the job must be of the protocol {VERTICAL}, as the result is; got {job.protocol.name}.")
    if not job.protocol.labels:
        raise ConfigError('the job must say who gets labels; got nobody. Write labels = ["PARTY"] in [protocol].')
    if sorted(job.columns, key=lambda column: column.name) != sorted(result.columns, key=lambda column: column.name):
        raise ConfigError("the job's [columns] must be the result's, with the same bounds; got others.")
    if job.k != result.k:
        raise ConfigError(f"clusters.k must be the result's, {result.k}; got {job.k}.")
    roles = resolve_vertical(job)
    books = {frozenset(book.columns): book for book in result.codebooks}
    reps = []
    for party in roles.encrypted:
        names = [job.columns[column].name for column in roles.columns[party]]
        book = books.pop(frozenset(names), None)
        if book is None:
            raise _describe_split(result)
        order = [book.columns.index(name) for name in names]
        reps.append(np.ascontiguousarray(np.array(book.cells)[:, order]))
    if books:
        raise _describe_split(result)
    return tuple(reps)


def _describe_split(result: Result) -> ConfigError:
    held = "; ".join(", ".join(book.columns) for book in result.codebooks)
    return ConfigError(
        f"the encrypted columns must be split as in the result ({held}), the others at the computing party; they are "
        "not. Correct columns in [[parties]], or computing in [protocol]."
    )


def _name_records(stage: Stage, place: int, exact_labels: IntArray) -> PartyLabels:
    """Put one party's labels in the order of its table, each with its ID or row."""
    job, tables = stage.job, stage.vertical
    assert tables is not None
    party = job.parties[place]
    file = job.find_alignment(party)
    if tables.aligned is not None:
        rows = tables.aligned.alignments[party.name].rows
    else:
        rows = np.arange(tables.records) if file is None else load_alignment(file).rows
    order = np.argsort(rows, kind="stable")
    own_rows = rows[order].tolist()
    if job.data.id is None:
        keys: list[object] = [row + 1 for row in own_rows]
    else:
        found = find_source(job, party, stage.sources)
        cells = list(read_id_cells(found.source, job.data.id, label=found.label))
        keys = [cells[row] for row in own_rows]
    return PartyLabels(party=party.name, key_name=job.data.id or "row", keys=keys, labels=exact_labels[order])
