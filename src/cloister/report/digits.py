"""Numbers as people read them: the digits that matter, thousands apart, and the right noun behind a count.

Of a centre a thousandth of the column's range matters, of a noisy count three digits.
"""

from __future__ import annotations

import math

from cloister.columns import Column

_MOST_DECIMALS = 9
_LARGEST_PLAIN = 1e15


def format_value(value: float, column: Column) -> str:
    """Write a value of a column in original units, to about a thousandth of the column's range."""
    decimals = 3 - math.floor(math.log10(column.high - column.low))
    if decimals > _MOST_DECIMALS or abs(value) >= _LARGEST_PLAIN:
        return f"{value:.4g}"
    text = f"{value:,.{max(0, decimals)}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def format_count(count: float) -> str:
    """Write a noisy count of records: three digits that matter, and none behind the point."""
    step = 10 ** max(0, math.floor(math.log10(max(count, 1.0))) - 2)
    return f"{round(count / step) * step:,}"


def format_noisy_count(count: float, deviation: float | None, most: float | None = None) -> str:
    """Write a noisy count with the standard deviation of its noise, or a bound where it is lost in the noise.

    Below two deviations the count may as well be none: what is known is that it is hardly above two deviations more,
    and not above ``most``.
    """
    if deviation is None:
        return f"about {format_count(count)}"
    if count < 2 * deviation:
        bound = count + 2 * deviation
        return f"fewer than {format_count(max(1.0, bound if most is None else min(bound, most)))}"
    return f"{format_count(count)} ± {format_count(max(deviation, 1.0))}"


def format_number(value: float, digits: int = 6) -> str:
    """Write a number with this many digits that matter; from 1000 on, all before the point."""
    return f"{value:,.0f}" if 1000 <= abs(value) < _LARGEST_PLAIN else f"{value:.{digits}g}"


def choose_noun(count: float, one: str, many: str | None = None) -> str:
    """Return the noun that goes with a count, as it is shown without digits behind the point."""
    return one if round(count) == 1 else many or f"{one}s"


def format_quantity(count: int, one: str, many: str | None = None) -> str:
    """Write an exact count and its noun: 1 round, 2,000 parties."""
    return f"{count:,} {choose_noun(count, one, many)}"


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
