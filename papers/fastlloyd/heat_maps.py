"""Figures 5 and 6: NICV over k and d on SynthOV and SynthSEP at epsilon 1, and how much lower it is than SuLloyd's."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from cloister.records import FloatArray
from papers.fastlloyd import printed
from papers.fastlloyd.datasets import DrawnSet, Family, Scope
from papers.fastlloyd.lines import FOLDED_SULLOYD, PUBLISHED, SOUND, SULLOYD, Line
from papers.fastlloyd.trials import Cell, Score, Trial, TrialLab
from papers.lab import drawing
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_DRAWN = (PUBLISHED, SULLOYD, SOUND)
_LINES = (*_DRAWN, FOLDED_SULLOYD)
_EPSILON = 1.0
_MOST_ANNOTATED = 100

Maps = dict[str, FloatArray]
"""Of each line by its key: mean losses, k down and d across."""


@dataclass(frozen=True, kw_only=True)
class HeatMaps(Artefact[Scope, Trial, Score]):
    """Figure 5 (SynthOV) or 6 (SynthSEP)."""

    family: Family

    def list_trials(self, scope: Scope) -> list[Trial]:
        """All cells."""
        return [
            trial
            for k, d, line in product(scope.sizes, scope.sizes, _LINES)
            for trial in self._list_cell(scope, line, k, d)
        ]

    def _list_cell(self, scope: Scope, line: Line, k: int, d: int) -> list[Trial]:
        sets = [DrawnSet(family=self.family, clusters=k, dimensions=d, number=n) for n in range(scope.grid_sets)]
        return [trial for data in sets for trial in line.make_trials(data, _EPSILON, scope.grid_runs)]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Three maps of NICV, and three of how much lower one is than another."""
        cells = {
            (k, d, line): Cell.of(lab.scores(self._list_cell(scope, line, k, d)))
            for k, d, line in product(scope.sizes, scope.sizes, _LINES)
        }
        maps = {
            line.key: np.array([[cells[k, d, line].loss.mean for d in scope.sizes] for k in scope.sizes])
            for line in _LINES
        }
        return Product(
            table=Table.of(
                cells.items(),
                {
                    "data": lambda _: self.family,
                    "clusters": lambda item: item[0][0],
                    "dimensions": lambda item: item[0][1],
                    "method": lambda item: item[0][2].key,
                    "guarantee": lambda item: item[0][2].guarantee,
                    "nicv": lambda item: item[1].loss.mean,
                    "nicv_ci95": lambda item: item[1].loss.half_width,
                    "runs": lambda item: item[1].runs,
                    "infeasible": lambda item: item[1].infeasible,
                },
            ),
            summary=self._summarise(maps),
            notes=(
                f"Epsilon 1, k, d = {scope.sizes[0]} to {scope.sizes[-1]}; {scope.grid_sets} data sets to a cell, "
                f"{scope.grid_runs} runs on each (the paper: 3 and 20). The heat maps' own numbers are not printed.",
            ),
            picture=self._draw(scope, maps),
        )

    def _summarise(self, maps: Maps) -> Table:
        """The largest reduction, the one at the largest k and d, and how often there is none."""
        separated = self.family == "SynthSEP"
        rows: list[tuple[Value, ...]] = []
        for line in (PUBLISHED, SOUND):
            for base in (SULLOYD, FOLDED_SULLOYD):
                values = _reduce(maps, line, base)
                best = corner = worse = None
                if line is PUBLISHED and base is SULLOYD:  # what the paper compares
                    best = (printed.SYNTHSEP_BEST if separated else printed.SYNTHOV_REDUCTION).short
                    corner, worse = printed.SYNTHSEP_CORNER.short if separated else None, "none"
                named = (line.short, line.guarantee, base.short)
                rows += [
                    (*named, "largest", float(np.nanmax(values)), best),
                    (*named, "largest k and d", float(values[-1, -1]), corner),
                    (*named, f"cells worse, of {values.size}", int((values < 0).sum()), worse),
                ]
        columns = ("method", "guarantee", "against", "NICV less by", "ours, %", "printed")
        return Table(columns=columns, rows=tuple(rows), words=4)

    def _draw(self, scope: Scope, maps: Maps) -> bytes:
        """Darker is worse for NICV; reductions have their own colours around zero."""
        figure = drawing.make_figure(13.0, 7.6)
        panels = figure.subplots(2, 3).ravel()
        stacked = np.stack([maps[line.key] for line in _DRAWN])
        for axes, line in zip(panels, _DRAWN, strict=False):
            image = _draw_map(axes, scope, maps[line.key], cmap="Blues", low=0.0, high=float(np.nanmax(stacked)))
            axes.set_title(f"NICV, {line.label}", fontsize=9, loc="left")
        figure.colorbar(image, ax=list(panels[:3]), label="NICV", pad=0.01, aspect=30)
        pairs = ((PUBLISHED, SULLOYD), (SOUND, SULLOYD), (SOUND, PUBLISHED))
        for axes, (line, base) in zip(panels[3:], pairs, strict=True):
            image = _draw_map(axes, scope, _reduce(maps, line, base), cmap="RdBu", low=-100.0, high=100.0)
            axes.set_title(f"Reduction of NICV, %: {line.short} against {base.short}", fontsize=9, loc="left")
        figure.colorbar(image, ax=list(panels[3:]), label="reduction, %", pad=0.01, aspect=30)
        runs = f"{scope.grid_sets} x {scope.grid_runs} runs per cell"
        return drawing.finish_figure(figure, f"{self.title} again, epsilon 1, {runs}", legend_columns=1)


def _reduce(maps: Maps, line: Line, base: Line) -> FloatArray:
    """By how many percent a method's NICV is below another's."""
    reduction: FloatArray = 100.0 * (1.0 - maps[line.key] / maps[base.key])
    return reduction


def _draw_map(axes: Axes, scope: Scope, values: FloatArray, *, cmap: str, low: float, high: float) -> AxesImage:
    """Draw one map, with its numbers."""
    image = axes.imshow(values, origin="lower", aspect="auto", cmap=cmap, vmin=low, vmax=high)
    ticks = range(len(scope.sizes))
    axes.set_xticks(ticks, [str(d) for d in scope.sizes], fontsize=8)
    axes.set_yticks(ticks, [str(k) for k in scope.sizes], fontsize=8)
    axes.set_xlabel("d", fontsize=9)
    axes.set_ylabel("k", fontsize=9)
    axes.tick_params(length=0)
    if values.size > _MOST_ANNOTATED:
        return image
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            # White ink where the colour is dark: at the top of one scale, at both ends of the other.
            dark = abs(value) > 0.6 * high
            text = _write_number(value, percent=high == 100.0)
            axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
    return image


def _write_number(value: float, *, percent: bool) -> str:
    """Cells are narrow: whole percent, and losses without their zero."""
    if percent:
        return f"{value:.0f}".replace("-0", "0")
    return (f"{value:.2f}" if value >= 0.095 else f"{value:.3f}").replace("0.", ".")
