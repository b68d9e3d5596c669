"""Runs single steps of a synopsis on records, with the noise that their settings ask for or with none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget, Unit
from cloister.protocols.guided_sums.query import Query
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.records import ArrayRecords


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What a step found, the questions that it asked, and the totals that it was told."""

    found: Any
    queries: list[Query]
    totals: list[np.ndarray]

    @property
    def l2_squared(self) -> int:
        return sum(query.l2_squared for query in self.queries)


def make_settings(
    *, clusters=3, dimensions=2, epsilon=1.0, unit=Unit.RECORD, parties=2, records=None, **knobs
) -> Settings:
    return Settings(
        clusters=clusters,
        dimensions=dimensions,
        budget=Budget(epsilon=epsilon, delta=1e-6, unit=unit),
        parties=parties,
        records=records,
        knobs=Knobs(**knobs),
    )


def answer(asking, parts, *, noise_std=0.0, seed=1) -> Answered:
    """Drive a step to its end; ``parts`` are the parties' points."""
    rng = np.random.default_rng(seed)
    tables = [ArrayRecords(FixedPoint(16).quantise(np.clip(part, -1.0, 1.0))) for part in parts]
    queries, totals = [next(asking)], []
    while True:
        query = queries[-1]
        noise = np.rint(rng.normal(scale=noise_std, size=query.length)).astype(np.int64)
        totals.append(sum((query.measure(table) for table in tables), start=noise))
        try:
            queries.append(asking.send(totals[-1]))
        except StopIteration as stop:
            return Answered(found=stop.value, queries=queries, totals=totals)


def measure(query, points):
    return query.measure(ArrayRecords(np.ascontiguousarray(points)))


def square(vector):
    """The squared L2 norm, exactly."""
    if np.square(vector, dtype=np.float64).sum() < 2.0**62:
        return int(np.dot(vector, vector))
    return sum(int(number) ** 2 for number in vector)
