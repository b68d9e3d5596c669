"""Tables 1 to 3: accuracy of centralised Lloyd, k-FED and SecFC against k' (5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from papers.fastlloyd.products import Product, Table, Value
from papers.secfc.accuracy_picture import Bar, Panel, draw_panels
from papers.secfc.cells import (
    METHODS,
    Cell,
    Finding,
    evaluate_cell,
    list_digit_cells,
    list_mixture_cells,
)
from papers.secfc.lab import SecfcLab
from papers.secfc.printed import (
    DIGIT_COLUMNS,
    MIXTURE_COLUMNS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    Column,
    Printed,
    find_printed,
)
from papers.secfc.scope import SecfcScope
from papers.secfc.trials import Method, Trial

_COLUMNS = (
    "data", "clients", "clusters", "local_clusters", "method", "accuracy_percent", "accuracy_sd", "closest_percent",
    "rounds", "converged_runs", "separated_runs", "runs", "sessions", "sessions_exact", "runs_as_centralised",
    "printed_percent", "printed_spread",
)  # fmt: skip
_SHOWN = ("data", "k'", "method", "accuracy %", "closest", "printed %", "exact", "as Lloyd")
_NOTES = (
    "Accuracy: records matched with the component (or turn) they were drawn from, mean ± standard deviation of runs. "
    "Closest: matched with the closest true centre, which the text calls the ground truth; what it prints is the "
    "former.",
    "Lloyd: centralised, in doubles. Exact: sessions through the protocol whose labels are, bit for bit, those of the "
    "algorithm on rounded records in one place. As Lloyd: runs that end with the labels of Lloyd on unrounded records.",
    "k-FED has no privacy, and is told k'. It starts at random, as the paper describes it (3.2, 5); repaired, from "
    "spread-out records and farthest-first.",
)
_OWN_MIXTURES = "Every run has a mixture of its own, so that random centres are in the spread; the paper has one."
_STAND_IN = "NOT MNIST: scikit-learn's 8 x 8 digits stand in, some 180 images of each. Give MNIST with --mnist."
_MNIST = "MNIST's training images of the digit, each in all four turns."


@dataclass(frozen=True, kw_only=True)
class AccuracyTable:
    """One of the tables; of digits where no deviation is given."""

    name: str
    title: str
    printed: Mapping[Method, tuple[Printed, ...]] = field(repr=False)
    columns: tuple[Column, ...] = field(repr=False)
    deviation: float | None = None

    def list_trials(self, scope: SecfcScope) -> list[Trial]:
        """All runs of all cells."""
        return [trial for cell in self._list_cells(scope) for trial in cell.trials]

    def count_sessions(self, scope: SecfcScope) -> int:
        """None is timed."""
        return 0

    def make(self, scope: SecfcScope, lab: SecfcLab) -> Product:
        """Ours beside the printed numbers."""
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        panels: dict[str, list[Bar]] = {}
        said: tuple[Value, ...] = ()
        for cell in self._list_cells(scope):
            found = evaluate_cell(cell, lab)
            printed = find_printed(self.printed, self.columns, cell.method, cell.column)
            rows.append(_write_row(cell, found, printed))
            where = (cell.name, cell.column.local_clusters)
            summary.append((*(("", "") if where == said else where), *_write_summary(cell, found, printed)))
            said = where
            panels.setdefault(cell.name, []).append(
                Bar(
                    method=cell.method,
                    local_clusters=cell.column.local_clusters,
                    percent=found.percent,
                    spread=found.spread,
                    printed=printed,
                )
            )
        drawn = [Panel(title=name, bars=tuple(bars)) for name, bars in panels.items()]
        return Product(
            table=Table(columns=_COLUMNS, rows=tuple(rows)),
            summary=Table(columns=_SHOWN, rows=tuple(summary), words=3),
            notes=(*_NOTES, self._explain_data(scope)),
            picture=draw_panels(self.title, drawn, METHODS),
        )

    def _list_cells(self, scope: SecfcScope) -> list[Cell]:
        if self.deviation is None:
            return list(list_digit_cells(scope))
        return list(list_mixture_cells(scope, self.deviation))

    def _explain_data(self, scope: SecfcScope) -> str:
        if self.deviation is not None:
            return _OWN_MIXTURES
        return _STAND_IN if scope.mnist is None else _MNIST


def _write_row(cell: Cell, found: Finding, printed: Printed | None) -> tuple[Value, ...]:
    return (
        cell.name,
        cell.clients,
        cell.clusters,
        cell.column.local_clusters,
        cell.method,
        found.percent,
        found.spread,
        found.closest_percent,
        found.rounds,
        None if found.rounds is None else found.converged,
        None if found.rounds is None else found.separated,
        found.runs,
        found.sessions,
        found.sessions_exact,
        found.runs_as_centralised,
        None if printed is None else printed.mean,
        None if printed is None else printed.spread,
    )


def _write_summary(cell: Cell, found: Finding, printed: Printed | None) -> tuple[Value, ...]:
    """What follows data and k'."""
    return (
        METHODS[cell.method],
        f"{found.percent:.1f} ± {found.spread:.1f}",
        f"{found.closest_percent:.1f}",
        None if printed is None else str(printed),
        f"{found.sessions_exact}/{found.sessions}" if found.sessions else None,
        f"{found.runs_as_centralised}/{found.runs}" if cell.method == "secfc" else None,
    )


ACCURACY_TABLES = (
    AccuracyTable(
        name="table1",
        title="Table 1: accuracy on Gaussian mixtures, sigma = 1 (SecFC 5.1)",
        printed=TABLE_1,
        columns=MIXTURE_COLUMNS,
        deviation=1.0,
    ),
    AccuracyTable(
        name="table2",
        title="Table 2: accuracy on Gaussian mixtures, sigma = 20 (SecFC 5.1)",
        printed=TABLE_2,
        columns=MIXTURE_COLUMNS,
        deviation=20.0,
    ),
    AccuracyTable(
        name="table3",
        title="Table 3: accuracy on rotated digits (SecFC 5.2)",
        printed=TABLE_3,
        columns=DIGIT_COLUMNS,
    ),
)
