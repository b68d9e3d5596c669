"""Settings that were tried on a data set, what their runs come to, and the Pareto front of each method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from papers.fastlloyd.estimates import Estimate
from papers.feddp.datasets import DataSet
from papers.feddp.lab import FeddpLab
from papers.feddp.lines import ALL_LINES, OPTIMAL, Line
from papers.feddp.pareto import find_front
from papers.feddp.scope import FeddpScope
from papers.feddp.trials import Trial


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


def list_runs(setting: Trial, scope: FeddpScope) -> list[Trial]:
    """All repetitions of a setting; what is centralised is run once."""
    runs = 1 if setting.method == OPTIMAL.method else scope.runs
    return [replace(setting, run=run) for run in range(runs)]


def list_comparison(data: DataSet, scope: FeddpScope) -> list[Trial]:
    """All runs of all methods."""
    return [
        trial
        for line in ALL_LINES
        for setting in line.list_settings(data, scope)
        for trial in list_runs(setting, scope)
    ]


def compare(data: DataSet, scope: FeddpScope, lab: FeddpLab) -> Comparison:
    """Summarise runs that are done."""
    (best,) = OPTIMAL.list_settings(data, scope)
    optimum = lab.score(best).cost
    points = [
        _summarise(line, setting, list_runs(setting, scope), lab, optimum)
        for line in ALL_LINES
        for setting in line.list_settings(data, scope)
    ]
    return Comparison(data=data, optimum=optimum, points=tuple(points))


def _summarise(line: Line, setting: Trial, runs: Iterable[Trial], lab: FeddpLab, optimum: float) -> Point:
    scores = [lab.score(trial) for trial in runs]
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
