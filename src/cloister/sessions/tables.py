"""Tables: ONE party's own table as a session needs it, and the public table that everyone has.

Everything is read and checked before anything is sent. IDs and columns come from one pass over a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cloister.data import Table, TableCheck, open_table
from cloister.data.id_column import read_id_cells
from cloister.errors import ConfigError, PrecisionError
from cloister.job import Job, JobParty, Setup
from cloister.numeric import FixedPoint
from cloister.protocols.align import NormalForm, normalise_ids
from cloister.records import FloatArray

SERVER = "server"
"""What the public table is called among a caller's sources."""
OnTable = Callable[[str, TableCheck], None]
"""Told what a party's table holds; it describes that party's records and is for that party's eyes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnTable:
    """One party's table, opened and checked.

    Attributes
    ----------
    table
        None for a party that holds no columns.
    label
        What messages to its owner call it.
    id_cells, ids
        The cells of the ID column as they stand in the table, and in normal form; None where the job names no column.
    """

    table: Table | None
    label: str
    id_cells: list[object] | None = None
    ids: list[bytes] | None = None


def resolve_form(job: Job) -> NormalForm:
    """Return what makes two IDs of a job equal."""
    data = job.data
    return NormalForm(kind=data.id_form or "text", trim=bool(data.id_trim), ignore_case=bool(data.id_ignore_case))


def check_source_names(job: Job, sources: Mapping[str, object]) -> None:
    """Refuse tables for parties that the job does not have: a misspelled name would silently read a file."""
    named = {party.name for party in job.parties}
    if SERVER in job.protocol.facts.data_keys:
        named.add(SERVER)
    unknown = sorted(set(sources) - named)
    if unknown:
        raise ConfigError(f"sources must be named after the job's parties; got {unknown[0]!r}, which is not one.")


def open_own_table(
    setup: Setup, party: JobParty, sources: Mapping[str, object], on_table: OnTable | None = None
) -> OwnTable:
    """Open and check ONE party's table: the one passed in, or the file of its own side.

    Raises
    ------
    DataError, ConfigError, PrecisionError
        If it cannot be read, is not there, or holds more records than the public cap.
    """
    job = setup.job
    columns = job.find_columns(party)
    if not columns:
        return OwnTable(table=None, label=f"party {party.name!r}")
    source = sources.get(party.name, setup.own_side(party.name).data)
    if source is None:
        raise ConfigError(
            f"party {party.name!r} must have a table; got none. Give its data in the job, or pass it in sources."
        )
    label = f"party {party.name!r}" + (f" ({source})" if isinstance(source, str | Path) else "")
    table = open_table(
        source,
        columns,
        fixed_point=FixedPoint(job.protocol.grid_bits),
        match=job.data.match,
        # With noise, a refusal would tell whether the last record is there; too few aligned ones are told later.
        may_be_empty=job.budget is not None or job.protocol.facts.split == "columns",
        label=label,
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
    if job.data.id is None:
        return OwnTable(table=table, label=label)
    cells = list(read_id_cells(source, job.data.id, label=label))
    ids = normalise_ids(cells, resolve_form(job), label=label, column=job.data.id)
    return OwnTable(table=table, label=label, id_cells=cells, ids=ids)


def read_server(setup: Setup, source: object = None) -> FloatArray | None:
    """Return the points of the public table in unit scaling, or None where the job names none.

    ``source`` is in place of the file.
    """
    job = setup.job
    if source is None:
        if job.data.server is None:
            return None
        source = setup.folder / job.data.server
    table = open_table(
        source,
        job.columns,
        fixed_point=FixedPoint(job.protocol.grid_bits),
        match=job.data.match,
        label="the server's data" + (f" ({source})" if isinstance(source, str | Path) else ""),
    )
    return np.concatenate(list(table.batches()))
