"""What a run is doing meanwhile: a bar on a terminal, plain lines elsewhere, or Python's logger ``cloister``.

No value of a record is in any of it: steps have public names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from cloister.errors import ConfigError
from cloister.report.layout import make_console
from cloister.runtime import OnProgress, Progress

LOGGER = logging.getLogger("cloister")
LOGGER.addHandler(logging.NullHandler())
Follow = OnProgress | Literal["rich", "log"] | None
"""A function that is called with each step, a bar, the logger, or nothing."""

_MOST_LINES = 20
_MOST_NAMES = 4
_WIDE = 80  # where there is room for a bar beside the words


@contextmanager
def follow(how: object) -> Iterator[OnProgress | None]:
    """Return the callback for what a caller asks for, which should be a `Follow`.

    Raises
    ------
    ConfigError
        If it is nothing of the kind.
    """
    if how == "rich":
        with show_progress(make_console(stderr=True)) as show:
            yield show
    elif how == "log":
        yield PlainLines(lambda line: LOGGER.info("%s", line)).show
    elif how is None or callable(how):
        yield cast("OnProgress | None", how)
    else:
        got = repr(how) if isinstance(how, str) else type(how).__name__
        raise ConfigError(f'on_progress must be a function, "rich", "log" or None; got {got}.')


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
        words = Column(overflow="ellipsis", no_wrap=True, ratio=1)
        columns = (
            *((BarColumn(bar_width=30),) if console.width >= _WIDE else ()),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", table_column=words, markup=False),
        )
        with Bar(*columns, console=console, transient=True, expand=True) as bar:
            task = bar.add_task("starting", total=None)
            yield lambda progress: bar.update(
                task, completed=progress.step, total=progress.steps, description=describe_progress(progress)
            )
    else:
        yield PlainLines(partial(console.print, soft_wrap=True)).show


class PlainLines:
    """One line per step, or per several steps if there are more than twenty; one for each wait outside of steps."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._shown: tuple[int, str] = -1, ""

    def show(self, progress: Progress) -> None:
        """Print a line if the step is finished and due to be shown."""
        every = max(1, -(-progress.steps // _MOST_LINES))
        due = progress.step % every == 0 or progress.step == progress.steps
        step = progress.step, "" if progress.steps else progress.label
        if due and step != self._shown:
            self._shown = step
            place = f"[{progress.step}/{progress.steps}] " if progress.steps else ""
            self._write(f"{place}{describe_progress(progress)}")


def describe_progress(progress: Progress) -> str:
    """Return the step, and whom it is waiting for."""
    if not progress.waiting_for:
        return progress.label
    return f"{progress.label}, waiting for {name_some(progress.waiting_for)}"


def name_some(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
