"""Thesis tables 8.2 to 8.5: post-processing and initialisation of NMA and AMN at epsilon 4, ten runs, mean WCSS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Literal, get_args

import numpy as np

from cloister.protocols.fastlloyd.published_rules import Correction, PostProcessing
from papers.fastlloyd import printed
from papers.fastlloyd.datasets import FileSet, Scope, load_points
from papers.fastlloyd.printed import LossRow
from papers.fastlloyd.trials import Cell, Score, Start, Trial, TrialLab
from papers.lab.paper import Artefact
from papers.lab.products import Estimate, Product, Table, Value

_CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
_SHORT = {"none": "none", "truncate": "trunc", "fold": "fold"}
_NAMES = tuple(name for name in printed.SETS if name != "image")
"""The columns of the tables but the one that nobody has."""


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """One row of an ablation."""

    label: str
    post: PostProcessing
    start: Start
    printed: LossRow | None


@dataclass(frozen=True, kw_only=True)
class _Row:
    """The results of a choice on the sets available."""

    choice: _Choice
    losses: Mapping[str, Estimate]
    """WCSS by set."""
    total: float | None
    """TNW: WCSS / N, averaged."""
    best_count: int

    @property
    def printed(self) -> LossRow | None:
        """The same row of the thesis."""
        return self.choice.printed

    def find_loss(self, name: str) -> float:
        """Mean WCSS on one set."""
        return self.losses[name].mean

    def find_half_width(self, name: str) -> float:
        """Of its interval."""
        return self.losses[name].half_width

    def find_printed(self, name: str) -> float | None:
        """What the thesis has."""
        return None if self.printed is None else self.printed.find(name)


@dataclass(frozen=True, kw_only=True)
class Ablation(Artefact[Scope, Trial, Score]):
    """One of the tables.

    Parameters
    ----------
    method
        NMA (``mna``) or AMN.
    choices
        Its rows.
    top
        BC counts how often a row is among this many best.
    totals
        Whether the table has TNW.
    """

    method: Literal["mna", "amn"]
    choices: tuple[_Choice, ...]
    top: int = 1
    totals: bool = False

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Every row on every set."""
        return [
            trial
            for data in scope.find_sets(_NAMES)
            for choice in self.choices
            for trial in self._list_cell(scope, data, choice)
        ]

    def _list_cell(self, scope: Scope, data: FileSet, choice: _Choice) -> list[Trial]:
        return [
            Trial(data=data, method=self.method, run=run, epsilon=printed.EPSILON, post=choice.post, start=choice.start)
            for run in range(scope.ablation_runs)
        ]

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Ours over the sets available, with BC and TNW over the same sets of the printed table."""
        sets = scope.find_sets(_NAMES)
        names = [data.name for data in sets]
        rows = self._measure(scope, lab, sets)
        columns: dict[str, Callable[[_Row], Value]] = {"choice": lambda row: row.choice.label}
        columns |= {f"wcss_{name}": partial(_Row.find_loss, name=name) for name in names}
        columns |= {f"wcss_{name}_ci95": partial(_Row.find_half_width, name=name) for name in names}
        columns |= {"tnw": lambda row: row.total, "best_count": lambda row: row.best_count}
        columns |= {f"printed_{name}": partial(_Row.find_printed, name=name) for name in printed.SETS}
        columns |= {
            "printed_tnw": lambda row: None if row.printed is None else row.printed.total,
            "printed_best_count": lambda row: None if row.printed is None else row.printed.best_count,
        }
        totals = ("TNW",) if self.totals else ()
        return Product(
            table=Table.of(rows, columns),
            summary=Table(
                columns=("choice", "", *(data.label for data in sets), *totals, "BC"),
                rows=tuple(line for row in rows for line in self._summarise(scope, row, names)),
                words=2,
            ),
            notes=self._explain(scope, len(sets)),
        )

    def _measure(self, scope: Scope, lab: TrialLab, sets: Sequence[FileSet]) -> list[_Row]:
        """All rows, those with the most best places first."""
        losses: dict[str, dict[str, Estimate]] = {}
        for choice in self.choices:
            losses[choice.label] = {
                data.name: Cell.of(lab.scores(self._list_cell(scope, data, choice))).loss.times(len(load_points(data)))
                for data in sets
            }
        best = count_best({label: {n: e.mean for n, e in row.items()} for label, row in losses.items()}, top=self.top)
        sizes = {data.name: len(load_points(data)) for data in sets}
        rows = [
            _Row(
                choice=choice,
                losses=losses[choice.label],
                total=_average([e.mean / sizes[name] for name, e in losses[choice.label].items()]),
                best_count=best[choice.label],
            )
            for choice in self.choices
        ]
        return sorted(rows, key=lambda row: -row.best_count)

    def _summarise(self, scope: Scope, row: _Row, names: Sequence[str]) -> list[tuple[Value, ...]]:
        """Ours and what is printed; nothing for a row that is in neither's best."""
        if row.printed is None and not row.best_count:
            return []
        ours = [row.find_loss(name) for name in names]
        totals = (row.total,) if self.totals else ()
        lines: list[tuple[Value, ...]] = [(row.choice.label, "ours", *ours, *totals, row.best_count)]
        if row.printed is not None:
            theirs = [None if name in scope.samples else row.printed.find(name) for name in names]
            mean = _average([row.printed.find(name) / printed.RECORDS[name] for name in names])
            lines.append(("", "printed", *theirs, *((mean,) if self.totals else ()), row.printed.best_count))
        return lines

    def _explain(self, scope: Scope, sets: int) -> tuple[str, ...]:
        """What BC and TNW are over."""
        place = "the best" if self.top == 1 else f"among the best {self.top}"
        notes = [
            f"{scope.ablation_runs} runs. BC: on how many sets a row is {place}; ours over the {sets} sets available, "
            "the printed one over six: image is not available. The guarantee of all rows fails (constrained sizes)."
        ]
        if self.totals:
            totals = ", ".join(f"{c.printed.total} ({c.label})" for c in self.choices if c.printed is not None)
            notes.append(
                "TNW: WCSS / N, averaged over these sets, the printed losses too. Printed over six sets, which by its "
                f"size is an average as well: {totals}."
            )
        if any(choice.printed is None for choice in self.choices):
            notes.append(
                "Rows without printed numbers have BC = 0 in the thesis, which leaves them out; those with BC = 0 here "
                "too are in the CSV file only."
            )
        return (*notes, *scope.explain_missing(_NAMES))


def count_best(losses: Mapping[str, Mapping[str, float]], *, top: int) -> dict[str, int]:
    """On how many sets each row is among the ``top`` lowest losses."""
    counts = dict.fromkeys(losses, 0)
    for name in next(iter(losses.values())):
        for label in sorted(losses, key=lambda label: losses[label][name])[:top]:
            counts[label] += 1
    return counts


def _average(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _post(sums: Correction, counts: Correction, centres: Correction) -> _Choice:
    return _Choice(
        label=f"({_SHORT[sums]}, {_SHORT[counts]}, {_SHORT[centres]})",
        post=PostProcessing(sums=sums, counts=counts, centres=centres),
        start="sphere-packing",
        printed=printed.TABLE_8_2.get((sums, counts, centres)),
    )


def _centre_post(centres: Correction) -> _Choice:
    post = PostProcessing(sums="none", counts="none", centres=centres)
    return _Choice(label=_SHORT[centres], post=post, start="sphere-packing", printed=printed.TABLE_8_3[centres])


def _starts(table: Mapping[str, LossRow]) -> tuple[_Choice, ...]:
    starts: tuple[Start, ...] = ("sphere-packing", "random")
    return tuple(_Choice(label=s, post=PostProcessing(), start=s, printed=table[s]) for s in starts)


ABLATIONS = (
    Ablation(
        name="table8.2",
        title="Thesis table 8.2: post-processing of NMA, mean WCSS at epsilon 4 (8.4)",
        method="mna",
        choices=tuple(_post(*corrections) for corrections in product(_CORRECTIONS, repeat=3)),
        top=3,
    ),
    Ablation(
        name="table8.3",
        title="Thesis table 8.3: post-processing of AMN, mean WCSS at epsilon 4 (8.4)",
        method="amn",
        choices=tuple(_centre_post(correction) for correction in printed.TABLE_8_3),
    ),
    Ablation(
        name="table8.4",
        title="Thesis table 8.4: initialisation of NMA, mean WCSS at epsilon 4 (8.4)",
        method="mna",
        choices=_starts(printed.TABLE_8_4),
        totals=True,
    ),
    Ablation(
        name="table8.5",
        title="Thesis table 8.5: initialisation of AMN, mean WCSS at epsilon 4 (8.4)",
        method="amn",
        choices=_starts(printed.TABLE_8_5),
        totals=True,
    ),
)
