"""Figure 3: NICV against epsilon on six data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from papers.fastlloyd.datasets import CLUSTERS, load_points
from papers.fastlloyd.drawing import (
    draw_line,
    make_figure,
    save_figure,
    set_epsilon_ticks,
    set_loss_ticks,
    tidy_axes,
)
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.lines import ALL_LINES
from papers.fastlloyd.loss_points import COLUMNS, collect_rows, draw_peers, list_trials
from papers.fastlloyd.peers import load_peers
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Trial

_NO_PRINT = "The text prints no numbers of this figure; 'authors' is their code as measured, where shared/peers is."
_SHADES = "Shades: 95 % intervals. Rings: the authors' code, measured; squares: with the noise that the text asks for"


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
                printed = peers.find(data.name, line.peer_as_printed, shown)
                rows.append(
                    (
                        data.label,
                        line.short,
                        line.guarantee,
                        cell.loss.mean,
                        cell.loss.half_width,
                        None if peer is None else peer.loss,
                        None if printed is None else printed.loss,
                    )
                )
        return Product(
            table=Table(columns=COLUMNS, rows=collect_rows(scope, lab, names, ALL_LINES)),
            summary=Table(
                columns=("data", f"epsilon {shown:g}", "guarantee", "NICV", "± 95 %", "authors", "text's noise"),
                rows=tuple(rows),
                words=3,
            ),
            notes=(
                _NO_PRINT,
                "SuLloyd leaves centres outside the domain, as the authors' runs do; folded, it is a better rival.",
                "Beside Cloister stands their second version with independent noise (fastlloyd_new_indep). \"Text's "
                'noise": their code adds 1/d of the noise that Theorem 5.1 asks for; this is it with that noise '
                "(fastlloyd_old_noise_x_d_indep), which is what algorithm 1 is here.",
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
