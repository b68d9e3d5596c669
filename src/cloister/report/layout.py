"""Headings, lines and tables as all printed reports have them: coloured on a terminal, plain text elsewhere."""

from __future__ import annotations

import textwrap
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDTH = 100


def make_console(file: TextIO | None = None, *, stderr: bool = False) -> Console:
    """Make a console that prints names as they are, without obeying markup, at most 100 columns wide."""
    console = Console(file=file, stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console


def print_heading(console: Console, text: str) -> None:
    """Print a section's heading, with an empty line before it."""
    console.print()
    console.print(Text(text, style="bold"))


def print_line(console: Console, text: str) -> None:
    """Print wrapped text, indented as the tables are."""
    console.print(Text(textwrap.fill(text, console.width, initial_indent="  ", subsequent_indent="  ")))


def make_table(*headings: str, left: int = 1) -> Table:
    """Make a table whose first ``left`` columns hold words and whose others hold numbers."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
    for i, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if i < left else "right", overflow="fold")
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table, indented."""
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
