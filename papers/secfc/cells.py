"""Cells of the accuracy tables: which runs each is made of, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from papers.secfc.datasets import DataSet, MixtureSet, Scope
from papers.secfc.printed import Column
from papers.secfc.trials import Method, Trial, TrialLab

METHODS: dict[Method, str] = {
    "centralised": "Lloyd",
    "k-fed": "k-FED",
    "k-fed-repaired": "k-FED, repaired",
    "secfc": "SecFC",
}
"""What tables and legends call them."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method in one column of one data set; run r of every method has the same data and the same start."""

    name: str
    column: Column
    clients: int
    clusters: int
    method: Method
    trials: tuple[Trial, ...] = field(repr=False)
    centralised: tuple[Trial, ...] = field(repr=False)
    """Of the same runs, to compare labels with."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the runs of a cell come to.

    Attributes
    ----------
    percent, spread
        Mean and standard deviation of the accuracy against components.
    closest_percent
        Mean accuracy against the closest true centres.
    rounds
        Mean number of assignments; None for k-FED.
    converged, separated
        How many runs ended by themselves, and in how many the 1/3 rule changed the clusters; None for k-FED.
    runs
        Of how many.
    sessions, sessions_exact
        How many runs went through the protocol, and how many of those agree with the algorithm in one place.
    runs_as_centralised
        How many ended with the labels of Lloyd's algorithm in doubles.
    """

    percent: float
    spread: float
    closest_percent: float
    rounds: float | None
    converged: int | None
    separated: int | None
    runs: int
    sessions: int
    sessions_exact: int
    runs_as_centralised: int


def evaluate_cell(cell: Cell, lab: TrialLab) -> Finding:
    """Summarise runs that are done."""
    scores, others = lab.scores(cell.trials), lab.scores(cell.centralised)
    percents = [100.0 * score.accuracy for score in scores]
    rounds = [score.rounds for score in scores if score.rounds is not None]
    exact = [score.exact for score in scores if score.exact is not None]
    alike = [one.labels_sha256 == other.labels_sha256 for one, other in zip(scores, others, strict=True)]
    return Finding(
        percent=float(np.mean(percents)),
        spread=float(np.std(percents, ddof=1)) if len(percents) > 1 else float("nan"),
        closest_percent=float(np.mean([100.0 * score.closest_accuracy for score in scores])),
        rounds=float(np.mean(rounds)) if rounds else None,
        converged=sum(score.converged for score in scores) if rounds else None,
        separated=sum(score.separated for score in scores) if rounds else None,
        runs=len(scores),
        sessions=len(exact),
        sessions_exact=sum(exact),
        runs_as_centralised=sum(alike),
    )


def list_mixture_cells(scope: Scope, deviation: float) -> Iterator[Cell]:
    """Cells of table 1 or 2; every run has a mixture of its own."""
    for setting in scope.settings:
        sets = [
            MixtureSet(clusters=setting.clusters, records=setting.records, deviation=deviation, number=number)
            for number in range(scope.runs)
        ]
        name = f"k = {setting.clusters}, m = {setting.records:,}"
        for local in setting.local_clusters:
            column = Column(group=setting.clusters, local_clusters=local)
            yield from _list_methods(name, column, setting.clients, sets, scope.protocol_runs)


def list_digit_cells(scope: Scope) -> Iterator[Cell]:
    """Cells of table 3."""
    for data in scope.find_digits():
        for local in scope.digit_local_clusters:
            column = Column(group=data.digit, local_clusters=local)
            yield from _list_methods(data.label, column, scope.digit_clients, [data] * scope.runs, scope.protocol_runs)


def _list_methods(
    name: str, column: Column, clients: int, sets: Sequence[DataSet], protocol_runs: int
) -> Iterator[Cell]:
    """All methods of one column; run r is on the r-th set, and SecFC's first runs go through the protocol."""
    local = column.local_clusters
    kept: tuple[Trial, ...] = ()
    for method in METHODS:
        trials = []
        for run, data in enumerate(sets):
            protocol = method == "secfc" and run < protocol_runs
            # In one place it does not matter who held which record: such a run is shared by all k'.
            split = local if protocol or method in ("k-fed", "k-fed-repaired") else None
            trials.append(
                Trial(data=data, method=method, run=run, clients=clients, local_clusters=split, protocol=protocol)
            )
        if method == "centralised":
            kept = tuple(trials)
        yield Cell(
            name=name,
            column=column,
            clients=clients,
            clusters=sets[0].clusters,
            method=method,
            trials=tuple(trials),
            centralised=kept,
        )
