"""Figures 1 to 9: cost against total epsilon, on mixtures and, where their files are given, on real data.

Drawn twice: each method's Pareto front as the paper has it, and its excess over the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from papers.feddp.comparison import (
    ALL_LINES,
    AS_SHIPPED,
    OPTIMAL,
    PUBLISHED,
    Comparison,
    Line,
    Peers,
    Point,
    compare,
    list_comparison,
    load_peers,
)
from papers.feddp.datasets import DataSet
from papers.feddp.scope import Scope
from papers.feddp.trials import Score, Trial, TrialLab
from papers.lab import drawing
from papers.lab.k_fed import write_k_fed_card
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COST_SPAN = 12.0
"""The paper's axis shows costs up to about so much above the optimum, of a mixture; some lines leave it."""

_LEAST_EXCESS = 1e-5
"""Where shades end: a logarithmic axis has no place for less, and a local optimum can beat the one called optimal."""

_NOTES = (
    "Shown: cost above that of Optimal, and the cost of Optimal; cost is the squared distance to the nearest centre, a "
    "record. At each epsilon the best of the settings that were tried, by the mean of its runs; CPU: of one run, "
    "clients and server together. The CSV file has every setting, and the Pareto front of each method.",
    "FedDP-KMeans, as published: Algorithms 1 and 2 with the sensitivities that the text states. The authors' code was "
    "measured on another draw of the same mixture. As shipped it adds too little noise at record level (an epsilon of "
    "1 is really 3.6).",
    "Cloister accounts in zCDP, FedDP-KMeans and the baselines with privacy loss distributions. All noise is discrete, "
    "and seeded here.",
)


@dataclass(frozen=True, kw_only=True)
class CostFigure(Artefact[Scope, Trial, Score]):
    """One of the figures; ``missing`` says what real data would have been in it."""

    choose_data: Callable[[Scope], tuple[DataSet, ...]] = field(repr=False)
    missing: str = ""

    def list_trials(self, scope: Scope) -> list[Trial]:
        """All runs of all methods."""
        return [trial for data in self.choose_data(scope) for trial in list_comparison(data, scope)]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Ours beside the authors'."""
        comparisons = [compare(data, scope, lab) for data in self.choose_data(scope)]
        peers = load_peers(scope.peers)
        absent = scope.folktables is None if self.missing == _FOLKTABLES else scope.stackoverflow is None
        notes = (self.missing,) if self.missing and absent else ()
        if comparisons:
            card = write_k_fed_card(comparisons[0].data.unit)
            notes = (*_NOTES, f"k-FED: {card.plain_words}", *notes)
        return Product(
            table=_tabulate(comparisons, peers),
            summary=_summarise(comparisons, scope.epsilons, peers),
            notes=notes,
            picture=_draw(self.title, comparisons, peers) if comparisons else None,
        )


def _tabulate(comparisons: Sequence[Comparison], peers: Peers) -> Table:
    """Every setting of every method."""
    fronts = {id(point) for comparison in comparisons for line in ALL_LINES for point in comparison.front(line)}

    def find_peer(point: Point, method: str) -> float | None:
        return peers.find(point.setting.data, method, point.setting.epsilon)

    def find_share(point: Point, place: int) -> float | None:
        return None if point.setting.split is None else point.setting.split.shares[place]

    return Table.of(
        [point for comparison in comparisons for point in comparison.points],
        {
            "data": lambda point: point.setting.data.label,
            "level": lambda point: point.setting.data.unit.value,
            "method": lambda point: point.line.method,
            "guarantee": lambda point: point.line.guarantee,
            "epsilon": lambda point: point.setting.epsilon,
            "lloyd_steps": lambda point: point.setting.steps,
            "split_projection": lambda point: find_share(point, 0),
            "split_weights": lambda point: find_share(point, 1),
            "split_sums": lambda point: find_share(point, 2),
            "split_counts": lambda point: find_share(point, 3),
            "cost": lambda point: point.cost.mean,
            "cost_ci95": lambda point: point.cost.half_width,
            "excess": lambda point: point.excess,
            "accuracy": lambda point: point.accuracy,
            "cpu_s": lambda point: point.cpu_s,
            "runs": lambda point: point.runs,
            "pareto": lambda point: int(id(point) in fronts),
            "authors_excess": lambda point: find_peer(point, point.line.peer),
            "as_shipped_excess": lambda point: find_peer(point, AS_SHIPPED) if point.line == PUBLISHED else None,
        },
    )


def _summarise(comparisons: Sequence[Comparison], epsilons: tuple[float, ...], peers: Peers) -> Table:
    """The best excess of each method at each epsilon, with the authors' below it."""
    rows: list[tuple[Value, ...]] = []
    for comparison in comparisons:
        rows.append((comparison.data.label, *("" for _ in epsilons), ""))
        for line in ALL_LINES:
            rows += _summarise_line(comparison, line, epsilons, peers)
    return Table(columns=("epsilon", *(f"{epsilon:g}" for epsilon in epsilons), "CPU s"), rows=tuple(rows))


def _summarise_line(
    comparison: Comparison, line: Line, epsilons: tuple[float, ...], peers: Peers
) -> list[tuple[Value, ...]]:
    if not line.private:
        (point,) = comparison.front(line)
        blank = ("",) * (len(epsilons) - 1)
        shown = f"{point.cost.mean:.2f}" if line == OPTIMAL else _shorten(point.excess)
        rows: list[tuple[Value, ...]] = [(line.label, shown, *blank, f"{point.cpu_s:.2f}")]
        beside = None if line == OPTIMAL else peers.find(comparison.data, line.peer, None)
        return rows if beside is None else [*rows, (line.peer_label, _shorten(beside), *blank, "")]
    best = [comparison.best(line, epsilon) for epsilon in epsilons]
    cpu_s = sum(point.cpu_s for point in best) / len(best)
    rows = [(line.label, *(_shorten(point.excess) for point in best), f"{cpu_s:.2f}")]
    others = [(line.peer, line.peer_label)]
    if line == PUBLISHED:
        others.append((AS_SHIPPED, "  authors' code, as shipped"))
    for peer, label in others:
        found = [peers.find(comparison.data, peer, epsilon) for epsilon in epsilons]
        if any(excess is not None for excess in found):
            rows.append((label, *(_shorten(excess) for excess in found), ""))
    return rows


def _shorten(excess: float | None) -> str | None:
    """Two digits below a tenth, three above."""
    return None if excess is None else f"{excess:.2g}" if abs(excess) < 0.1 else f"{excess:.3g}"


def _draw(title: str, comparisons: Sequence[Comparison], peers: Peers) -> bytes:
    """Draw two panels for each data set, cost and excess; returns a PNG file."""
    figure = drawing.make_figure(10.4, 3.9 * len(comparisons) + 0.5)
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
        drawing.tidy_axes(row[0], title=label, x="total epsilon", y="k-means cost a record")
        drawing.tidy_axes(row[1], title=f"{label}, logarithmic", x="total epsilon", y="cost above the optimum")
        for axes in row:
            drawing.set_epsilon_ticks(axes, epsilons)
        _limit_cost(row[0], comparison)
        drawing.set_loss_ticks(row[1])
    legend = "Shades: from the best to the worst run."
    if has_rings:
        legend += " Rings: the authors' code (for Cloister: a study) on another draw."
    return drawing.finish_figure(figure, f"{title}. {legend}", legend_columns=4)


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
    """Draw what the authors' code reached as rings; return whether there are any."""
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


_FOLKTABLES = (
    "US census: left out, folktables' files were not found. Put them into the folder folktables of the data sets."
)
_QUESTIONS = (
    "Stack Overflow: left out, its embedded questions were not found. Put them into the folder stackoverflow of the "
    "data sets."
)

COST_FIGURES = (
    CostFigure(
        name="fig1",
        title="Figure 1: record level, k = 10",
        choose_data=lambda scope: (scope.silo, *scope.census[1:2]),
        missing=_FOLKTABLES,
    ),
    CostFigure(
        name="fig2",
        title="Figure 2: client level, k = 10",
        choose_data=lambda scope: (scope.devices[1], *scope.questions[:1]),
        missing=_QUESTIONS,
    ),
    CostFigure(
        name="fig3",
        title="Figure 3: record level, census, not-for-profit employees",
        choose_data=lambda scope: scope.census[:1],
        missing=_FOLKTABLES,
    ),
    CostFigure(
        name="fig4",
        title="Figure 4: record level, census, self-employed",
        choose_data=lambda scope: scope.census[2:],
        missing=_FOLKTABLES,
    ),
    CostFigure(
        name="fig5",
        title="Figure 5: client level, the mixture with the fewest clients",
        choose_data=lambda scope: scope.devices[:1],
    ),
    CostFigure(
        name="fig6",
        title="Figure 6: client level, the mixture with the most clients",
        choose_data=lambda scope: scope.devices[2:],
    ),
    *(
        CostFigure(
            name=f"fig{7 + place}",
            title=f"Figure {7 + place}: client level, Stack Overflow",
            choose_data=lambda scope, place=place: scope.questions[1 + place : 2 + place],  # type: ignore[misc]
            missing=_QUESTIONS,
        )
        for place in range(3)
    ),
)
