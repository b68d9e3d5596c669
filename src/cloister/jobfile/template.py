"""A new job file with comments: everything is filled in except the public bounds, which only its author can know."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from cloister.job.options import join_or, known_options, name_takers
from cloister.job.refusals import quote_key, quote_string

_COMMENTS_AT = 35


@dataclass(frozen=True, kw_only=True)
class TemplateParty:
    """A party of the new job: its table, relative to the job file, for a simulation; or its identity."""

    name: str
    data: str | None = None
    identity: str | None = None


def render_template(
    *,
    name: str,
    k: int,
    columns: Sequence[str],
    parties: Sequence[TemplateParty],
    coordinator: str | None = None,
    address: str | None = None,
) -> str:
    """Return the text of a job file whose only errors are the blanks that its author must fill.

    Parameters
    ----------
    name
        The job's name.
    k
        The number of clusters.
    columns
        Names of the columns, in order.
    parties
        The parties; if there is only one, a second is added and marked to be filled in.
    coordinator, address
        The coordinator's identity, between organisations, and where it listens.
    """
    width = max(len(quote_key(column)) for column in columns)
    bounds = "\n".join(f"{quote_key(column):<{width}} = {{}}  # FILL IN low and high" for column in columns)
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

# Public bounds of each column, in original units: age = {{ low = 0, high = 120 }}
# Take them from what is generally known, not from the data: the smallest and the largest value are two
# people's records. Values outside are moved onto the bounds. Delete the columns that should not be clustered.
[columns]
{bounds}

# [data]
# match = "name"                   # take columns by name, whatever their order in the tables
# records = 100000                 # the total number of records, only if it is public anyway: saves some budget

{sections}
# [protocol]
{_list_protocols()}
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
    keys = {"identity": party.identity, "data": party.data}
    given = "".join(f"{key} = {quote_string(value)}\n" for key, value in keys.items() if value is not None)
    return f"[[parties]]\nname = {quote_string(party.name)}{comment}\n{given}"


def _render_coordinator(identity: str, address: str | None) -> str:
    """Return the section [coordinator]."""
    where = '# address = "cluster.example.org:7400"    # where it listens; the parties call it\n'
    if address is not None:
        where = f"address = {quote_string(address)}\n"
    return f"[coordinator]\nidentity = {quote_string(identity)}\n{where}\n"
