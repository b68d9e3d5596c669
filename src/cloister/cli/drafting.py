"""What ``cloister init`` finds out before it writes a job file: columns, their kinds, and all problems at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cloister.data.looking import ColumnLook, Header, look_at_columns, read_header
from cloister.errors import CloisterError
from cloister.jobfile.template import TemplateColumn, TemplateParty

_LEFT_OUT = {
    "id": "left out: probably an ID",
    "text": "left out: free text, which cannot be clustered",
    "empty": "left out: no cell holds anything",
}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a new job file says about columns and tables.

    Attributes
    ----------
    columns
        All columns, also those that are left out.
    headers
        The header of each party's table, by name; None where it cannot be read.
    problems
        What must be put right before a run, and what was left out: for whoever called, on their screen.
    decimal_commas
        Whether numbers of the caller's own table have decimal commas.
    own
        The party whose table was looked at; None between organisations.
    split
        Whether columns are split.
    """

    columns: tuple[TemplateColumn, ...]
    headers: dict[str, Header | None]
    problems: tuple[str, ...]
    decimal_commas: bool
    own: str | None
    split: bool


def draft_columns(
    table: Path, pairs: Sequence[tuple[str, Path]], *, id_column: str | None, propose_levels: bool
) -> Draft:
    """Look at one's own table, and at the headers of the others'.

    Raises
    ------
    ConfigError
        If one's own table cannot be read.
    """
    own = read_header(table)
    looks = look_at_columns(table, own)
    problems: list[str] = []
    headers = {name: _try_header(name, file, problems) for name, file in pairs}
    columns = [_draft_column(look, propose_levels=propose_levels) for look in looks if look.name != id_column]
    if id_column is None:
        columns = [_compare(column, headers, problems) for column in columns]
    else:
        others = {name: headers[name] for name, file in pairs if file.resolve() != table.resolve()}
        columns += _add_others(own, others, id_column, problems)
    left_out = [column.name for column in columns if column.left_out]
    if left_out:
        problems.append(f"Left out, as comments: {', '.join(left_out)}.")
    gaps = [look.name for look in looks if look.has_gaps]
    if gaps:
        problems.append(f'Cells are missing in {", ".join(gaps)}: to leave out their rows, write missing = "drop".')
    return Draft(
        columns=tuple(columns),
        headers=headers,
        problems=tuple(problems),
        decimal_commas=any(look.decimal_commas for look in looks),
        own=next((name for name, file in pairs if file.resolve() == table.resolve()), None),
        split=id_column is not None,
    )


def draft_parties(draft: Draft, pairs: Sequence[tuple[str, Path]]) -> list[TemplateParty]:
    """Return the parties, without their tables' places."""
    used = [column.name for column in draft.columns if not column.left_out]
    taken: set[str] = set()
    parties = []
    for name, _ in pairs:
        header = draft.headers[name]
        separator = None if header is None or header.separator in (None, ",", "\t") else header.separator
        commas: bool | None = None if separator == ";" else False
        if name == draft.own:
            commas = draft.decimal_commas
        columns = None
        if draft.split:
            columns = tuple(one for one in (header.names if header else ()) if one in used and one not in taken)
            taken.update(columns)
        parties.append(TemplateParty(name=name, separator=separator, decimal_commas=commas, columns=columns))
    return parties


def _try_header(name: str, file: Path, problems: list[str]) -> Header | None:
    """Read the header of a table; note what is wrong with it."""
    try:
        return read_header(file)
    except CloisterError as error:
        problems.append(f"{name}: {error}")
        return None


def _draft_column(look: ColumnLook, *, propose_levels: bool) -> TemplateColumn:
    """Return a column as its cells seem to be."""
    if look.guess == "id" or look.guess == "text" or look.guess == "empty":  # noqa: PLR1714 (narrows the type)
        return TemplateColumn(name=look.name, left_out=_LEFT_OUT[look.guess])
    return TemplateColumn(name=look.name, kind=look.guess, levels=look.levels if propose_levels else ())


def _compare(column: TemplateColumn, headers: dict[str, Header | None], problems: list[str]) -> TemplateColumn:
    """Leave out a column that another party's table does not have."""
    lacking = [name for name, header in headers.items() if header is not None and column.name not in header.names]
    if not lacking or column.left_out:
        return column
    problems.append(f"{column.name}: not in the table of {', '.join(lacking)}.")
    return TemplateColumn(name=column.name, left_out=f"left out: not in the table of {', '.join(lacking)}")


def _add_others(
    own: Header, headers: dict[str, Header | None], id_column: str, problems: list[str]
) -> list[TemplateColumn]:
    """Return the columns of the other parties, where columns are split; every table must have the IDs."""
    found: dict[str, str] = dict.fromkeys(own.names, "your table")
    columns = []
    for name, header in headers.items():
        if header is None:
            continue
        if id_column not in header.names:
            problems.append(f"{name}: no column {id_column!r} of IDs.")
        for column in header.names:
            if column in found and column != id_column:
                problems.append(f"{column}: in {found[column]} and in that of {name}; the first one's counts.")
            elif column != id_column:
                found[column] = f"the table of {name}"
                columns.append(TemplateColumn(name=column))
    return columns
