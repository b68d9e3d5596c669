"""Cost against total epsilon: each method's Pareto front as the paper draws it, and its excess over the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from papers.fastlloyd.drawing import (
    make_figure,
    save_figure,
    set_epsilon_ticks,
    set_loss_ticks,
    tidy_axes,
)
from papers.feddp.lines import ALL_LINES, OPTIMAL, Line
from papers.feddp.peers import Peers
from papers.feddp.points import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COST_SPAN = 12.0
"""The paper's axis shows costs up to about so much above the optimum, of a mixture; some lines leave it."""

_LEAST_EXCESS = 1e-5
"""Where shades end: a logarithmic axis has no place for less, and a local optimum can beat the one called optimal."""


def draw_comparisons(title: str, comparisons: Sequence[Comparison], peers: Peers) -> bytes:
    """Draw two panels for each data set, cost and excess; returns a PNG file."""
    figure = make_figure(10.4, 3.9 * len(comparisons) + 0.5)
    has_rings = False
    grid = figure.subplots(len(comparisons), 2, squeeze=False)
    for row, comparison in zip(grid, comparisons, strict=True):
        epsilons = tuple(sorted({p.setting.epsilon for p in comparison.points if p.setting.epsilon is not None}))
        for line in ALL_LINES:
            _draw_front(row[0], comparison, line, above=0.0)
            if line != OPTIMAL:
                _draw_front(row[1], comparison, line, above=comparison.optimum)
                has_rings |= _draw_peers(row[1], comparison, line, epsilons, peers)
        label = comparison.data.label
        tidy_axes(row[0], title=label, x="total epsilon", y="k-means cost a record")
        tidy_axes(row[1], title=f"{label}, logarithmic", x="total epsilon", y="cost above the optimum")
        for axes in row:
            set_epsilon_ticks(axes, epsilons)
        _limit_cost(row[0], comparison)
        set_loss_ticks(row[1])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    legend = "Shades: from the best to the worst run."
    if has_rings:
        legend += " Rings: the authors' code (for Cloister: a study) on another draw."
    figure.suptitle(f"{title}. {legend}", fontsize=9, x=0.01, ha="left")
    return save_figure(figure)


def _draw_front(axes: Axes, comparison: Comparison, line: Line, *, above: float) -> None:
    """Draw the Pareto front of a method, or a level where it has no epsilon."""
    front = comparison.front(line)
    if not line.private:
        axes.axhline(front[0].cost.mean - above, label=line.label, **line.style)
        return
    epsilons = np.array([point.setting.epsilon for point in front], dtype=np.float64)
    means = np.array([point.cost.mean for point in front]) - above
    least = np.array([point.least for point in front]) - above
    most = np.array([point.most for point in front]) - above
    axes.plot(epsilons, means, label=line.label, marker="o", markersize=3.2, **line.style)
    axes.fill_between(epsilons, np.maximum(least, _LEAST_EXCESS), most, color=line.colour, alpha=0.12, linewidth=0)


def _draw_peers(axes: Axes, comparison: Comparison, line: Line, epsilons: tuple[float, ...], peers: Peers) -> bool:
    """Draw what the authors' code reached as rings; tells whether there are any."""
    found = [(epsilon, peers.find(comparison.data, line.peer, epsilon)) for epsilon in epsilons]
    known = [(epsilon, excess) for epsilon, excess in found if excess is not None and excess > 0]
    if known:
        axes.plot(*zip(*known, strict=True), "o", color=line.colour, markerfacecolor="white", markersize=4.5, zorder=1)
    return bool(known)


def _limit_cost(axes: Axes, comparison: Comparison) -> None:
    """Show what the paper's axis shows: nothing far above the starts without a client's help."""
    costs = np.array([point.cost.mean for point in comparison.points])
    span = min(float(costs.max() - comparison.optimum), _COST_SPAN if comparison.optimum > _COST_SPAN else np.inf)
    axes.set_ylim(comparison.optimum - 0.06 * span, comparison.optimum + 1.05 * max(span, 1e-9))
