"""Figures in one style; matplotlib is loaded only when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 130
# Okabe and Ito's colours, which all common kinds of colour vision distinguish.
BLUE, RED, GREEN, PINK, SKY, ORANGE, GREY, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#7F7F7F",
    "#000000",
)


def make_figure(width_in: float, height_in: float) -> Figure:
    """Make an empty figure that makes room for its labels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (optional)
    from matplotlib.figure import Figure  # noqa: PLC0415 (optional)
    from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 (optional)

    figure = Figure(figsize=(width_in, height_in), dpi=_DPI, layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06))
    FigureCanvasAgg(figure)
    return figure


def finish_figure(figure: Figure, title: str, *, legend_columns: int) -> bytes:
    """Put the title above and the first panel's legend below; return a PNG file that depends on nothing else."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=legend_columns, fontsize=8.5, frameon=False)
    figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()


def tidy_axes(axes: Axes, *, title: str, x: str, y: str) -> None:
    """Put titles on, and take away what is not needed."""
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def set_epsilon_ticks(axes: Axes, epsilons: Sequence[float]) -> None:
    """A logarithmic axis with the values that were run, as far as they have room."""
    from matplotlib.ticker import NullFormatter, NullLocator  # noqa: PLC0415 (optional)

    axes.set_xscale("log")
    shown: list[float] = []
    for epsilon in epsilons:
        if not shown or epsilon >= 1.9 * shown[-1]:
            shown.append(epsilon)
    axes.set_xticks(shown, [f"{epsilon:g}" for epsilon in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())


def set_loss_ticks(axes: Axes) -> None:
    """A logarithmic axis whose ticks are plain numbers, wide enough for the lines; shades may leave it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 (optional)

    axes.set_yscale("log")
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()])
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    if drawn.size:
        axes.set_ylim(drawn.min() / 1.3, drawn.max() * 1.3)
    low, high = axes.get_ylim()
    steps: tuple[float, ...] = (1.0, 2.0, 5.0) if high / low < 100 else (1.0,)
    if high / low < 10:
        steps = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_line(
    axes: Axes, x: Any, means: Any, half_widths: Any, *, label: str, signed: bool = False, **style: Any
) -> None:
    """Draw a line with its 95 % interval as a shade; ``signed`` where it may go below zero."""
    means, half_widths = np.asarray(means, dtype=float), np.nan_to_num(np.asarray(half_widths, dtype=float))
    (line,) = axes.plot(x, means, label=label, **{"linewidth": 1.6, "marker": "o", "markersize": 3.2, **style})
    low = means - half_widths
    if not signed:  # a logarithmic axis has no place for less
        low = np.maximum(low, 0.02 * np.abs(means))
    axes.fill_between(x, low, means + half_widths, color=line.get_color(), alpha=0.15, linewidth=0)
