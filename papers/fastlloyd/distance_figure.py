"""Figure 7: what the distance constraint of FastLloyd 7.1 does, on s1 and birch2.

Its flow can have no solution: a cluster needs its minimum size within the radius. Such a run is counted and shown; in a
session it would end with an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from papers.fastlloyd.datasets import FileSet
from papers.fastlloyd.drawing import (
    draw_line,
    make_figure,
    save_figure,
    set_epsilon_ticks,
    set_loss_ticks,
    tidy_axes,
)
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.lines import CSULLOYD, PUBLISHED, SOUND, Line
from papers.fastlloyd.loss_points import COLUMNS, collect_rows, list_trials
from papers.fastlloyd.printed_fastlloyd import DISTANCE_REDUCTION
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES = ("s1", "birch2")


def _constrain(line: Line, short: str) -> Line:
    return replace(
        line,
        key=f"{line.key}-distance",
        short=f"{short}, distance",
        label=f"{short}, distance constrained",
        assignment="distance-constrained",
        dash="--",
        peer="",
        peer_as_printed="",
    )


_PAIRS = ((PUBLISHED, _constrain(PUBLISHED, "FastLloyd")), (CSULLOYD, _constrain(CSULLOYD, "CSuLloyd")))
_LINES = (*(line for pair in _PAIRS for line in pair), SOUND)


@dataclass(frozen=True, kw_only=True)
class DistanceFigure:
    """Figure 7."""

    name: ClassVar[str] = "fig7"
    title: ClassVar[str] = "Figure 7: the distance constraint, dashed (FastLloyd 7.1)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Both methods with and without it, and the sound one."""
        return list_trials(scope, _NAMES, _LINES)

    def count_sessions(self, scope: Scope) -> int:
        """None."""
        return 0

    def make(self, scope: Scope, lab: Lab) -> Product:
        """Two panels; the summary has the reduction at each epsilon."""
        rows: list[tuple[Value, ...]] = []
        for data in scope.find_sets(_NAMES):
            for plain, constrained in _PAIRS:
                for epsilon in scope.epsilons:
                    without = lab.cell(plain.make_trials(data, epsilon, scope.runs))
                    with_it = lab.cell(constrained.make_trials(data, epsilon, scope.runs))
                    rows.append(
                        (
                            data.label,
                            constrained.short,
                            epsilon,
                            100 * (1 - with_it.loss.mean / without.loss.mean),
                            f"{with_it.infeasible} of {with_it.runs}",
                            DISTANCE_REDUCTION.short if epsilon <= 0.1 else None,
                        )
                    )
        return Product(
            table=Table(columns=COLUMNS, rows=collect_rows(scope, lab, _NAMES, _LINES)),
            summary=Table(
                columns=("data", "method", "epsilon", "NICV less by %", "no flow", "printed"),
                rows=tuple(rows),
                words=2,
            ),
            notes=(
                "'no flow': runs that end because some cluster has fewer than its minimum within the radius; means are "
                "over the others.",
                *scope.explain_missing(_NAMES),
            ),
            picture=_draw(scope, lab),
        )


def _draw(scope: Scope, lab: Lab) -> bytes | None:
    sets = scope.find_sets(_NAMES)
    if not sets:
        return None
    figure = make_figure(5.2 * len(sets), 4.6)
    panels = figure.subplots(1, len(sets), squeeze=False)[0]
    for axes, data in zip(panels, sets, strict=True):
        _draw_panel(axes, scope, lab, data)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=2 if len(sets) > 1 else 1, fontsize=8, frameon=False
    )
    figure.suptitle(
        f"Figure 7 again, {scope.runs} runs; numbers on top: how many of them had no flow, by colour",
        fontsize=8,
        x=0.01,
        ha="left",
    )
    return save_figure(figure)


def _draw_panel(axes: Axes, scope: Scope, lab: Lab, data: FileSet) -> None:
    """Lines, and on top how many runs had no flow."""
    for line in _LINES:
        cells = [lab.cell(line.make_trials(data, epsilon, scope.runs)) for epsilon in scope.epsilons]
        means, widths = [cell.loss.mean for cell in cells], [cell.loss.half_width for cell in cells]
        draw_line(axes, scope.epsilons, means, widths, label=line.label, **line.style)
        for epsilon, cell in zip(scope.epsilons, cells, strict=True):
            if cell.infeasible:
                height = 0.99 if line.method == "published" else 0.93
                axes.text(
                    epsilon,
                    height,
                    str(cell.infeasible),
                    transform=axes.get_xaxis_transform(),
                    ha="center",
                    va="top",
                    fontsize=7.5,
                    color=line.colour,
                )
    set_epsilon_ticks(axes, scope.epsilons)
    set_loss_ticks(axes)
    low, high = axes.get_ylim()
    axes.set_ylim(low, 1.7 * high)  # room for the numbers
    tidy_axes(axes, title=f"{data.label}, k = {data.clusters}", x="epsilon", y="NICV")
