"""Means of runs with 95 % intervals, and what a cell of a table or a point of a curve is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from papers.fastlloyd.trials import Score


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean and the half-width of its 95 % interval (Student's t); nan where there are too few values."""

    mean: float
    half_width: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Estimate from any number of values."""
        if not values:
            return cls(mean=math.nan, half_width=math.nan)
        if len(values) == 1:
            return cls(mean=float(values[0]), half_width=math.nan)
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(mean=float(np.mean(values)), half_width=float(student.ppf(0.975, len(values) - 1)) * error)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Runs that differ in nothing but their number. Runs without an assignment are counted, and are in no mean."""

    loss: Estimate
    empty: Estimate
    silhouette: Estimate
    runs: int
    infeasible: int

    @classmethod
    def of(cls, scores: Iterable[Score]) -> Cell:
        """Summarise runs."""
        every = list(scores)
        feasible = [score for score in every if score.feasible]
        return cls(
            loss=Estimate.of([score.loss for score in feasible]),
            empty=Estimate.of([score.empty for score in feasible]),
            silhouette=Estimate.of([score.silhouette for score in feasible if not math.isnan(score.silhouette)]),
            runs=len(every),
            infeasible=len(every) - len(feasible),
        )
