"""How many digits are worth showing: of a centre a thousandth of the column's range, of a noisy count three."""

from __future__ import annotations

import math

from cloister.data.columns import Column

_MOST_DECIMALS = 9
_LARGEST_PLAIN = 1e15


def format_value(value: float, column: Column) -> str:
    """Write a value of a column in original units, to about a thousandth of the column's range."""
    decimals = 3 - math.floor(math.log10(column.high - column.low))
    if decimals > _MOST_DECIMALS or abs(value) >= _LARGEST_PLAIN:
        return f"{value:.4g}"
    text = f"{value:.{max(0, decimals)}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def format_count(count: float) -> str:
    """Write a noisy count of records: three digits that matter, and none behind the point."""
    step = 10 ** max(0, math.floor(math.log10(max(count, 1.0))) - 2)
    return f"{round(count / step) * step:,}"


def format_bytes(count: int) -> str:
    """Write a number of bytes in the largest unit that keeps one digit before the point."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def format_seconds(seconds: float) -> str:
    """Write a duration with three digits that matter."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:,.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
