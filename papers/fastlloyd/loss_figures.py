"""Figures 3, 4 and 7: loss and empty clusters against epsilon, with the distance constraint and without.

The flow of the distance constraint (FastLloyd 7.1) can have no solution: a cluster needs its minimum size within the
radius. Such a run is counted and shown; in a session it would end with an error.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from papers.fastlloyd import lines, printed
from papers.fastlloyd.datasets import CLUSTERS, FileSet, Scope, load_points
from papers.fastlloyd.lines import ALL_LINES, CSULLOYD, LLOYD, PUBLISHED, SOUND, SULLOYD, Line, Point
from papers.fastlloyd.trials import Score, Trial, TrialLab
from papers.lab import drawing
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class LineFigure(Artefact[Scope, Trial, Score]):
    """Some lines on some files, one panel for each file."""

    sets: tuple[str, ...]
    drawn: tuple[Line, ...] = ALL_LINES

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Every line at every epsilon on every set that is there."""
        return [
            trial
            for data in scope.find_sets(self.sets)
            for line in self.drawn
            for epsilon in scope.epsilons
            for trial in line.make_trials(data, epsilon, scope.runs)
        ]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Every point goes to the CSV file; the summary is the figure's own."""
        points = lines.collect_points(scope, lab, scope.find_sets(self.sets), self.drawn)
        return Product(
            table=Table.of(points, lines.COLUMNS),
            summary=self.summarise(scope, points),
            notes=(*self.explain(scope), *scope.explain_missing(self.sets)),
            picture=self._draw(scope, points) if points else None,
        )

    @abstractmethod
    def summarise(self, scope: Scope, points: Sequence[Point]) -> Table:
        """What is printed."""

    @abstractmethod
    def explain(self, scope: Scope) -> tuple[str, ...]:
        """How to read it."""

    @abstractmethod
    def draw_panel(self, axes: Axes, scope: Scope, data: FileSet, points: Sequence[Point]) -> None:
        """Draw the lines of one file."""

    def head(self, scope: Scope) -> str:
        """The title above the panels."""
        return f"{self.title.split(':')[0]} again, {scope.runs} runs"

    def _draw(self, scope: Scope, points: Sequence[Point]) -> bytes:
        sets = tuple(dict.fromkeys(point.data for point in points))
        columns = min(3, len(sets))
        rows = -(-len(sets) // columns)
        figure: Figure = drawing.make_figure(max(4.2 * columns, 7.6), 3.1 * rows + 1.1)
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, data in zip(panels, sets, strict=False):
            self.draw_panel(axes, scope, data, [point for point in points if point.data == data])
        for axes in panels[len(sets) :]:
            axes.set_visible(False)
        return drawing.finish_figure(figure, self.head(scope), legend_columns=max(2, columns))


@dataclass(frozen=True, kw_only=True)
class LossFigure(LineFigure):
    """Figure 3: six panels; the summary is the epsilon nearest to 1."""

    name: str = "fig3"
    title: str = "Figure 3: NICV against epsilon (FastLloyd 6.2.1)"
    sets: tuple[str, ...] = tuple(CLUSTERS)

    def summarise(self, scope: Scope, points: Sequence[Point]) -> Table:
        """One epsilon, with the authors' code."""
        shown = min(scope.epsilons, key=lambda epsilon: abs(epsilon - 1.0))
        return Table.of(
            [point for point in points if point.epsilon in (shown, None)],
            {
                "data": lambda point: point.data.label,
                f"epsilon {shown:g}": lambda point: point.line.short,
                "guarantee": lambda point: point.line.guarantee,
                "NICV": lambda point: point.loss.mean,
                "± 95 %": lambda point: point.loss.half_width,
                "authors": lambda point: point.peer.loss,
                "text's noise": lambda point: point.peer_as_printed.loss,
            },
            words=3,
        )

    def explain(self, scope: Scope) -> tuple[str, ...]:
        """What the authors' numbers are."""
        return (
            "The text prints no numbers of this figure; 'authors' is their code as measured, where peers are beside "
            "the data.",
            "SuLloyd leaves centres outside the domain, as the authors' runs do; folded, it is a better rival.",
            "The figure also shows their second version with independent noise (fastlloyd_new_indep). \"Text's "
            'noise": their code adds 1/d of the noise that Theorem 5.1 asks for; this is it with that noise '
            "(fastlloyd_old_noise_x_d_indep), which is what algorithm 1 is here.",
        )

    def draw_panel(self, axes: Axes, scope: Scope, data: FileSet, points: Sequence[Point]) -> None:
        """Losses, logarithmic both ways."""
        lines.draw_points(axes, points, scope.epsilons, lambda point: point.loss)
        lines.draw_rings(axes, points, "o", lambda point: point.peer.loss)
        lines.draw_rings(axes, points, "s", lambda point: point.peer_as_printed.loss)
        drawing.set_loss_ticks(axes)
        n, d = load_points(data).shape
        place = "abcdef"[self.sets.index(data.name)]
        drawing.tidy_axes(
            axes, title=f"({place}) {data.name}: n = {n:,}, d = {d}, k = {data.clusters}", x="epsilon", y="NICV"
        )

    def head(self, scope: Scope) -> str:
        """What the marks are."""
        return (
            f"{super().head(scope)}. Shades: 95 % intervals. Rings: the authors' code, measured; squares: with the "
            "noise that the text asks for."
        )


@dataclass(frozen=True, kw_only=True)
class EmptyFigure(LineFigure):
    """Figure 4, from the runs of figure 3; the summary has what the text states."""

    name: str = "fig4"
    title: str = "Figure 4: empty clusters of birch2 against epsilon (FastLloyd 6.2.1)"
    sets: tuple[str, ...] = ("birch2",)

    def summarise(self, scope: Scope, points: Sequence[Point]) -> Table:
        """The ends of the axis and epsilon 1."""
        least, most = min(scope.epsilons), max(scope.epsilons)
        stated = {
            (LLOYD.key, None): printed.LLOYD_EMPTY.short,
            (SULLOYD.key, least): printed.SULLOYD_EMPTY.short,
            (PUBLISHED.key, most): printed.FASTLLOYD_EMPTY.short,
        }
        return Table.of(
            [point for point in points if point.epsilon in (None, least, 1.0, most)],
            {
                "method": lambda point: point.line.short,
                "guarantee": lambda point: point.line.guarantee,
                "epsilon": lambda point: point.epsilon,
                "empty %": lambda point: point.empty_percent.mean,
                "± 95 %": lambda point: point.empty_percent.half_width,
                "authors %": lambda point: point.peer_empty_percent,
                "printed": lambda point: stated.get((point.line.key, point.epsilon)),
            },
            words=2,
        )

    def explain(self, scope: Scope) -> tuple[str, ...]:
        """What the printed words are of."""
        run_on = ", ".join(data.label for data in scope.find_sets(self.sets)) or "nothing"
        return (
            f"Run on {run_on}. The printed words are of 25,000 records, SuLloyd's at epsilon 0.01 and FastLloyd's "
            "above 0.75.",
        )

    def draw_panel(self, axes: Axes, scope: Scope, data: FileSet, points: Sequence[Point]) -> None:
        """Percent of k."""
        lines.draw_points(axes, points, scope.epsilons, lambda point: point.empty_percent)
        lines.draw_rings(axes, points, "o", lambda point: point.peer_empty_percent)
        drawing.tidy_axes(axes, title=data.label, x="epsilon", y="empty clusters, % of k")

    def head(self, scope: Scope) -> str:
        """What the marks are."""
        return f"{super().head(scope)}. Rings: the authors' code."


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


@dataclass(frozen=True, kw_only=True)
class DistanceFigure(LineFigure):
    """Figure 7: both methods with the constraint and without, and the sound one."""

    name: str = "fig7"
    title: str = "Figure 7: the distance constraint, dashed (FastLloyd 7.1)"
    sets: tuple[str, ...] = ("s1", "birch2")
    drawn: tuple[Line, ...] = (*(line for pair in _PAIRS for line in pair), SOUND)

    def summarise(self, scope: Scope, points: Sequence[Point]) -> Table:
        """The reduction at each epsilon."""
        found = {(point.data, point.line, point.epsilon): point for point in points}
        rows: list[tuple[Value, ...]] = []
        for data in dict.fromkeys(point.data for point in points):
            for (plain, constrained), epsilon in product(_PAIRS, scope.epsilons):
                without, with_it = found[data, plain, epsilon], found[data, constrained, epsilon]
                rows.append(
                    (
                        data.label,
                        constrained.short,
                        epsilon,
                        100 * (1 - with_it.loss.mean / without.loss.mean),
                        f"{with_it.cell.infeasible} of {with_it.cell.runs}",
                        printed.DISTANCE_REDUCTION.short if epsilon <= 0.1 else None,
                    )
                )
        columns = ("data", "method", "epsilon", "NICV less by %", "no flow", "printed")
        return Table(columns=columns, rows=tuple(rows), words=2)

    def explain(self, scope: Scope) -> tuple[str, ...]:
        """What has no flow."""
        return (
            "'no flow': runs that end because some cluster has fewer than its minimum within the radius; means are "
            "over the others.",
        )

    def draw_panel(self, axes: Axes, scope: Scope, data: FileSet, points: Sequence[Point]) -> None:
        """Losses, and on top how many runs had no flow."""
        lines.draw_points(axes, points, scope.epsilons, lambda point: point.loss)
        drawing.set_loss_ticks(axes)
        low, high = axes.get_ylim()
        axes.set_ylim(low, 1.7 * high)  # room for the numbers
        for point in points:
            if point.cell.infeasible and point.epsilon is not None:
                axes.text(
                    point.epsilon,
                    0.99 if point.line.method == "published" else 0.93,
                    str(point.cell.infeasible),
                    transform=axes.get_xaxis_transform(),
                    ha="center",
                    va="top",
                    fontsize=7.5,
                    color=point.line.colour,
                )
        drawing.tidy_axes(axes, title=f"{data.label}, k = {data.clusters}", x="epsilon", y="NICV")

    def head(self, scope: Scope) -> str:
        """What the numbers are."""
        return f"{super().head(scope)}; numbers on top: how many of them had no flow, by colour"
