"""The layout of reports: headings, lines and tables; numbers with their significant digits and the right noun.

Coloured on a terminal, plain text elsewhere. A number with noise is shown with two digits of the noise's deviation at
most and itself to the same place; a centre without, to a thousandth of its column's range.
"""

from __future__ import annotations

import math
import textwrap
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column as TableColumn
from rich.table import Table
from rich.text import Text

from cloister.columns import Column, Coordinate, show_date

WIDTH = 100
_INDENT, _GAP = 2, 2  # blanks before a table, and between its columns on a narrow terminal
_MOST_DECIMALS = 9
_ONE_DIGIT_FROM = 3.55  # a deviation from 3.55 to 9.5 units of a place is shown to that place
_FINER = 2  # digits that are shown of a value with little noise beyond a thousandth of its column's range
_LARGEST_PLAIN = 1e15


def make_console(file: TextIO | None = None, *, stderr: bool = False) -> Console:
    """Make a console, at most 100 columns wide, that prints names as they are and ignores markup in them."""
    console = Console(file=file, stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console


def print_heading(console: Console, text: str) -> None:
    """Print a section's heading, with an empty line before it."""
    console.print()
    console.print(Text(text, style="bold"))


def print_line(console: Console, text: str) -> None:
    """Print wrapped text, indented like the tables."""
    console.print(Text(textwrap.fill(text, console.width, initial_indent="  ", subsequent_indent="  ")))


def make_table(*headings: str, left: int = 1) -> Table:
    """Make a table whose first ``left`` columns hold words and whose others hold numbers."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
    for i, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if i < left else "right", overflow="fold")
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table, indented; on a narrow terminal its columns are fitted to it."""
    if console.width < WIDTH:
        _fit(table, console, console.width - _INDENT)
    console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))


def _fit(table: Table, console: Console, room: int) -> None:
    """Narrow a table's columns so that no word is broken, nor any number, if there is room for that."""
    table.collapse_padding = True
    room -= _GAP * (len(table.columns) - 1)
    spans = [_measure(column, console) for column in table.columns]
    widths = [
        words if column.justify == "left" else numbers
        for column, (words, numbers, _) in zip(table.columns, spans, strict=True)
    ]
    if sum(widths) > room:
        widths = [words for words, _, _ in spans]
    missing = [most - width for (_, _, most), width in zip(spans, widths, strict=True)]
    spare = room - sum(widths)
    if spare < 0 or spare >= sum(missing):  # rich breaks words, or nothing need be narrowed
        return
    for left, place in zip(range(len(widths), 0, -1), sorted(range(len(widths)), key=missing.__getitem__), strict=True):
        granted = min(missing[place], spare // left)
        spare -= granted
        table.columns[place].width = widths[place] + granted


def _measure(column: TableColumn, console: Console) -> tuple[int, int, int]:
    """Return how wide a column is that breaks no word, that breaks no cell but its heading, and that breaks nothing."""
    heading, *cells = (Measurement.get(console, console.options, cell) for cell in (column.header, *column.cells))
    words, longest = max(one.minimum for one in (heading, *cells)), max((one.maximum for one in cells), default=0)
    return words, max(heading.minimum, longest), max(heading.maximum, longest)


def format_value(value: float, column: Column | Coordinate, noise: float | None = None) -> str:
    """Format a value of a column in original units, to about a thousandth of the column's range; with noise, to its."""
    if column.kind == "date":
        return show_date(value) if noise is None else f"{show_date(value)} ± {_format_deviation(noise)} d"
    if column.kind in ("boolean", "level"):
        return format_percent(min(max(value, 0.0), 1.0), noise)
    decimals = 3 - math.floor(math.log10(column.high - column.low))
    if decimals > _MOST_DECIMALS or max(abs(value), noise or 0.0) >= _LARGEST_PLAIN:
        return f"{value:.4g}" if noise is None else f"{value:.4g} ± {noise:.2g}"
    if noise is not None:
        return format_uncertain(value, noise, finest=-max(0, decimals + _FINER))
    return _strip_sign(f"{value:,.{max(0, decimals)}f}")


def format_percent(share: float, noise: float | None) -> str:
    """Format a share of records in per cent."""
    if noise is None:
        return f"{100 * share:.1f} %"
    return f"{format_uncertain(100 * share, 100 * noise, finest=-1)} %"


def _format_deviation(days: float) -> str:
    """Format a deviation in days as that of a value that is shown to the day."""
    return format_uncertain(0.0, max(days, 1.0)).partition(" ± ")[2]


def format_uncertain(value: float, deviation: float, *, finest: int = 0) -> str:
    """Format a value with its standard deviation, both rounded to the same place.

    The deviation has two significant digits if it begins with 1, 2 or a 3 below 3.55, else one: the rule of the
    Particle Data Group. No place is finer than 10^finest, where the deviation is at least 1.
    """
    place = finest
    if deviation > 0:
        place = max(finest, math.floor(math.log10(deviation) - math.log10(_ONE_DIGIT_FROM)))
    step, decimals = 10.0**place, max(0, -place)
    shown = f"{round(value / step) * step:,.{decimals}f}"
    return f"{_strip_sign(shown)} ± {max(1, round(deviation / step)) * step:,.{decimals}f}"


def _strip_sign(text: str) -> str:
    """Remove the sign of a zero."""
    return text if text.strip("-0.,") else text.removeprefix("-")


def format_count(count: float) -> str:
    """Format a noisy count of records: an integer with three significant digits."""
    step = 10 ** max(0, math.floor(math.log10(max(count, 1.0))) - 2)
    return f"{round(count / step) * step:,}"


def format_noisy_count(count: float, deviation: float, most: float = math.inf) -> str:
    """Format a noisy count with the standard deviation of its noise, or a bound if it is lost in the noise.

    Below two deviations the true count may well be zero. It is then hardly more than two deviations above what was
    seen, and not above ``most``. The bound has two digits and is rounded up, so that it is above what was seen.
    """
    if deviation == 0:
        return f"{count:,.0f}"
    if not is_lost(count, deviation):
        return format_uncertain(count, deviation)
    bound = max(count, min(count + 2 * deviation, most), 1.0)
    step = 10 ** max(0, math.floor(math.log10(bound)) - 1)
    return f"fewer than {(math.floor(bound / step) + 1) * step:,}"


def is_lost(size: float, deviation: float) -> bool:
    """Whether noise may well be all there is of a size."""
    return deviation > 0 and size < 2 * deviation


def format_number(value: float, digits: int = 6) -> str:
    """Format a number with this many significant digits; from 1000 on, with all digits before the point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < _LARGEST_PLAIN else f"{value:.{digits}g}"


def choose_noun(count: float, one: str, many: str | None = None) -> str:
    """Return the noun that goes with a count, which is shown without decimals."""
    return one if round(count) == 1 else many or f"{one}s"


def format_quantity(count: int, one: str, many: str | None = None) -> str:
    """Format an exact count and its noun: 1 round, 2,000 parties."""
    return f"{count:,} {choose_noun(count, one, many)}"


def format_bytes(count: int) -> str:
    """Format a number of bytes in the largest unit that leaves a digit before the point."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def format_seconds(seconds: float) -> str:
    """Format a duration with three significant digits."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:,.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
