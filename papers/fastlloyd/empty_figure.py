"""Figure 4: empty clusters of birch2 against epsilon, from the runs of figure 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from papers.fastlloyd.drawing import draw_line, make_figure, save_figure, set_epsilon_ticks, tidy_axes
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.lines import ALL_LINES, LLOYD, PUBLISHED, SULLOYD
from papers.fastlloyd.loss_points import COLUMNS, collect_rows, draw_peers, list_trials
from papers.fastlloyd.peers import load_peers
from papers.fastlloyd.printed_fastlloyd import FASTLLOYD_EMPTY, LLOYD_EMPTY, SULLOYD_EMPTY
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Trial

_NAMES = ("birch2",)


@dataclass(frozen=True, kw_only=True)
class EmptyFigure:
    """Figure 4."""

    name: ClassVar[str] = "fig4"
    title: ClassVar[str] = "Figure 4: empty clusters of birch2 against epsilon (FastLloyd 6.2.1)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Figure 3's runs on birch2."""
        return list_trials(scope, _NAMES, ALL_LINES)

    def count_sessions(self, scope: Scope) -> int:
        """None."""
        return 0

    def make(self, scope: Scope, lab: Lab) -> Product:
        """One panel; the summary has what the text states."""
        least, most = min(scope.epsilons), max(scope.epsilons)
        printed = {
            (LLOYD.key, least): LLOYD_EMPTY.short,
            (SULLOYD.key, least): SULLOYD_EMPTY.short,
            (PUBLISHED.key, most): FASTLLOYD_EMPTY.short,
        }
        peers = load_peers(scope)
        rows: list[tuple[Value, ...]] = []
        for data in scope.find_sets(_NAMES):
            for line in ALL_LINES:
                for epsilon in (least, 1.0, most) if 1.0 in scope.epsilons and line.private else (least, most):
                    if not line.private and epsilon != least:
                        continue
                    cell = lab.cell(line.make_trials(data, epsilon, scope.runs))
                    peer = peers.find(data.name, line.peer, epsilon if line.private else None)
                    rows.append(
                        (
                            line.short,
                            line.guarantee,
                            epsilon if line.private else None,
                            100 * cell.empty.mean / data.clusters,
                            100 * cell.empty.half_width / data.clusters,
                            None if peer is None else 100 * peer.empty / data.clusters,
                            printed.get((line.key, epsilon)),
                        )
                    )
        return Product(
            table=Table(columns=COLUMNS, rows=collect_rows(scope, lab, _NAMES, ALL_LINES)),
            summary=Table(
                columns=("method", "guarantee", "epsilon", "empty %", "± 95 %", "authors %", "printed"),
                rows=tuple(rows),
                words=2,
            ),
            notes=(
                f"Run on {', '.join(data.label for data in scope.find_sets(_NAMES)) or 'nothing'}. The printed words "
                "are of 25,000 records, SuLloyd's at epsilon 0.01 and FastLloyd's above 0.75.",
                *scope.explain_missing(_NAMES),
            ),
            picture=_draw(scope, lab),
        )


def _draw(scope: Scope, lab: Lab) -> bytes | None:
    sets = scope.find_sets(_NAMES)
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
        title = f"Figure 4 again: empty clusters of {data.label}, {scope.runs} runs. Rings: authors' code"
        tidy_axes(axes, title=title, x="epsilon", y="empty clusters, % of k")
    set_epsilon_ticks(axes, scope.epsilons)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    return save_figure(figure)
