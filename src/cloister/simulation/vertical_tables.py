"""The tables of a vertical job: each party's columns of the records that all parties hold, in one common order.

Before anything is sent: alignments that were made earlier must be of one alignment and fit the tables, ID by ID; every
table must be readable; and records must be as many as the clustering needs. How many there are is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloister.data import Table, open_table, to_original
from cloister.data.aligned_table import AlignedTable
from cloister.data.alignment_file import load_alignment
from cloister.data.id_column import read_id_cells
from cloister.errors import ConfigError, DataError
from cloister.job import Job, JobParty
from cloister.job.vertical_roles import resolve_form
from cloister.numeric import FixedPoint
from cloister.protocols.align import Alignment, Mode, check_alignments, check_ids, normalise_ids
from cloister.records import IntArray
from cloister.runtime.local import OnProgress
from cloister.simulation.alignment import Aligned, align_ids
from cloister.simulation.sources import TableSource, check_source_names, find_source

if TYPE_CHECKING:
    from cloister.simulation.stage import OnTable


@dataclass(frozen=True, kw_only=True, eq=False)
class VerticalTables:
    """The aligned records of all parties.

    Attributes
    ----------
    parties
        In the order of the job's parties; one that only computes has no columns.
    records
        How many records are aligned: n, public.
    digest
        Of the alignment, the same at all parties; None where rows were in the same order already.
    aligned
        The session that aligned them, where this job ran it.
    """

    parties: tuple[AlignedTable, ...]
    records: int
    digest: str | None
    aligned: Aligned | None


def open_vertical_tables(
    job: Job,
    sources: Mapping[str, object],
    *,
    on_table: OnTable | None = None,
    on_progress: OnProgress | None = None,
    records_least: int | None = None,
) -> VerticalTables:
    """Open, check and align the tables of a vertical job.

    Parameters
    ----------
    job
        A vertical job.
    sources
        Tables by party name in place of the job's files.
    on_table
        Told what each party's table holds, its own columns in its own order; for that party's eyes.
    on_progress
        Told about each step of an alignment.
    records_least
        How many records must be aligned, where that is not the number of clusters.

    Raises
    ------
    ConfigError
        If alignments do not belong together, or fewer records are aligned than there are clusters.
    DataError
        If a table cannot be read, is not the one that was aligned, or has other rows than the rest. No message holds a
        value of a record.
    """
    check_source_names(job, sources)
    holders = [party for party in job.parties if party.columns]
    for party in job.parties:
        if not party.columns and party.name in sources:
            raise ConfigError(f"party {party.name!r} holds no columns, so it must have no table; got one in sources.")
    found = {party.name: find_source(job, party, sources) for party in holders}
    ids = {} if job.data.id is None else {name: _read_ids(job, source) for name, source in found.items()}
    alignments = _load_alignments(job, holders, ids, found)
    tables = {party.name: _open_table(job, party, found[party.name], on_table) for party in holders}
    counts = {name: table.check().records for name, table in tables.items()}
    aligned = None
    if ids:
        _check_reading(counts, ids, found)
        if alignments is None:  # only now are messages sent
            aligned = align_ids(
                ids, form=resolve_form(job.data), seed=job.seed, secure=job.secure, on_progress=on_progress
            )
            alignments = aligned.alignments
    records = _count_rows(counts) if alignments is None else next(iter(alignments.values())).count
    _check_count(job, records, records_least)
    in_order: IntArray = np.arange(records, dtype=np.int64)
    return VerticalTables(
        parties=tuple(
            AlignedTable(
                tables.get(party.name),
                in_order if alignments is None or party.name not in alignments else alignments[party.name].rows,
            )
            for party in job.parties
        ),
        records=records,
        digest=None if alignments is None else next(iter(alignments.values())).digest,
        aligned=aligned,
    )


def join_columns(job: Job, tables: VerticalTables) -> Table:
    """Return whole records, in the job's column order: what only a simulator can, to judge the centres."""
    joined = np.empty((tables.records, len(job.columns)))
    positions = {column.name: i for i, column in enumerate(job.columns)}
    for table in tables.parties:
        joined[:, [positions[column.name] for column in table.columns]] = table.points
    return open_table(
        to_original(joined, job.columns),
        job.columns,
        fixed_point=FixedPoint(job.protocol.fractional_bits),
        label="the columns of all parties",
    )


def _read_ids(job: Job, found: TableSource) -> list[bytes]:
    """Return the IDs of one party's table in normal form, in the order of its rows."""
    assert job.data.id is not None
    cells = read_id_cells(found.source, job.data.id, label=found.label)
    return normalise_ids(cells, resolve_form(job.data), label=found.label, column=job.data.id)


def _load_alignments(
    job: Job, holders: list[JobParty], ids: Mapping[str, list[bytes]], found: Mapping[str, TableSource]
) -> Mapping[str, Alignment] | None:
    """Load the alignments that the job names and hold them against each other and the tables; None if it names none."""
    files = {party.name: job.find_alignment(party) for party in holders}
    alignments = {name: load_alignment(path) for name, path in files.items() if path is not None}
    if not alignments:
        return None
    check_alignments(alignments, {name: len(of_party) for name, of_party in ids.items()}, mode=Mode.INTERSECTION)
    for name, alignment in alignments.items():
        check_ids(alignment, ids[name], label=found[name].label)
    return alignments


def _open_table(job: Job, party: JobParty, found: TableSource, on_table: OnTable | None) -> Table:
    """Open and check one party's table: its own columns only."""
    table = open_table(
        found.source,
        job.find_columns(party),
        fixed_point=FixedPoint(job.protocol.fractional_bits),
        match=job.data.match,
        may_be_empty=True,  # too few records in common are told below, whoever lacks them
        label=found.label,
    )
    check = table.check()
    if on_table is not None:
        on_table(party.name, check)
    return table


def _check_reading(counts: Mapping[str, int], ids: Mapping[str, list[bytes]], found: Mapping[str, TableSource]) -> None:
    """Refuse a table whose second reading, for its columns, gave other rows than the first, for its IDs."""
    for name, count in counts.items():
        if count != len(ids[name]):
            raise DataError(
                f"{found[name].label}: a table must stay the same during a run; it had {len(ids[name])} IDs and then "
                f"{count} records. Use a copy that nothing writes to, and no stream that can be read only once."
            )


def _count_rows(counts: Mapping[str, int]) -> int:
    """Return the number of rows of tables that are said to be in the same order."""
    if len(set(counts.values())) != 1:
        raise DataError(
            "tables with data.aligned = true must have equally many rows, in the same order; got "
            + ", ".join(f"{name} {count}" for name, count in counts.items())
            + '. Remove aligned and name the column of IDs: [data] id = "COLUMN".'
        )
    return next(iter(counts.values()))


def _check_count(job: Job, records: int, least: int | None) -> None:
    """Refuse too few aligned records, and a declared number that is another."""
    if least is not None and records < least:
        raise ConfigError(f"at least {least} record must be aligned; {records} are. Compare how the sides write IDs.")
    if least is None and records < job.k:
        hint = (
            " Compare how the sides write their IDs: leading zeros (id_form), blanks (id_trim), case (id_ignore_case)."
            if job.data.id is not None
            else " Use fewer clusters, or more records."
        )
        raise ConfigError(f"at least clusters.k = {job.k} records must be aligned; {records} are.{hint}")
    if job.data.records is not None and job.data.records != records:
        raise ConfigError(
            f"data.records must be the number of aligned records, which is public in a vertical job; it says "
            f"{job.data.records}, and {records} are aligned. Correct it, or leave it out."
        )
