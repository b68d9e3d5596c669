"""Tables 2 to 5 (G.4): how Pareto-optimal settings of FedDP-KMeans split the budget, and how many steps they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cloister.privacy.units import Unit
from papers.feddp import printed
from papers.feddp.comparison import PUBLISHED, Comparison, compare, list_comparison
from papers.feddp.datasets import DataSet
from papers.feddp.scope import Scope
from papers.feddp.trials import Score, Trial, TrialLab
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table, Value

_STEPS = (0, 1, 2)
_NOTE = (
    "From the Pareto front of FedDP-KMeans as published, with its sensitivity right, in the figures of that level. The "
    "paper varies the epsilon of each step freely; here a few splits are tried, so that shares are means of those."
)


def _share_budget(comparison: Comparison) -> tuple[float, ...]:
    """The mean split of the front."""
    splits = [point.setting.split for point in comparison.front(PUBLISHED)]
    return tuple(np.mean([split.shares for split in splits if split is not None], axis=0).tolist())


def _share_steps(comparison: Comparison) -> tuple[float, ...]:
    """How much of the front has 0, 1 and 2 steps."""
    steps = [point.setting.steps for point in comparison.front(PUBLISHED)]
    return tuple(steps.count(number) / len(steps) for number in _STEPS)


@dataclass(frozen=True, kw_only=True)
class BudgetTable(Artefact[Scope, Trial, Score]):
    """One of the tables."""

    unit: Unit
    columns: tuple[str, ...]
    printed: Mapping[str, tuple[float, ...]] = field(repr=False)
    measure: Callable[[Comparison], tuple[float, ...]] = field(repr=False)

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Those of the level's figures."""
        return [trial for data in self._list_data(scope) for trial in list_comparison(data, scope)]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Ours beside the printed numbers; a printed data set that was not given has no numbers of ours."""
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        blank = (None,) * len(self.columns)
        measured = {data.label: self.measure(compare(data, scope, lab)) for data in self._list_data(scope)}
        for label in dict.fromkeys([*measured, *self.printed]):
            ours, theirs = measured.get(label), self.printed.get(label)
            rows.append((label, *(ours or blank), *(theirs or blank)))
            summary.append((label, *(_pair(ours, theirs, place) for place in range(len(self.columns)))))
        return Product(
            table=Table(
                columns=("data", *self.columns, *(f"printed_{name}" for name in self.columns)), rows=tuple(rows)
            ),
            summary=Table(columns=("data", *self.columns), rows=tuple(summary)),
            notes=("Ours, and what is printed in brackets.", _NOTE),
        )

    def _list_data(self, scope: Scope) -> tuple[DataSet, ...]:
        if self.unit is Unit.RECORD:
            return (scope.silo, *scope.census)
        return (*scope.devices, *scope.questions)


def _pair(ours: tuple[float, ...] | None, theirs: tuple[float, ...] | None, place: int) -> str:
    own = "-" if ours is None else f"{ours[place]:.2f}"
    return own if theirs is None else f"{own} ({theirs[place]:.2f})"


_SPLIT_COLUMNS = ("eps_1", "eps_2", "eps_3G", "eps_3L")
_STEP_COLUMNS = ("steps_0", "steps_1", "steps_2")

BUDGET_TABLES = (
    BudgetTable(
        name="table2",
        title="Table 2: shares of epsilon_init, record level (FedDP-KMeans G.4)",
        unit=Unit.RECORD,
        columns=_SPLIT_COLUMNS,
        printed=printed.TABLE_2,
        measure=_share_budget,
    ),
    BudgetTable(
        name="table3",
        title="Table 3: shares of epsilon_init, client level (FedDP-KMeans G.4)",
        unit=Unit.CLIENT,
        columns=_SPLIT_COLUMNS,
        printed=printed.TABLE_3,
        measure=_share_budget,
    ),
    BudgetTable(
        name="table4",
        title="Table 4: steps of FedDP-Lloyds of Pareto-optimal results, record level (FedDP-KMeans G.4)",
        unit=Unit.RECORD,
        columns=_STEP_COLUMNS,
        printed=printed.TABLE_4,
        measure=_share_steps,
    ),
    BudgetTable(
        name="table5",
        title="Table 5: steps of FedDP-Lloyds of Pareto-optimal results, client level (FedDP-KMeans G.4)",
        unit=Unit.CLIENT,
        columns=_STEP_COLUMNS,
        printed=printed.TABLE_5,
        measure=_share_steps,
    ),
)
