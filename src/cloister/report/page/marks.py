"""The marks of clusters: a colour and a shape each, so that nobody needs to tell colours apart; and scales of axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cloister.columns import show_date
from cloister.report.page.html import Html, tag

COLOURS = 8
"""Set in page.css for light and dark, after Okabe and Ito."""
_SHAPES = (
    "M-6,0a6,6 0 1,0 12,0a6,6 0 1,0 -12,0z",  # circle
    "M-5.3,-5.3h10.6v10.6h-10.6z",  # square
    "M0,-7L6.5,5H-6.5z",  # triangle
    "M0,-7.5L7.5,0L0,7.5L-7.5,0z",  # diamond
    "M-2.2,-6.5h4.4v4.3h4.3v4.4h-4.3v4.3h-4.4v-4.3h-4.3v-4.4h4.3z",  # plus
    "M0,7L6.5,-5H-6.5z",  # triangle, turned
    "M-3.4,-6.2h6.8l3.4,6.2l-3.4,6.2h-6.8l-3.4,-6.2z",  # hexagon
    "M0,-7.5L2.2,-2.4L7.1,-2.3L3.2,1L4.6,6.2L0,3.2L-4.6,6.2L-3.2,1L-7.1,-2.3L-2.2,-2.4z",  # star
    "M-6.5,-3.2L-3.2,-6.5L0,-3.2L3.2,-6.5L6.5,-3.2L3.2,0L6.5,3.2L3.2,6.5L0,3.2L-3.2,6.5L-6.5,3.2L-3.2,0z",  # cross
)  # nine shapes and eight colours: no two of 72 clusters have both in common


def define_shapes() -> Html:
    """Return what every page with marks must hold once."""
    paths = [tag("path", id=f"shape{n}", d=path) for n, path in enumerate(_SHAPES)]
    return tag("svg", tag("defs", paths), class_="shapes", aria_hidden="true")


def draw_mark(j: int, x: float = 0.0, y: float = 0.0, *, hollow: bool = False) -> Html:
    """Draw the mark of a cluster, hollow where it may be noise."""
    kind = f"mark c{j % COLOURS}" + (" hollow" if hollow else "")
    return tag("use", href=f"#shape{j % len(_SHAPES)}", class_=kind, x=round(x, 1) or None, y=round(y, 1) or None)


def draw_key(j: int, *, hollow: bool = False) -> Html:
    """Draw the mark of a cluster beside its name."""
    return tag("svg", draw_mark(j, hollow=hollow), class_="key", viewbox="-9 -9 18 18", aria_hidden="true")


@dataclass(frozen=True)
class Scale:
    """An axis: from ``low`` to ``high`` in original units, from one place of a drawing to another."""

    low: float
    high: float
    start: float
    end: float
    kind: str = "number"

    def place(self, value: float) -> float:
        """Return where a value is."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Return round numbers on the axis and their texts; dates are days that lie evenly."""
        low, high = self.low, self.high
        if self.kind == "date":
            days = sorted({round(low + (high - low) * part / 3) for part in range(4)})
            return [(float(day), show_date(day)) for day in days if low <= day <= high]
        step = 10.0 ** math.floor(math.log10((high - low) / most))
        step *= next(times for times in (1, 2, 5, 10) if (high - low) / (step * times) <= most)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        first = math.ceil(low / step - 1e-9)
        numbers = [i * step for i in range(first, first + most + 2) if i * step <= high + 1e-9 * (high - low)]
        if self.kind in ("boolean", "level"):
            return [(number, f"{100 * number:.{max(0, decimals - 2)}f} %") for number in numbers]
        return [(number, _write(number, decimals)) for number in numbers]


def _write(number: float, decimals: int) -> str:
    text = f"{number:,.{decimals}f}"
    shown = text if len(text) <= 9 else f"{number:.3g}"
    return shown.replace("-", "\N{MINUS SIGN}") if shown.strip("-0.,") else "0"
