"""Thesis tables 8.2 to 8.5: post-processing and initialisation of NMA and AMN at epsilon 4, ten runs, mean WCSS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

from cloister.protocols.fastlloyd import Correction, PostProcessing
from papers.fastlloyd.datasets import FileSet, load_points
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.printed_thesis import (
    EPSILON,
    RECORDS,
    SETS,
    TABLE_8_2,
    TABLE_8_3,
    TABLE_8_4,
    TABLE_8_5,
    LossRow,
)
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Start, Trial

_CORRECTIONS: tuple[Correction, ...] = get_args(Correction)
_SHORT = {"none": "none", "truncate": "trunc", "fold": "fold"}


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """One row of an ablation."""

    label: str
    post: PostProcessing
    start: Start
    printed: LossRow | None


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """One of the tables.

    Parameters
    ----------
    name
        ``table8.2`` to ``table8.5``.
    method
        NMA (``mna``) or AMN.
    choices
        Its rows.
    top
        BC counts how often a row is among so many best.
    totals
        Whether the table has TNW.
    """

    name: str
    method: Literal["mna", "amn"]
    choices: tuple[_Choice, ...]
    top: int
    totals: bool

    @property
    def title(self) -> str:
        """What it shows."""
        subject = "initialisation" if self.totals else "post-processing"
        protocol = "NMA" if self.method == "mna" else "AMN"
        return f"Thesis table {self.name.removeprefix('table')}: {subject} of {protocol}, mean WCSS at epsilon 4 (8.4)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """Every row on every set."""
        return [
            trial
            for data in scope.find_sets(_find_names())
            for choice in self.choices
            for trial in self._list_cell(scope, data, choice)
        ]

    def _list_cell(self, scope: Scope, data: FileSet, choice: _Choice) -> list[Trial]:
        return [
            Trial(data=data, method=self.method, run=run, epsilon=EPSILON, post=choice.post, start=choice.start)
            for run in range(scope.ablation_runs)
        ]

    def count_sessions(self, scope: Scope) -> int:
        """None."""
        return 0

    def make(self, scope: Scope, lab: Lab) -> Product:
        """Ours over the sets at hand, with BC and TNW over the same sets of the printed table."""
        sets = scope.find_sets(_find_names())
        cells = {
            (choice.label, data.name): lab.cell(self._list_cell(scope, data, choice))
            for choice in self.choices
            for data in sets
        }
        sizes = {data.name: len(load_points(data)) for data in sets}
        losses = {key: cell.loss.mean * sizes[key[1]] for key, cell in cells.items()}
        widths = {key: cell.loss.half_width * sizes[key[1]] for key, cell in cells.items()}
        names = [data.name for data in sets]
        labels = [choice.label for choice in self.choices]
        best = count_best(losses, labels, names, top=self.top)
        order = sorted(self.choices, key=lambda choice: (-best[choice.label], labels.index(choice.label)))
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        for choice in order:
            printed = choice.printed
            ours = [losses[choice.label, name] for name in names]
            total = float(np.mean([losses[choice.label, n] / sizes[n] for n in names])) if names else None
            rows.append(
                (
                    choice.label,
                    *ours,
                    *(widths[choice.label, name] for name in names),
                    total,
                    best[choice.label],
                    *tuple(None if printed is None else printed.find(name) for name in SETS),
                    None if printed is None else printed.total,
                    None if printed is None else printed.best_count,
                )
            )
            if printed is None and not best[choice.label]:
                continue
            summary.append((choice.label, "ours", *ours, *((total,) if self.totals else ()), best[choice.label]))
            if printed is not None:
                theirs = [None if name in scope.samples else printed.find(name) for name in names]
                mean = float(np.mean([printed.find(n) / RECORDS[n] for n in names])) if names else None
                summary.append(("", "printed", *theirs, *((mean,) if self.totals else ()), printed.best_count))
        widths_columns = tuple(f"wcss_{name}_ci95" for name in names)
        return Product(
            table=Table(
                columns=(
                    "choice",
                    *(f"wcss_{name}" for name in names),
                    *widths_columns,
                    "tnw",
                    "best_count",
                    *tuple(f"printed_{name}" for name in SETS),
                    "printed_tnw",
                    "printed_best_count",
                ),
                rows=tuple(rows),
            ),
            summary=Table(
                columns=("choice", "", *(data.label for data in sets), *(("TNW",) if self.totals else ()), "BC"),
                rows=tuple(summary),
                words=2,
            ),
            notes=self._explain(scope, len(sets)),
        )

    def _explain(self, scope: Scope, sets: int) -> tuple[str, ...]:
        """What BC and TNW are over."""
        place = "the best" if self.top == 1 else f"among the best {self.top}"
        notes = [
            f"{scope.ablation_runs} runs. BC: on how many sets a row is {place}; ours over the {sets} sets at hand, "
            "the printed one over six: image is not at hand. The guarantee of all rows fails (constrained sizes)."
        ]
        if self.totals:
            printed = ", ".join(f"{c.printed.total} ({c.label})" for c in self.choices if c.printed is not None)
            notes.append(
                "TNW: WCSS / N, averaged over these sets, the printed losses too. Printed over six sets, which by its "
                f"size is an average as well: {printed}."
            )
        if len(self.choices) > len([c for c in self.choices if c.printed is not None]):
            notes.append(
                "Rows without printed numbers have BC = 0 in the thesis, which leaves them out; those with BC = 0 here "
                "too are in the CSV file only."
            )
        return (*notes, *scope.explain_missing(_find_names()))


def count_best(
    losses: Mapping[tuple[str, str], float], labels: Sequence[str], names: Sequence[str], *, top: int
) -> dict[str, int]:
    """On how many sets each row is among the ``top`` lowest losses."""
    counts = dict.fromkeys(labels, 0)
    for name in names:
        for label in sorted(labels, key=lambda label: losses[label, name])[:top]:
            counts[label] += 1
    return counts


def _find_names() -> tuple[str, ...]:
    """The columns of the tables but the one that nobody has."""
    return tuple(name for name in SETS if name != "image")


def _post(sums: Correction, counts: Correction, centres: Correction) -> _Choice:
    return _Choice(
        label=f"({_SHORT[sums]}, {_SHORT[counts]}, {_SHORT[centres]})",
        post=PostProcessing(sums=sums, counts=counts, centres=centres),
        start="sphere-packing",
        printed=TABLE_8_2.get((sums, counts, centres)),
    )


def _centre_post(centres: Correction) -> _Choice:
    post = PostProcessing(sums="none", counts="none", centres=centres)
    return _Choice(label=_SHORT[centres], post=post, start="sphere-packing", printed=TABLE_8_3[centres])


def _starts(printed: Mapping[str, LossRow]) -> tuple[_Choice, ...]:
    starts: tuple[Start, ...] = ("sphere-packing", "random")
    return tuple(_Choice(label=s, post=PostProcessing(), start=s, printed=printed[s]) for s in starts)


ABLATIONS = (
    Ablation(
        name="table8.2",
        method="mna",
        choices=tuple(_post(*corrections) for corrections in product(_CORRECTIONS, repeat=3)),
        top=3,
        totals=False,
    ),
    Ablation(
        name="table8.3",
        method="amn",
        choices=tuple(_centre_post(correction) for correction in TABLE_8_3),
        top=1,
        totals=False,
    ),
    Ablation(name="table8.4", method="mna", choices=_starts(TABLE_8_4), top=1, totals=True),
    Ablation(name="table8.5", method="amn", choices=_starts(TABLE_8_5), top=1, totals=True),
)
