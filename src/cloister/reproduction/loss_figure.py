"""Figure 3: NICV against epsilon on six data sets; figure 4: empty clusters of birch2. The same runs give both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cloister.reproduction.datasets import CLUSTERS, FileSet, load_points
from cloister.reproduction.drawing import (
    draw_line,
    make_figure,
    save_figure,
    set_epsilon_ticks,
    set_loss_ticks,
    tidy_axes,
)
from cloister.reproduction.estimates import Cell
from cloister.reproduction.lab import Lab
from cloister.reproduction.lines import ALL_LINES, LLOYD, PUBLISHED, SULLOYD, Line
from cloister.reproduction.peers import Peers, load_peers
from cloister.reproduction.printed_fastlloyd import FASTLLOYD_EMPTY, LLOYD_EMPTY, SULLOYD_EMPTY
from cloister.reproduction.products import Product, Table, Value
from cloister.reproduction.scope import Scope
from cloister.reproduction.trials import Trial

COLUMNS = (
    "data",
    "records",
    "clusters",
    "dimensions",
    "method",
    "guarantee",
    "epsilon",
    "nicv",
    "nicv_ci95",
    "empty_clusters",
    "empty_clusters_ci95",
    "runs",
    "infeasible",
    "authors_nicv",
    "authors_empty_clusters",
)
_NO_PRINT = "The text prints no numbers of this figure; 'authors' is their code as measured, where shared/peers is."
_SHADES = "Shades are 95 % intervals; hollow rings are the authors' own code, measured (shared/peers)"


def list_trials(scope: Scope, names: tuple[str, ...], lines: tuple[Line, ...]) -> list[Trial]:
    """Every line at every epsilon on every set that is there."""
    return [
        trial
        for data in scope.find_sets(names)
        for line in lines
        for epsilon in scope.epsilons
        for trial in line.make_trials(data, epsilon, scope.runs)
    ]


def collect_rows(
    scope: Scope, lab: Lab, names: tuple[str, ...], lines: tuple[Line, ...]
) -> tuple[tuple[Value, ...], ...]:
    """Write every point with what the authors' code gave."""
    peers = load_peers(scope)
    return tuple(
        _write_row(data, line, epsilon, lab.cell(line.make_trials(data, epsilon, scope.runs)), peers)
        for data in scope.find_sets(names)
        for line in lines
        for epsilon in (scope.epsilons if line.private else scope.epsilons[:1])
    )


def _write_row(data: FileSet, line: Line, epsilon: float, cell: Cell, peers: Peers) -> tuple[Value, ...]:
    peer = peers.find(data.name, line.peer, epsilon if line.private else None)
    records, dimensions = load_points(data).shape
    return (
        data.label,
        records,
        data.clusters,
        dimensions,
        line.key,
        line.guarantee,
        epsilon if line.private else None,
        cell.loss.mean,
        cell.loss.half_width,
        cell.empty.mean,
        cell.empty.half_width,
        cell.runs,
        cell.infeasible,
        None if peer is None else peer.loss,
        None if peer is None else peer.empty,
    )


@dataclass(frozen=True, kw_only=True)
class LossFigure:
    """Figure 3."""

    name: ClassVar[str] = "fig3"
    title: ClassVar[str] = "Figure 3: NICV against epsilon (FastLloyd 6.2.1)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """All lines on all files."""
        return list_trials(scope, tuple(CLUSTERS), ALL_LINES)

    def count_sessions(self, scope: Scope) -> int:
        """None."""
        return 0

    def make(self, scope: Scope, lab: Lab) -> Product:
        """Six panels; the summary is the epsilon nearest to 1."""
        names = tuple(CLUSTERS)
        shown = min(scope.epsilons, key=lambda epsilon: abs(epsilon - 1.0))
        peers = load_peers(scope)
        rows: list[tuple[Value, ...]] = []
        for data in scope.find_sets(names):
            for line in ALL_LINES:
                cell = lab.cell(line.make_trials(data, shown, scope.runs))
                peer = peers.find(data.name, line.peer, shown if line.private else None)
                rows.append(
                    (data.label, line.label, cell.loss.mean, cell.loss.half_width, None if peer is None else peer.loss)
                )
        return Product(
            table=Table(columns=COLUMNS, rows=collect_rows(scope, lab, names, ALL_LINES)),
            summary=Table(
                columns=("data", f"at epsilon {shown:g}", "NICV", "± 95 %", "authors"), rows=tuple(rows), words=2
            ),
            notes=(
                _NO_PRINT + " Beside ours stands their second version with independent noise (fastlloyd_new_indep).",
                *scope.explain_missing(names),
            ),
            picture=_draw_losses(scope, lab, names),
        )


def _draw_losses(scope: Scope, lab: Lab, names: tuple[str, ...]) -> bytes | None:
    """Panels in the order of the paper, a to f."""
    sets = scope.find_sets(names)
    if not sets:
        return None
    columns = min(3, len(sets))
    figure = make_figure(4.0 * columns, 3.1 * -(-len(sets) // columns) + 0.9)
    panels = figure.subplots(-(-len(sets) // columns), columns, squeeze=False).ravel()
    peers = load_peers(scope)
    for number, (axes, data) in enumerate(zip(panels, sets, strict=False)):
        for line in ALL_LINES:
            cells = [lab.cell(line.make_trials(data, epsilon, scope.runs)) for epsilon in scope.epsilons]
            draw_line(
                axes,
                scope.epsilons,
                [cell.loss.mean for cell in cells],
                [cell.loss.half_width for cell in cells],
                label=line.label,
                **line.style,
            )
            if line.private:
                draw_peers(axes, scope, peers, data, line)
        n, d = load_points(data).shape
        set_epsilon_ticks(axes, scope.epsilons)
        set_loss_ticks(axes)
        title = f"({'abcdef'[number]}) {data.name}: n = {n:,}, d = {d}, k = {data.clusters}"
        tidy_axes(axes, title=title, x="epsilon", y="NICV")
    for axes in panels[len(sets) :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, 3), fontsize=9, frameon=False)
    figure.suptitle(f"Figure 3 again, {scope.runs} runs. {_SHADES}.", fontsize=9, x=0.01, ha="left")
    return save_figure(figure)


def draw_peers(axes: object, scope: Scope, peers: Peers, data: FileSet, line: Line, *, empty: bool = False) -> None:
    """Put hollow rings where the authors' code was measured."""
    found = [(epsilon, peers.find(data.name, line.peer, epsilon)) for epsilon in scope.epsilons]
    points = [(epsilon, 100 * row.empty / data.clusters if empty else row.loss) for epsilon, row in found if row]
    if points:
        x, y = zip(*points, strict=True)
        axes.scatter(x, y, s=34, facecolors="none", edgecolors=line.colour, linewidths=1.1, zorder=4)  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class EmptyFigure:
    """Figure 4."""

    name: ClassVar[str] = "fig4"
    title: ClassVar[str] = "Figure 4: empty clusters of birch2 against epsilon (FastLloyd 6.2.1)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Figure 3's runs on birch2."""
        return list_trials(scope, ("birch2",), ALL_LINES)

    def count_sessions(self, scope: Scope) -> int:
        """None."""
        return 0

    def make(self, scope: Scope, lab: Lab) -> Product:
        """One panel; the summary has what the text states."""
        names = ("birch2",)
        least, most = min(scope.epsilons), max(scope.epsilons)
        printed = {
            (LLOYD.key, least): LLOYD_EMPTY.short,
            (SULLOYD.key, least): SULLOYD_EMPTY.short,
            (PUBLISHED.key, most): FASTLLOYD_EMPTY.short,
        }
        peers = load_peers(scope)
        rows: list[tuple[Value, ...]] = []
        for data in scope.find_sets(names):
            for line in ALL_LINES:
                for epsilon in (least, 1.0, most) if 1.0 in scope.epsilons and line.private else (least, most):
                    if not line.private and epsilon != least:
                        continue
                    cell = lab.cell(line.make_trials(data, epsilon, scope.runs))
                    peer = peers.find(data.name, line.peer, epsilon if line.private else None)
                    rows.append(
                        (
                            line.label,
                            epsilon if line.private else None,
                            100 * cell.empty.mean / data.clusters,
                            100 * cell.empty.half_width / data.clusters,
                            None if peer is None else 100 * peer.empty / data.clusters,
                            printed.get((line.key, epsilon)),
                        )
                    )
        return Product(
            table=Table(columns=COLUMNS, rows=collect_rows(scope, lab, names, ALL_LINES)),
            summary=Table(columns=("method", "epsilon", "empty %", "± 95 %", "authors %", "printed"), rows=tuple(rows)),
            notes=scope.explain_missing(names),
            picture=_draw_empty(scope, lab, names),
        )


def _draw_empty(scope: Scope, lab: Lab, names: tuple[str, ...]) -> bytes | None:
    sets = scope.find_sets(names)
    if not sets:
        return None
    figure = make_figure(7.6, 3.8)
    axes = figure.subplots()
    peers = load_peers(scope)
    for data in sets:
        for line in ALL_LINES:
            cells = [lab.cell(line.make_trials(data, epsilon, scope.runs)) for epsilon in scope.epsilons]
            share = 100.0 / data.clusters
            means, widths = [share * c.empty.mean for c in cells], [share * c.empty.half_width for c in cells]
            draw_line(axes, scope.epsilons, means, widths, label=line.label, **line.style)
            if line.private:
                draw_peers(axes, scope, peers, data, line, empty=True)
        title = f"Figure 4 again: empty clusters of {data.label}, {scope.runs} runs; rings: authors' code"
        tidy_axes(axes, title=title, x="epsilon", y="empty clusters, % of k")
    set_epsilon_ticks(axes, scope.epsilons)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    return save_figure(figure)
