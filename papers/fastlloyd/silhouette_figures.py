"""Thesis figures 8.5 to 8.7: silhouette against epsilon for four settings, under NMA and AMN; empty clusters of birch2.

A silhouette needs all pairs of records. It is taken on a seeded sample, the same records for every method and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloister.kmeans import AssignmentKind
from papers.fastlloyd.datasets import FileSet, Scope, load_points
from papers.fastlloyd.lines import FAILS, WARNING
from papers.fastlloyd.printed import EMPTY_ON_BIRCH2
from papers.fastlloyd.trials import Cell, Method, Score, Trial, TrialLab
from papers.lab import drawing
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table

_PROTOCOLS: dict[str, Method] = {"NMA": "mna", "AMN": "amn"}


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
    _Setting(label="unconstrained, no privacy", constrained=False, private=False, colour=drawing.GREY),
    _Setting(label="constrained, no privacy", constrained=True, private=False, colour=drawing.GREEN),
    _Setting(label="unconstrained, private", constrained=False, private=True, colour=drawing.BLUE),
    _Setting(label="constrained, private", constrained=True, private=True, colour=drawing.RED),
)


@dataclass(frozen=True, kw_only=True)
class _Point:
    """The runs of one setting under one protocol, at one epsilon; None without privacy."""

    data: FileSet
    protocol: str
    setting: _Setting
    epsilon: float | None
    cell: Cell

    @property
    def printed_empty(self) -> str | None:
        """What the thesis says of the empty clusters."""
        if self.data.name != "birch2":
            return None
        sizes = "constrained" if self.setting.constrained else "unconstrained"
        return EMPTY_ON_BIRCH2[self.protocol.lower(), sizes, self.setting.private]


@dataclass(frozen=True, kw_only=True)
class SilhouetteFigure(Artefact[Scope, Trial, Score]):
    """One data set; two panels, NMA and AMN."""

    data_name: str

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Four settings under two protocols."""
        return [
            trial
            for data in scope.find_sets((self.data_name,))
            for protocol in _PROTOCOLS
            for setting in _SETTINGS
            for epsilon in _list_epsilons(scope, setting)
            for trial in _list_runs(scope, data, protocol, setting, epsilon)
        ]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Every point; the summary has the ends of the axis."""
        points = [
            _Point(
                data=data,
                protocol=protocol,
                setting=setting,
                epsilon=epsilon,
                cell=Cell.of(lab.scores(_list_runs(scope, data, protocol, setting, epsilon))),
            )
            for data in scope.find_sets((self.data_name,))
            for protocol in _PROTOCOLS
            for setting in _SETTINGS
            for epsilon in _list_epsilons(scope, setting)
        ]
        ends = (scope.thesis_epsilons[0], scope.thesis_epsilons[-1], None)
        return Product(
            table=Table.of(
                points,
                {
                    "data": lambda point: point.data.label,
                    "protocol": lambda point: point.protocol,
                    "setting": lambda point: point.setting.label,
                    "guarantee": lambda point: point.setting.guarantee,
                    "epsilon": lambda point: point.epsilon,
                    "silhouette": lambda point: point.cell.silhouette.mean,
                    "silhouette_ci95": lambda point: point.cell.silhouette.half_width,
                    "silhouette_records": lambda point: min(scope.silhouette_records, len(load_points(point.data))),
                    "nicv": lambda point: point.cell.loss.mean,
                    "nicv_ci95": lambda point: point.cell.loss.half_width,
                    "empty_clusters": lambda point: point.cell.empty.mean,
                    "runs": lambda point: point.cell.runs,
                    "infeasible": lambda point: point.cell.infeasible,
                },
            ),
            summary=Table.of(
                [point for point in points if point.epsilon in ends],
                {
                    "": lambda point: point.protocol,
                    "sizes": lambda point: point.setting.label.split(",")[0],
                    "guarantee": lambda point: point.setting.guarantee,
                    "epsilon": lambda point: point.epsilon,
                    "silhouette": lambda point: point.cell.silhouette.mean,
                    "± 95 %": lambda point: point.cell.silhouette.half_width,
                    "empty": lambda point: point.cell.empty.mean,
                    "printed": lambda point: point.printed_empty,
                },
                words=3,
            ),
            notes=(
                f"Silhouettes on a fixed sample of at most {scope.silhouette_records:,} records; {scope.runs} runs. "
                "The thesis prints no silhouettes; 'printed' are its numbers of empty clusters, of birch2 (8.5.3).",
                *scope.explain_missing((self.data_name,)),
            ),
            picture=self._draw(scope, points) if points else None,
        )

    def _draw(self, scope: Scope, points: Sequence[_Point]) -> bytes:
        figure = drawing.make_figure(9.6, 4.2)
        epsilons = scope.thesis_epsilons
        for axes, protocol in zip(figure.subplots(1, 2, sharey=True), _PROTOCOLS, strict=True):
            for setting in _SETTINGS:
                drawn = [p.cell.silhouette for p in points if (p.protocol, p.setting) == (protocol, setting)]
                drawn = drawn if setting.private else drawn * len(epsilons)
                drawing.draw_line(
                    axes,
                    epsilons,
                    [each.mean for each in drawn],
                    [each.half_width for each in drawn],
                    label=setting.legend,
                    color=setting.colour,
                    signed=True,
                    linestyle="-" if setting.private else "--",
                    marker="o" if setting.private else "",
                )
            drawing.set_epsilon_ticks(axes, epsilons)
            title = f"{points[0].data.label}, {protocol}"
            drawing.tidy_axes(axes, title=title, x="epsilon", y="silhouette" if protocol == "NMA" else "")
        head = f"{self.title.split(':')[0]} again, {scope.runs} runs"
        return drawing.finish_figure(figure, head, legend_columns=2)


def _list_epsilons(scope: Scope, setting: _Setting) -> tuple[float | None, ...]:
    return scope.thesis_epsilons if setting.private else (None,)


def _list_runs(scope: Scope, data: FileSet, protocol: str, setting: _Setting, epsilon: float | None) -> list[Trial]:
    return [
        Trial(
            data=data,
            method=_PROTOCOLS[protocol],
            run=run,
            epsilon=epsilon,
            assignment=setting.assignment,
            silhouette_records=scope.silhouette_records,
        )
        for run in range(scope.runs)
    ]


SILHOUETTE_FIGURES = tuple(
    SilhouetteFigure(
        name=name,
        title=f"Thesis figure {name.removeprefix('fig')}: silhouette against epsilon, {data} (8.5.2)",
        data_name=data,
    )
    for name, data in (("fig8.5", "adult"), ("fig8.6", "birch2"), ("fig8.7", "iris"))
)
