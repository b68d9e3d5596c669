"""The methods that figures and tables compare, the settings of each that are tried, and what their runs come to.

The authors' own code stands beside ours as it was measured on mixtures of the same kind, where that measurement is at
hand. Its mixture is another draw than ours, so that excesses over the optimum are compared and not costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from cloister.privacy.units import Unit
from papers.data.files import read_measurements
from papers.feddp.datasets import DataSet, MixtureSet
from papers.feddp.published import Split
from papers.feddp.scope import Scope
from papers.feddp.trials import Method, Trial, TrialLab
from papers.lab import drawing
from papers.lab.products import Estimate

Item = TypeVar("Item")
HOLDS, NONE = "holds", "no privacy"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a figure.

    Parameters
    ----------
    method, label
        What is run, and what legends and tables call it.
    guarantee
        Whether its epsilon can be relied on, in words.
    peer, peer_label
        The method of the peers' file that it is compared with, and what tables call that; empty for none.
    colour, dash, width
        How it is drawn.
    """

    method: Method
    label: str
    colour: str
    guarantee: str = HOLDS
    peer: str = ""
    peer_label: str = "  authors' code"
    dash: str = "-"
    width: float = 1.5

    @property
    def private(self) -> bool:
        """Whether it has an epsilon."""
        return self.guarantee != NONE

    @property
    def style(self) -> dict[str, Any]:
        """How matplotlib draws it."""
        return {"color": self.colour, "linestyle": self.dash, "linewidth": self.width}

    def list_settings(self, data: DataSet, scope: Scope) -> list[Trial]:
        """Everything that is tried, as first runs: epsilons with steps and splits."""
        if not self.private:
            return [Trial(data=data, method=self.method, run=0)]
        settings = product(scope.epsilons, self._list_steps(scope), self._list_splits(data, scope))
        return [
            Trial(data=data, method=self.method, run=0, epsilon=epsilon, steps=steps, split=split)
            for epsilon, steps, split in settings
        ]

    def _list_steps(self, scope: Scope) -> tuple[int | None, ...]:
        if self.method == "published":
            return scope.steps
        return (None,) if self.method in ("cloister", "synopsis") else scope.baseline_steps

    def _list_splits(self, data: DataSet, scope: Scope) -> tuple[Split | None, ...]:
        if self.method != "published":
            return (None,)
        return scope.record_splits if data.unit is Unit.RECORD else scope.client_splits


CLOISTER = Line(
    method="cloister",
    label="Cloister feddp",
    colour=drawing.BLUE,
    peer="own-tight T=1",
    peer_label="  a study, continuous noise",
    width=2.2,
)
PUBLISHED = Line(
    method="published",
    label="FedDP-KMeans, as published",
    colour=drawing.RED,
    peer="FedDP-KMeans-fixedsens",
    peer_label="  authors' code, corrected",
)
SYNOPSIS = Line(method="synopsis", label="Cloister synopsis (no server)", colour=drawing.SKY, dash="-.")
SERVER_LLOYDS = Line(method="server-lloyds", label="ServerLloyds", colour=drawing.GREEN, peer="ServerLloyds")
SERVER_PLUS_PLUS = Line(method="server-kmeans++", label="ServerKMeans++", colour=drawing.ORANGE, peer="ServerKMeans++")
PACKING = Line(method="sphere-packing", label="SpherePacking", colour=drawing.PINK, peer="SpherePacking")
K_FED = Line(
    method="k-fed", label="k-FED (no privacy)", colour=drawing.GREY, guarantee=NONE, peer="KFed-bugfixed", dash="--"
)
OPTIMAL = Line(
    method="optimal", label="Optimal (no privacy)", colour=drawing.BLACK, guarantee=NONE, peer="Optimal", dash=":"
)
ALL_LINES = (CLOISTER, PUBLISHED, SYNOPSIS, SERVER_LLOYDS, SERVER_PLUS_PLUS, PACKING, K_FED, OPTIMAL)
AS_SHIPPED = "FedDP-KMeans"
"""The authors' code as it is, which adds too little noise: its guarantee fails, and it is shown apart."""


PEERS_FILE = "feddp_kmeans.csv"
_LEVELS = {"data": Unit.RECORD, "client": Unit.CLIENT}
_MEASURED = {
    MixtureSet(clients=100, records_each=1000, unit=Unit.RECORD),
    MixtureSet(clients=2000, records_each=50, unit=Unit.CLIENT),
}
"""Mixtures of these sizes were measured."""


@dataclass(frozen=True, kw_only=True)
class Peers:
    """Excess of every run by level, method and epsilon (None: without privacy), then by the number of Lloyd steps."""

    excesses: dict[tuple[Unit, str, float | None], dict[int, list[float]]]

    def find(self, data: DataSet, method: str, epsilon: float | None) -> float | None:
        """The mean excess with the best number of Lloyd steps; None where it was not measured."""
        if data not in _MEASURED:
            return None
        by_steps = self.excesses.get((data.unit, method, epsilon))
        return min(fmean(values) for values in by_steps.values()) if by_steps else None


@lru_cache(maxsize=2)
def load_peers(folder: Path | None) -> Peers:
    """Read the file in a folder; none where there is no folder or no file."""

    def convert(row: dict[str, str]) -> tuple[tuple[Unit, str, float | None], int, float]:
        epsilon = None if row["eps_total"] == "inf" else float(row["eps_total"])
        key = (_LEVELS[row["mode"]], row["method"], epsilon)
        return key, int(row["lloyd_steps"]), float(row["excess_over_optimal"])

    found: dict[tuple[Unit, str, float | None], dict[int, list[float]]] = {}
    if folder is not None:
        columns = "mode, method, eps_total, lloyd_steps and excess_over_optimal"
        for key, steps, excess in read_measurements(folder / PEERS_FILE, columns, convert):
            found.setdefault(key, {}).setdefault(steps, []).append(excess)
    return Peers(excesses=found)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One setting of one method.

    Attributes
    ----------
    setting
        Its first run.
    cost
        K-means cost a record: mean of the runs, and the interval of the mean.
    least, most
        The least and the largest cost of a run.
    excess
        The mean above the optimum's.
    accuracy
        Mean share of records matched with their component; None for real data.
    cpu_s
        Mean CPU seconds of a run.
    """

    line: Line
    setting: Trial
    cost: Estimate
    least: float
    most: float
    excess: float
    accuracy: float | None
    cpu_s: float
    runs: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All methods on one data set."""

    data: DataSet
    optimum: float
    points: tuple[Point, ...]

    def front(self, line: Line) -> tuple[Point, ...]:
        """The Pareto front of a method's means; its one point where it has no epsilon."""
        return find_front(
            [point for point in self.points if point.line == line],
            epsilon=lambda point: point.setting.epsilon or 0.0,
            cost=lambda point: point.cost.mean,
        )

    def best(self, line: Line, epsilon: float | None) -> Point:
        """The best setting of a method at one epsilon."""
        at = [point for point in self.points if point.line == line and point.setting.epsilon == epsilon]
        return min(at, key=lambda point: point.cost.mean)


def list_runs(setting: Trial, scope: Scope) -> list[Trial]:
    """All repetitions of a setting; what is centralised is run once."""
    runs = 1 if setting.method == OPTIMAL.method else scope.runs
    return [replace(setting, run=run) for run in range(runs)]


def list_comparison(data: DataSet, scope: Scope) -> list[Trial]:
    """All runs of all methods."""
    return [
        trial
        for line in ALL_LINES
        for setting in line.list_settings(data, scope)
        for trial in list_runs(setting, scope)
    ]


def compare(data: DataSet, scope: Scope, lab: TrialLab) -> Comparison:
    """Summarise runs that are done."""
    (best,) = OPTIMAL.list_settings(data, scope)
    optimum = lab.score(best).cost
    points = [
        _summarise(line, setting, list_runs(setting, scope), lab, optimum)
        for line in ALL_LINES
        for setting in line.list_settings(data, scope)
    ]
    return Comparison(data=data, optimum=optimum, points=tuple(points))


def _summarise(line: Line, setting: Trial, runs: Iterable[Trial], lab: TrialLab, optimum: float) -> Point:
    scores = lab.scores(runs)
    costs = [score.cost for score in scores]
    cost = Estimate.of(costs)
    known = [score.accuracy for score in scores if score.accuracy is not None]
    return Point(
        line=line,
        setting=setting,
        cost=cost,
        least=min(costs),
        most=max(costs),
        excess=cost.mean - optimum,
        accuracy=sum(known) / len(known) if known else None,
        cpu_s=sum(score.cpu_s for score in scores) / len(scores),
        runs=len(scores),
    )


def find_front(
    points: Sequence[Item], *, epsilon: Callable[[Item], float], cost: Callable[[Item], float]
) -> tuple[Item, ...]:
    """Return the points that no other one beats, by rising epsilon.

    One beats another if neither its epsilon nor its cost is larger and one of them is smaller; of equal points the
    first is kept.
    """
    front: list[Item] = []
    for point in sorted(points, key=lambda each: (epsilon(each), cost(each))):
        if not front or cost(point) < cost(front[-1]):
            front.append(point)
    return tuple(front)
