"""The choice of k: every k that was tried on the released synopsis, printed and drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from cloister.report.layout import make_table, print_heading, print_line, print_table
from cloister.report.result import KChoice, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS, _MOST_TICKS = 20, 12
_INK, _FAINT, _CHOSEN = "#0072B2", "#9A9A9A", "#D55E00"


def print_curve(result: Result, console: Console) -> None:
    """Print each k that was tried; nothing where k was given."""
    if not result.curve:
        return
    tried = sorted(result.curve, key=lambda choice: choice.k)
    print_heading(console, f"Choice of k: {result.k}, of {tried[0].k} to {tried[-1].k}")
    shown = _choose_rows(tried, result.k)
    table = make_table("k", "loss", "score", "")
    for choice in shown:
        mark = "chosen" if choice.k == result.k else ""
        table.add_row(f"{choice.k}", f"{choice.loss:.4g}", f"{choice.score:.4g}", mark)
    print_table(console, table)
    if len(shown) < len(tried):
        print_line(console, f"and {len(tried) - len(shown)} others, in result.json")
    print_line(
        console,
        "Loss and score on the noisy histogram, which had been released anyway: the choice cost no privacy. "
        "The largest score wins.",
    )


def _choose_rows(tried: list[KChoice], k: int) -> list[KChoice]:
    """Return at most 20 choices in order of k: the chosen one and those nearest to it."""
    nearest = sorted(tried, key=lambda choice: (abs(choice.k - k), choice.k))[:_MOST_ROWS]
    return sorted(nearest, key=lambda choice: choice.k)


def draw_curve(axes: Axes, result: Result) -> None:
    """Draw the score over k, the chosen one marked, and the loss faintly behind it on its own scale."""
    tried = sorted(result.curve, key=lambda choice: choice.k)
    ks = [choice.k for choice in tried]
    behind = axes.twinx()
    behind.plot(ks, [choice.loss for choice in tried], color=_FAINT, linewidth=1.2, linestyle="--")
    behind.set_ylabel("loss (dashed)", fontsize=9, color=_FAINT)
    behind.tick_params(axis="y", labelsize=8, colors=_FAINT, length=0)
    behind.spines[:].set_visible(False)
    axes.plot(ks, [choice.score for choice in tried], color=_INK, linewidth=1.6, marker="o", markersize=4)
    chosen = next(choice for choice in tried if choice.k == result.k)
    axes.scatter([chosen.k], [chosen.score], s=90, color=_CHOSEN, edgecolors="white", linewidths=1.4, zorder=3)
    axes.set_xlabel("k")
    axes.set_ylabel("score", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.set_xticks(ks[:: -(-len(ks) // _MOST_TICKS)])
    axes.set_title(f"Choice of k: {result.k}", fontsize=10, loc="left")
    axes.grid(color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
