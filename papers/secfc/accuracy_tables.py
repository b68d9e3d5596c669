"""Tables 1 to 3: accuracy of centralised Lloyd, k-FED and SecFC against k' (5.1, 5.2); as tables and as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from papers.lab import drawing
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table, Value
from papers.secfc import cells, printed
from papers.secfc.cells import METHODS, Cell, Finding
from papers.secfc.datasets import Scope
from papers.secfc.printed import Column, Printed
from papers.secfc.trials import Method, Score, Trial, TrialLab

_COLOURS: dict[Method, str] = {
    "centralised": drawing.GREY,
    "k-fed": drawing.RED,
    "k-fed-repaired": drawing.ORANGE,
    "secfc": drawing.BLUE,
}
_NOTES = (
    "Accuracy: records matched with the component (or turn) they were drawn from, mean ± standard deviation of runs. "
    "Closest: matched with the closest true centre, which the text calls the ground truth; what it prints is the "
    "former.",
    "Lloyd: centralised, in doubles. Exact: sessions through the protocol whose labels are, bit for bit, those of the "
    "algorithm on rounded records in one place. As Lloyd: runs that end with the labels of Lloyd on unrounded records.",
    "k-FED has no privacy and knows k'. It starts at random, as the paper describes it (3.2, 5); repaired, from "
    "spread-out records and farthest-first.",
)
_OWN_MIXTURES = "Every run has a mixture of its own, so that random centres are in the spread; the paper has one."
_STAND_IN = (
    "NOT MNIST: scikit-learn's 8 x 8 digits stand in, some 180 images of each. Put MNIST's files into the folder mnist "
    "of the data sets."
)
_MNIST = "MNIST's training images of the digit, each in all four rotations."


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """One cell with what its runs came to, beside what is printed."""

    cell: Cell
    found: Finding
    printed: Printed | None


@dataclass(frozen=True, kw_only=True)
class AccuracyTable(Artefact[Scope, Trial, Score]):
    """One of the tables; of digits where no deviation is given."""

    printed: Mapping[Method, tuple[Printed, ...]] = field(repr=False)
    columns: tuple[Column, ...] = field(repr=False)
    deviation: float | None = None

    def list_trials(self, scope: Scope) -> list[Trial]:
        """All runs of all cells."""
        return [trial for cell in self._list_cells(scope) for trial in cell.trials]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Ours beside the printed numbers."""
        entries = [
            _Entry(
                cell=cell,
                found=cells.evaluate_cell(cell, lab),
                printed=printed.find_printed(self.printed, self.columns, cell.method, cell.column),
            )
            for cell in self._list_cells(scope)
        ]
        return Product(
            table=Table.of(
                entries,
                {
                    "data": lambda entry: entry.cell.name,
                    "clients": lambda entry: entry.cell.clients,
                    "clusters": lambda entry: entry.cell.clusters,
                    "local_clusters": lambda entry: entry.cell.column.local_clusters,
                    "method": lambda entry: entry.cell.method,
                    "accuracy_percent": lambda entry: entry.found.percent,
                    "accuracy_sd": lambda entry: entry.found.spread,
                    "closest_percent": lambda entry: entry.found.closest_percent,
                    "rounds": lambda entry: entry.found.rounds,
                    "converged_runs": lambda entry: entry.found.converged,
                    "separated_runs": lambda entry: entry.found.separated,
                    "runs": lambda entry: entry.found.runs,
                    "sessions": lambda entry: entry.found.sessions,
                    "sessions_exact": lambda entry: entry.found.sessions_exact,
                    "runs_as_centralised": lambda entry: entry.found.runs_as_centralised,
                    "printed_percent": lambda entry: None if entry.printed is None else entry.printed.mean,
                    "printed_spread": lambda entry: None if entry.printed is None else entry.printed.spread,
                },
            ),
            summary=_summarise(entries),
            notes=(*_NOTES, self._explain_data(scope)),
            picture=_draw(self.title, entries),
        )

    def _list_cells(self, scope: Scope) -> list[Cell]:
        if self.deviation is None:
            return list(cells.list_digit_cells(scope))
        return list(cells.list_mixture_cells(scope, self.deviation))

    def _explain_data(self, scope: Scope) -> str:
        if self.deviation is not None:
            return _OWN_MIXTURES
        return _STAND_IN if scope.mnist is None else _MNIST


def _summarise(entries: Sequence[_Entry]) -> Table:
    """Data and k' are written once for all methods."""
    rows: list[tuple[Value, ...]] = []
    said: tuple[Value, ...] = ()
    for entry in entries:
        cell, found = entry.cell, entry.found
        where = (cell.name, cell.column.local_clusters)
        rows.append(
            (
                *(("", "") if where == said else where),
                METHODS[cell.method],
                f"{found.percent:.1f} ± {found.spread:.1f}",
                f"{found.closest_percent:.1f}",
                None if entry.printed is None else str(entry.printed),
                f"{found.sessions_exact}/{found.sessions}" if found.sessions else None,
                f"{found.runs_as_centralised}/{found.runs}" if cell.method == "secfc" else None,
            )
        )
        said = where
    columns = ("data", "k'", "method", "accuracy %", "closest", "printed %", "exact", "as Lloyd")
    return Table(columns=columns, rows=tuple(rows), words=3)


def _draw(title: str, entries: Sequence[_Entry]) -> bytes:
    """Accuracy against k' as bars, one panel for each data set; the printed numbers are rings."""
    names = dict.fromkeys(entry.cell.name for entry in entries)
    figure = drawing.make_figure(5.2 * len(names), 3.9)
    width = 0.8 / len(METHODS)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        panel = [entry for entry in entries if entry.cell.name == name]
        places = {local: at for at, local in enumerate(dict.fromkeys(e.cell.column.local_clusters for e in panel))}
        for number, (method, label) in enumerate(METHODS.items()):
            bars = [entry for entry in panel if entry.cell.method == method]
            offset = (number - (len(METHODS) - 1) / 2) * width
            x = np.array([places[bar.cell.column.local_clusters] for bar in bars]) + offset
            axes.bar(
                x,
                [bar.found.percent for bar in bars],
                0.9 * width,
                yerr=np.nan_to_num([bar.found.spread for bar in bars]),
                color=_COLOURS[method],
                error_kw={"linewidth": 0.8},
                label=label,
            )
            rings = [(at, bar.printed.mean) for at, bar in zip(x, bars, strict=True) if bar.printed is not None]
            if rings:
                axes.plot(*zip(*rings, strict=True), "o", color=drawing.BLACK, markerfacecolor="white", markersize=4)
        axes.set_xticks(range(len(places)), [str(local) for local in places])
        axes.set_ylim(0, 105)
        drawing.tidy_axes(axes, title=name, x="k', components that a client holds at most", y="accuracy, %")
    return drawing.finish_figure(figure, f"{title}. Rings: as printed.", legend_columns=len(METHODS))


ACCURACY_TABLES = (
    AccuracyTable(
        name="table1",
        title="Table 1: accuracy on Gaussian mixtures, sigma = 1 (SecFC 5.1)",
        printed=printed.TABLE_1,
        columns=printed.MIXTURE_COLUMNS,
        deviation=1.0,
    ),
    AccuracyTable(
        name="table2",
        title="Table 2: accuracy on Gaussian mixtures, sigma = 20 (SecFC 5.1)",
        printed=printed.TABLE_2,
        columns=printed.MIXTURE_COLUMNS,
        deviation=20.0,
    ),
    AccuracyTable(
        name="table3",
        title="Table 3: accuracy on rotated digits (SecFC 5.2)",
        printed=printed.TABLE_3,
        columns=printed.DIGIT_COLUMNS,
    ),
)
