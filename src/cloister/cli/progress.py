"""What the owner of a table must know about it, on standard error while a command runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from cloister.data import TableCheck
    from cloister.job import Job
    from cloister.sessions import OnTable


def report_clipped(job: Job, errors: Console) -> OnTable:
    """Return a callback that tells each party how many of its values are outside the public bounds."""
    names = {party.name: [column.name for column in job.find_columns(party)] for party in job.parties}

    def report(party: str, check: TableCheck) -> None:
        named = [f"{name} {count}" for name, count in zip(names[party], check.clipped, strict=True) if count]
        if named:
            errors.print(
                f"cloister: for {party} only: values outside the bounds were moved onto them: {', '.join(named)}.",
                soft_wrap=True,
            )

    return report
