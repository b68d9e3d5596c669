"""What the owner of a table must know about it, on standard error while a command runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from cloister.columns import Column
    from cloister.data import TableCheck
    from cloister.job import Job
    from cloister.sessions import OnTable


def report_clipped(job: Job, errors: Console) -> OnTable:
    """Return a callback that tells each party what of its table does not count as it stands."""
    columns = {party.name: job.find_columns(party) for party in job.parties}

    def report(party: str, check: TableCheck) -> None:
        for line in describe_changes(columns[party], check):
            errors.print(f"cloister: for {party} only: {line}.", soft_wrap=True)

    return report


def describe_changes(columns: Sequence[Column], check: TableCheck) -> list[str]:
    """Say how many records were left out, values moved, and levels unknown; for the table's owner only."""
    outside, unknown = list_outside(columns, check.clipped)
    lines = []
    if check.dropped:
        gaps = f"records with missing cells were left out: {check.dropped:,}, which leaves {check.records:,}"
        lines.append(gaps)
    if outside:
        lines.append(f"values outside the bounds were moved onto them: {', '.join(outside)}")
    if unknown:
        lines.append(f"values that are none of the levels: {', '.join(unknown)}")
    return lines


def list_outside(columns: Sequence[Column], clipped: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return, by column, how many values were outside the bounds, and how many were none of the levels."""
    outside: list[str] = []
    unknown: list[str] = []
    for column, count in zip(columns, clipped, strict=True):
        if count:
            (unknown if column.kind == "category" else outside).append(f"{column.name} {count:,}")
    return outside, unknown
