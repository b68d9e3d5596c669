"""Tables: ONE party's own table, as a session needs it.

Everything is read and checked before anything is sent. IDs and columns come from one pass over a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloister.data import Table, TableCheck, open_table
from cloister.data.persons import PersonCheck
from cloister.errors import ConfigError, DataError, PrecisionError, told_to_owner
from cloister.job import Job, JobParty, OwnSide, Setup
from cloister.protocol import SERVER
from cloister.protocols.align.identifiers import normalise_ids
from cloister.protocols.align.terms import NormalForm

OnTable = Callable[[str, TableCheck], None]
"""Receives what was found in a party's table; only that party may see it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnTable:
    """One party's table, opened and checked.

    Attributes
    ----------
    table
        None for a party that holds no columns.
    label
        What error messages call it.
    ids
        Its IDs in normal form; None if the job names no ID column.
    """

    table: Table | None
    label: str
    ids: list[bytes] | None = None


def resolve_form(job: Job) -> NormalForm:
    """Return the rule by which two IDs of a job are equal."""
    data = job.data
    return NormalForm(kind=data.id_form or "text", trim=bool(data.id_trim), ignore_case=bool(data.id_ignore_case))


def check_source_names(job: Job, sources: Mapping[str, object]) -> None:
    """Refuse sources for parties that the job does not have: with a misspelled name, a file would silently be read."""
    named = {party.name for party in job.parties}
    if SERVER in job.protocol.facts.data_keys:
        named.add(SERVER)
    unknown = sorted(set(sources) - named)
    if unknown:
        raise ConfigError(f"sources must be named after the job's parties; got {unknown[0]!r}, which is not one.")


def find_source(setup: Setup, party: JobParty, sources: Mapping[str, object]) -> tuple[object, str]:
    """Return ONE party's table, passed in or from its own side, and what messages call it."""
    source = sources.get(party.name, setup.own_side(party.name).data)
    if source is None:
        raise ConfigError(
            f"party {party.name!r} must have a table; got none. Give its data in the job, or pass it in sources."
        )
    return source, f"party {party.name!r}" + (f" ({source})" if isinstance(source, str | Path) else "")


def open_source(
    setup: Setup,
    party: JobParty,
    sources: Mapping[str, object],
    *,
    id_column: str | None,
    see_ids: Callable[[Sequence[object]], None] | None = None,
) -> tuple[Table, str]:
    """Open ONE party's table, without checking it; return also what messages call it."""
    job = setup.job
    source, label = find_source(setup, party, sources)
    side = OwnSide() if party.name in sources else setup.own_side(party.name)
    try:
        table = open_table(
            source,
            job.find_columns(party),
            coordinates=job.find_coordinates(party),
            fixed_point=job.protocol.grid,
            match=job.data.match,
            missing=job.data.missing,
            separator=side.separator,
            decimal=side.decimal,
            id_column=id_column,
            see_ids=see_ids,
            # With noise, a refusal would reveal whether the last record is there. Too few aligned are refused later.
            may_be_empty=job.budget is not None or job.protocol.facts.split == "columns",
            label=label,
        )
    except ConfigError as error:  # about how its own file is written, which is no concern of the others'
        raise DataError(f"{label}: {error}") from None
    return table, label


def open_own_table(
    setup: Setup, party: JobParty, sources: Mapping[str, object], on_table: OnTable | None = None
) -> OwnTable:
    """Open and check ONE party's table, passed in or from its own side.

    Raises
    ------
    ConfigError
        If it is missing.
    AbsentError
        If it cannot be read, does not fit the job, or holds more records than the public cap. Its owner alone is told
        why.
    """
    with told_to_owner(party.name, but=(ConfigError,)):
        return _open_own_table(setup, party, sources, on_table)


def _open_own_table(setup: Setup, party: JobParty, sources: Mapping[str, object], on_table: OnTable | None) -> OwnTable:
    job = setup.job
    if not job.find_columns(party):
        if party.name in sources:
            raise ConfigError(
                f"party {party.name!r} holds no columns, so it must have no table; got one in sources. Leave it out."
            )
        return OwnTable(table=None, label=f"party {party.name!r}")
    persons = None if job.data.person is None else PersonCheck(job.data.person)
    id_column = job.data.id or job.data.person
    table, label = open_source(
        setup, party, sources, id_column=id_column, see_ids=None if persons is None else persons.see
    )
    check = table.check()
    if persons is not None:
        persons.require_all(label)
    # Only if sums are exact: with noise, an abort would distinguish neighbouring tables.
    if job.budget is None and job.data.max_records is not None and check.records > job.data.max_records:
        raise PrecisionError(
            f"party {party.name!r} must hold at most data.max_records = {job.data.max_records} records, "
            f"the public cap that determines the ring; it holds {check.records}. Agree on a higher cap."
        )
    if on_table is not None:
        on_table(party.name, check)
    if job.data.id is None or table.id_cells is None:
        return OwnTable(table=table, label=label)
    ids = normalise_ids(table.id_cells, resolve_form(job), label=label, column=job.data.id)
    return OwnTable(table=table, label=label, ids=ids)
