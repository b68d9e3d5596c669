"""Figures 1 to 9: cost against total epsilon, on mixtures and, where their files are given, on real data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from papers.fastlloyd.products import Product, Table, Value
from papers.feddp.cards import write_k_fed_card
from papers.feddp.cost_picture import draw_comparisons
from papers.feddp.datasets import DataSet
from papers.feddp.lab import FeddpLab
from papers.feddp.lines import ALL_LINES, AS_SHIPPED, OPTIMAL, PUBLISHED, Line
from papers.feddp.peers import Peers, load_peers
from papers.feddp.points import Comparison, compare, list_comparison
from papers.feddp.scope import FeddpScope
from papers.feddp.trials import Split, Trial

_COLUMNS = (
    "data", "level", "method", "guarantee", "epsilon", "lloyd_steps", "split_projection", "split_weights", "split_sums",
    "split_counts", "cost", "cost_ci95", "excess", "accuracy", "cpu_s", "runs", "pareto", "authors_excess",
    "as_shipped_excess",
)  # fmt: skip
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
class CostFigure:
    """One of the figures; ``missing`` says what real data would have been in it."""

    name: str
    title: str
    choose_data: Callable[[FeddpScope], tuple[DataSet, ...]] = field(repr=False)
    missing: str = ""

    def list_trials(self, scope: FeddpScope) -> list[Trial]:
        """All runs of all methods."""
        return [trial for data in self.choose_data(scope) for trial in list_comparison(data, scope)]

    def count_sessions(self, scope: FeddpScope) -> int:
        """None is timed apart: every run tells its CPU seconds."""
        return 0

    def make(self, scope: FeddpScope, lab: FeddpLab) -> Product:
        """Ours beside the authors'."""
        comparisons = [compare(data, scope, lab) for data in self.choose_data(scope)]
        peers = load_peers(scope.peers)
        absent = scope.folktables is None if "folktables" in self.missing else scope.stackoverflow is None
        notes = (f"{self.missing}",) if self.missing and absent else ()
        if comparisons:
            card = write_k_fed_card(comparisons[0].data.unit)
            notes = (*_NOTES, f"k-FED: {card.plain_words}", *notes)
        return Product(
            table=Table(columns=_COLUMNS, rows=tuple(row for each in comparisons for row in _write_rows(each, peers))),
            summary=_summarise(comparisons, scope.epsilons, peers),
            notes=notes,
            picture=draw_comparisons(self.title, comparisons, peers) if comparisons else None,
        )


def _write_rows(comparison: Comparison, peers: Peers) -> list[tuple[Value, ...]]:
    """Every setting of every method."""
    fronts = {line.method: comparison.front(line) for line in ALL_LINES}
    rows = []
    for point in comparison.points:
        is_published = point.line == PUBLISHED
        rows.append(
            (
                comparison.data.label,
                comparison.data.unit.value,
                point.line.method,
                point.line.guarantee,
                point.setting.epsilon,
                point.setting.steps,
                *_write_split(point.setting.split),
                point.cost.mean,
                point.cost.half_width,
                point.excess,
                point.accuracy,
                point.cpu_s,
                point.runs,
                int(point in fronts[point.line.method]),
                peers.find(comparison.data, point.line.peer, point.setting.epsilon),
                peers.find(comparison.data, AS_SHIPPED, point.setting.epsilon) if is_published else None,
            )
        )
    return rows


def _write_split(split: Split | None) -> tuple[Value, ...]:
    return (None,) * 4 if split is None else split.shares


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


_FOLKTABLES = "US census: left out, folktables' files were not given. Give them with --folktables."
_QUESTIONS = "Stack Overflow: left out, its embedded questions were not given. Give them with --stackoverflow."

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
