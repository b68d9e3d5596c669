"""Messages on standard error while a command runs: progress, and what the owner of a table must know about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from cloister.columns import Column
    from cloister.data import TableCheck
    from cloister.job import Job
    from cloister.runtime import Progress
    from cloister.sessions import OnTable

_MOST_LINES = 20
_MOST_NAMES = 4


@contextmanager
def show_progress(console: Console, *, quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """Show what a run is doing and whom it is waiting for, until the block ends: a bar on a terminal, else plain lines.

    Parameters
    ----------
    console
        The console for standard error.
    quiet
        Show nothing.

    Yields
    ------
    callable
        The callback for ``simulate``.
    """
    if quiet:
        yield lambda progress: None
    elif console.is_terminal:
        columns = (
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
        )
        with Bar(*columns, console=console, transient=True) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda progress: bar.update(
                task, completed=progress.step, total=progress.steps, description=describe_progress(progress)
            )
    else:
        yield PlainLines(console).show


class PlainLines:
    """One line per step, or per several steps if there are more than twenty; one for each wait outside of steps."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: tuple[int, str] = -1, ""

    def show(self, progress: Progress) -> None:
        """Print a line if the step is finished and due to be shown."""
        every = max(1, -(-progress.steps // _MOST_LINES))
        due = progress.step % every == 0 or progress.step == progress.steps
        step = progress.step, "" if progress.steps else progress.label
        if due and step != self._shown:
            self._shown = step
            place = f"[{progress.step}/{progress.steps}] " if progress.steps else ""
            self._console.print(f"{place}{describe_progress(progress)}", soft_wrap=True)


def describe_progress(progress: Progress) -> str:
    """Return the step, and whom it is waiting for."""
    if not progress.waiting_for:
        return progress.label
    return f"{progress.label}, waiting for {name_some(progress.waiting_for)}"


def name_some(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


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
