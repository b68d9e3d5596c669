"""A new job file with comments: everything filled in but what only its author can know, the public bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloister.job.refusals import quote_key, quote_string


@dataclass(frozen=True, kw_only=True)
class TemplateParty:
    """A party of the new job, its path relative to the job file."""

    name: str
    data: str


def render_template(*, name: str, k: int, columns: Sequence[str], parties: Sequence[TemplateParty]) -> str:
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
        Parties that are known; a marked second one is added to a single one.
    """
    width = max(len(quote_key(column)) for column in columns)
    bounds = "\n".join(f"{quote_key(column):<{width}} = {{}}  # FILL IN low and high" for column in columns)
    sections = "\n".join(_render_party(party.name, party.data) for party in parties)
    if len(parties) < 2:
        sections += "\n" + _render_party("second", "second.csv", "  # FILL IN the other party's name and table")
    return f"""\
# A Cloister job. Every party sees this file. Run it with: cloister run job.toml
name = {quote_string(name)}

# What the result may reveal of any one record, over all rounds: less is safer, more is more accurate.
[budget]
epsilon = 1.0
# delta = 1e-6                     # the default; well below 1 / the number of records

[clusters]
k = {k}

# Public bounds of each column, in original units: age = {{ low = 0, high = 120 }}
# Take them from what is generally known, not from the data: the smallest and the largest value are two
# people's records. Values outside are moved onto the bounds. Delete the columns that shall not take part.
[columns]
{bounds}

# [data]
# match = "name"                   # take columns by name, whatever their order in the tables
# records = 100000                 # the number of all records, only if it is public anyway: saves some budget

{sections}
# [protocol]
# name = "synopsis"                # the default; also private: fastlloyd | mask-noise-average; without [budget], exact:
#                                  # naive | masked-sum-count | masked-centroid. For parties that hold different
#                                  # columns of the same records: vertical, see docs/job-file.md
# placement = "shared"             # every party adds a share of the noise, instead of the coordinator all of it
# colluding_max = 1                # with shared: so many parties may tell each other their shares
# min_parties = 3                  # fewer answering parties abort the run

# One ledger a party, in this folder: what its records have paid, over all jobs.
# [ledger]
# path = "ledgers"

# [network]
# model = "regWAN100"              # simulate the time on a network; 'cloister networks' lists them

# [run]
# seed = 7                         # the same run every time; its masks and noise are then not secret
# secure = true                    # refuse a seed
"""


def _render_party(name: str, data: str, comment: str = "") -> str:
    """Return one [[parties]] section."""
    return f"[[parties]]\nname = {quote_string(name)}{comment}\ndata = {quote_string(data)}\n"
