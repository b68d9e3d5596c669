"""Messages on standard error while a command runs: progress, and what the owner of a table must know about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

if TYPE_CHECKING:
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
