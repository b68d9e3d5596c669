"""A new job file with comments: everything is filled in except the public bounds, which only its author can know."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal

from cloister.job.options import join_or, known_options, name_takers
from cloister.job.refusals import quote_key, quote_string

_COMMENTS_AT = 35
_BLANKS = {
    "number": "FILL IN low and high",
    "date": "dates: FILL IN from and to",
    "levels": "text with few values: FILL IN levels, those that are generally known, or delete this line",
}


@dataclass(frozen=True, kw_only=True)
class TemplateColumn:
    """A column of the new job: the kind that its cells seem to be of, or why it is left out.

    Attributes
    ----------
    name
        The column's name.
    kind
        What its author must fill in: bounds of numbers or dates, levels, or, for booleans, nothing.
    left_out
        Why it stands there as a comment; empty if it does not.
    levels
        Proposed levels, which stand there as a comment.
    """

    name: str
    kind: Literal["number", "boolean", "date", "levels"] = "number"
    left_out: str = ""
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TemplateParty:
    """A party of the new job: its table, relative to the job file, for a simulation; or its identity.

    Attributes
    ----------
    name, data, identity
        As in the job file.
    columns
        Where columns are split: its own.
    separator
        Of its CSV file, if it is no comma.
    decimal_commas
        Whether its numbers have decimal commas; None if they may have.
    """

    name: str
    data: str | None = None
    identity: str | None = None
    columns: tuple[str, ...] | None = None
    separator: str | None = None
    decimal_commas: bool | None = False


def render_template(
    *,
    name: str,
    k: int,
    columns: Sequence[str | TemplateColumn],
    parties: Sequence[TemplateParty],
    coordinator: str | None = None,
    address: str | None = None,
    id_column: str | None = None,
) -> str:
    """Return the text of a job file whose only errors are the blanks that its author must fill.

    Parameters
    ----------
    name
        The job's name.
    k
        The number of clusters.
    columns
        The columns, in order; names stand for columns of numbers.
    parties
        The parties; if there is only one, a second is added and marked to be filled in.
    coordinator, address
        The coordinator's identity, between organisations, and where it listens.
    id_column
        Where columns are split: the column by which records are aligned.
    """
    listed = [column if isinstance(column, TemplateColumn) else TemplateColumn(name=column) for column in columns]
    bounds = _render_columns(listed)
    sections = "\n".join(_render_party(party) for party in parties)
    if len(parties) < 2:
        second = TemplateParty(name="second", data="second.csv")
        sections += "\n" + _render_party(second, "  # FILL IN the other party's name and table")
    if coordinator is not None:
        sections = _render_coordinator(coordinator, address) + sections
    how_to_run = "Run it with: cloister run job.toml"
    if coordinator is not None:
        how_to_run = "Each party: cloister check job.toml --keys NAME --own FILE, then cloister join"
    return f"""\
# A Cloister job. Every party sees this file. {how_to_run}
version = 1                        # of the form of this file
name = {quote_string(name)}

# What the result may reveal of any one record, over all rounds: less is safer, more is more accurate.
# Above 10 no protection is claimed.
[budget]
epsilon = 1.0
# delta = 1e-6                     # the default; well below 1 / the number of records

[clusters]
k = {k}

# Public bounds of each column, in original units. Take them from what is generally known, not from the data: the
# smallest and the largest value are two people's records. Values outside are moved onto the bounds. Each is one of
#   age = {{ low = 0, high = 120 }}       admitted = {{ from = 2015-01-01, to = 2024-12-31 }}
#   sex = {{ levels = ["f", "m"] }}       smoker = {{ boolean = true }}
#   creatinine = {{ bounds = "private" }} where nobody knows them: they are found for a part of the budget
# With weight = 2 in its braces a column counts more. Delete the columns that should not be clustered.
[columns]
{bounds}

{_render_data(id_column)}
{sections}
{"[protocol]" + chr(10) + 'name = "vertical"' if id_column else "# [protocol]" + chr(10) + _list_protocols()}
# placement = "shared"             # who adds the noise: every party a share (default for 3 to 300 parties); "local",
#                                  # every party all of it (default for two); or "aggregator", the coordinator, which
#                                  # must then never see the result (default for more)
# colluding_max = 1                # with shared: so many parties may tell each other their shares (default: a third)
# min_parties = 3                  # fewer answering parties abort the run

# Each party's ledger says what its data have paid, over all jobs. It is in your data folder, if not in this one.
# [ledger]
# path = "ledgers"

# [network]
# model = "regWAN100"              # simulate the time on a network; 'cloister networks' lists them

# [run]
# seed = 7                         # the same run every time, but its masks and noise are not secret
# secure = true                    # refuse a seed
"""


def _render_columns(columns: Sequence[TemplateColumn]) -> str:
    """Return the lines of [columns]; what must be filled in, or left out, says so."""
    width = max(len(quote_key(column.name)) for column in columns)
    lines = []
    for column in columns:
        name = f"{quote_key(column.name):<{width}}"
        if column.left_out:
            lines.append(f"# {name} = {{}}  # {column.left_out}")
        elif column.kind == "boolean":
            lines.append(f"{name} = {{ boolean = true }}")
        else:
            lines.append(f"{name} = {{}}  # {_BLANKS[column.kind]}")
        if column.levels:
            levels = ", ".join(map(quote_string, column.levels))
            lines.append(f"# {name} = {{ levels = [{levels}] }}  # VALUES OF RECORDS: share only public ones")
    return "\n".join(lines)


def _render_data(id_column: str | None) -> str:
    """Return the section [data], with an ID column or as a comment."""
    lead = "# [data]" if id_column is None else f"[data]\nid = {quote_string(id_column)}"
    return f"""\
{lead}
# missing = "drop"                 # leave out records with missing cells; by default such a table is refused
# records = 100000                 # the total number of records, only if it is public anyway: saves some budget
"""


def _list_protocols() -> str:
    """Return the default protocol's name, with a comment that names the others."""
    known = known_options()
    default = next(iter(known))
    by_rows = {name: options for name, options in known.items() if options.facts.split == "rows" and name != default}
    private = [name for name, options in by_rows.items() if options.facts.budget == "required"]
    exact = [name for name in by_rows if name not in private]
    by_columns = [name for name, options in known.items() if options.facts.split == "columns"]
    comment = (
        f"the default; also private: {' | '.join(private)} (published variants of {join_or(name_takers('variant'))}: "
        f"only where their guarantee holds). NOT private (leave [budget] out): {' | '.join(exact)}. For parties that "
        f"hold different columns of the same records: {' | '.join(by_columns)}, private only with [budget]; see "
        "docs/job-file.md"
    )
    starts = chain([f"# name = {quote_string(default)}"], repeat("#"))
    lines = textwrap.wrap(comment, 80, break_on_hyphens=False)
    return "\n".join(f"{start:<{_COMMENTS_AT}}# {line}" for line, start in zip(lines, starts, strict=False))


def _render_party(party: TemplateParty, comment: str = "") -> str:
    """Return one [[parties]] section."""
    keys = {"identity": party.identity, "data": party.data, "separator": party.separator}
    given = "".join(f"{key} = {quote_string(value)}\n" for key, value in keys.items() if value is not None)
    if party.decimal_commas is not False:
        given += (
            'decimal = ","\n' if party.decimal_commas else '# decimal = ","  # if its numbers have decimal commas\n'
        )
    if party.columns is not None:
        given += f"columns = [{', '.join(map(quote_string, party.columns))}]\n"
    return f"[[parties]]\nname = {quote_string(party.name)}{comment}\n{given}"


def _render_coordinator(identity: str, address: str | None) -> str:
    """Return the section [coordinator]."""
    where = '# address = "cluster.example.org:7400"    # where it listens; the parties call it\n'
    if address is not None:
        where = f"address = {quote_string(address)}\n"
    return f"[coordinator]\nidentity = {quote_string(identity)}\n{where}\n"
