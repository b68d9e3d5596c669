"""Thesis figures 8.5 to 8.7: silhouette against epsilon for four settings, under NMA and AMN; empty clusters of birch2.

A silhouette needs all pairs of records. It is taken on a seeded sample, the same records for every method and run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.protocols.fastlloyd.published import AssignmentKind
from papers.fastlloyd.datasets import FileSet, load_points
from papers.fastlloyd.drawing import (
    BLUE,
    GREEN,
    GREY,
    RED,
    draw_line,
    make_figure,
    save_figure,
    set_epsilon_ticks,
    tidy_axes,
)
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.lines import FAILS, WARNING
from papers.fastlloyd.printed_thesis import EMPTY_ON_BIRCH2
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Method, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PROTOCOLS: tuple[tuple[str, Method], ...] = (("NMA", "mna"), ("AMN", "amn"))


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """One of the four settings of 8.5."""

    label: str
    constrained: bool
    private: bool
    colour: str

    @property
    def assignment(self) -> AssignmentKind:
        """How records join clusters."""
        return "constrained-exclusive" if self.constrained else "unconstrained"

    @property
    def legend(self) -> str:
        """The setting, and a warning where one is due."""
        return f"{self.label} ({WARNING})" if self.guarantee == FAILS else self.label

    @property
    def guarantee(self) -> str:
        """Whether epsilon can be relied on."""
        if not self.private:
            return "no privacy"
        return FAILS if self.constrained else "holds, n public"


_SETTINGS = (
    _Setting(label="unconstrained, no privacy", constrained=False, private=False, colour=GREY),
    _Setting(label="constrained, no privacy", constrained=True, private=False, colour=GREEN),
    _Setting(label="unconstrained, private", constrained=False, private=True, colour=BLUE),
    _Setting(label="constrained, private", constrained=True, private=True, colour=RED),
)


@dataclass(frozen=True, kw_only=True)
class SilhouetteFigure:
    """One data set."""

    name: str
    data_name: str

    @property
    def title(self) -> str:
        """What it shows."""
        return f"Thesis figure {self.name.removeprefix('fig')}: silhouette against epsilon, {self.data_name} (8.5.2)"

    def _list_point(
        self, scope: Scope, data: FileSet, method: Method, setting: _Setting, epsilon: float
    ) -> list[Trial]:
        return [
            Trial(
                data=data,
                method=method,
                run=run,
                epsilon=epsilon if setting.private else None,
                assignment=setting.assignment,
                silhouette_records=scope.silhouette_records,
            )
            for run in range(scope.runs)
        ]

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Four settings under two protocols."""
        return [
            trial
            for data in scope.find_sets((self.data_name,))
            for _, method in _PROTOCOLS
            for setting in _SETTINGS
            for epsilon in scope.thesis_epsilons
            for trial in self._list_point(scope, data, method, setting, epsilon)
        ]

    def count_sessions(self, scope: Scope) -> int:
        """None."""
        return 0

    def make(self, scope: Scope, lab: Lab) -> Product:
        """Two panels, NMA and AMN."""
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        for data in scope.find_sets((self.data_name,)):
            sample = min(scope.silhouette_records, len(load_points(data)))
            for protocol, method in _PROTOCOLS:
                for setting in _SETTINGS:
                    epsilons = scope.thesis_epsilons if setting.private else scope.thesis_epsilons[:1]
                    for epsilon in epsilons:
                        cell = lab.cell(self._list_point(scope, data, method, setting, epsilon))
                        shown = epsilon if setting.private else None
                        rows.append(
                            (
                                data.label,
                                protocol,
                                setting.label,
                                setting.guarantee,
                                shown,
                                cell.silhouette.mean,
                                cell.silhouette.half_width,
                                sample,
                                cell.loss.mean,
                                cell.loss.half_width,
                                cell.empty.mean,
                                cell.runs,
                                cell.infeasible,
                            )
                        )
                        if epsilon in (epsilons[0], epsilons[-1]):
                            summary.append(
                                (
                                    protocol,
                                    setting.label.split(",")[0],
                                    setting.guarantee,
                                    shown,
                                    cell.silhouette.mean,
                                    cell.silhouette.half_width,
                                    cell.empty.mean,
                                    self._find_printed(method, setting),
                                )
                            )
        return Product(
            table=Table(columns=_COLUMNS, rows=tuple(rows)),
            summary=Table(
                columns=("", "sizes", "guarantee", "epsilon", "silhouette", "± 95 %", "empty", "printed"),
                rows=tuple(summary),
                words=3,
            ),
            notes=(
                f"Silhouettes on a fixed sample of at most {scope.silhouette_records:,} records; {scope.runs} runs. "
                "The thesis prints no silhouettes; 'printed' are its numbers of empty clusters, of birch2 (8.5.3).",
                *scope.explain_missing((self.data_name,)),
            ),
            picture=self._draw(scope, lab),
        )

    def _find_printed(self, method: Method, setting: _Setting) -> str | None:
        if self.data_name != "birch2":
            return None
        sizes = "constrained" if setting.constrained else "unconstrained"
        return EMPTY_ON_BIRCH2["nma" if method == "mna" else "amn", sizes, setting.private]

    def _draw(self, scope: Scope, lab: Lab) -> bytes | None:
        sets = scope.find_sets((self.data_name,))
        if not sets:
            return None
        figure = make_figure(9.6, 4.2)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (protocol, method) in zip(panels, _PROTOCOLS, strict=True):
            self._draw_panel(axes, scope, lab, sets[0], method)
            tidy_axes(
                axes, title=f"{sets[0].label}, {protocol}", x="epsilon", y="silhouette" if protocol == "NMA" else ""
            )
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8.5, frameon=False)
        figure.suptitle(f"{self.title.split(':')[0]} again, {scope.runs} runs", fontsize=9, x=0.01, ha="left")
        return save_figure(figure)

    def _draw_panel(self, axes: Axes, scope: Scope, lab: Lab, data: FileSet, method: Method) -> None:
        for setting in _SETTINGS:
            cells = [
                lab.cell(self._list_point(scope, data, method, setting, epsilon)) for epsilon in scope.thesis_epsilons
            ]
            means = [cell.silhouette.mean for cell in cells]
            widths = [cell.silhouette.half_width for cell in cells]
            style = {"linestyle": "-" if setting.private else "--", "marker": "o" if setting.private else ""}
            draw_line(
                axes,
                scope.thesis_epsilons,
                means,
                widths,
                label=setting.legend,
                color=setting.colour,
                signed=True,
                **style,
            )
        set_epsilon_ticks(axes, scope.thesis_epsilons)


_COLUMNS = (
    "data",
    "protocol",
    "setting",
    "guarantee",
    "epsilon",
    "silhouette",
    "silhouette_ci95",
    "silhouette_records",
    "nicv",
    "nicv_ci95",
    "empty_clusters",
    "runs",
    "infeasible",
)
FIGURES = tuple(
    SilhouetteFigure(name=name, data_name=data)
    for name, data in (("fig8.5", "adult"), ("fig8.6", "birch2"), ("fig8.7", "iris"))
)
