"""One seeded run of the synopsis, means with intervals, and a pool that makes the runs."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from cloister.crypto import Stream
from cloister.numeric import FixedPoint
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.synopsis import Settings, rehearse
from cloister.records import ArrayRecords

FloatArray = NDArray[np.float64]
Task = TypeVar("Task")
Answer = TypeVar("Answer")
Verdict = Literal["ok", "MISS", "wide"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The mean of some runs with the half-width of its 95 % interval (Student's t)."""

    mean: float
    half_width: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Estimate from two runs or more."""
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(mean=float(np.mean(values)), half_width=float(student.ppf(0.975, len(values) - 1)) * error)

    def judge(self, mark: float) -> Verdict:
        """Ok within 5 % of the mark or below, or with the mark inside the interval.

        An interval wider than a quarter of the mark shows nothing, or a few runs that failed outright: "wide".
        """
        if self.mean <= 1.05 * mark:
            return "ok"
        if self.mean - self.half_width > mark:
            return "MISS"
        return "ok" if self.half_width <= mark / 4 else "wide"


def paper_delta(n: int) -> float:
    """1 / (n ln n), as the papers set it."""
    return 1.0 / (n * math.log(n))


def find_centres(parts: Sequence[FloatArray], k: int, budget: Budget, seed: int) -> FloatArray:
    """Run the synopsis once: each part is a party; n is private; noise is discrete Gaussian, seeded."""
    settings = Settings(clusters=k, dimensions=parts[0].shape[1], budget=budget, parties=len(parts))
    rehearsal = rehearse(
        settings,
        [ArrayRecords(FixedPoint(16).quantise(part)) for part in parts],
        sampler=SimulationSampler(Stream.from_seed(seed, "noise of bench.utility")),
        stream=Stream.from_seed(seed, "common stream of bench.utility"),
    )
    return rehearsal.finding.centres


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Two processes, one thread each. Runs are seeded: how many processes there are does not show in a result."""

    executor: ProcessPoolExecutor

    def map(self, function: Callable[[Task], Answer], tasks: Sequence[Task], *, together: int = 1) -> list[Answer]:
        """Answer every task, in order; ``together`` of them go to one process, which keeps the data that it loaded."""
        return list(self.executor.map(function, tasks, chunksize=together))


@contextmanager
def open_pool(processes: int = 2) -> Iterator[Pool]:
    """Start fresh processes: libraries' threads do not survive a fork."""
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield Pool(executor=executor)
