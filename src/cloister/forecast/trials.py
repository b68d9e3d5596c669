"""Trials: how much is tried on made-up records, and k-means without privacy as the reference for the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.forecast.families import Sample
from cloister.forecast.model import PlanRequest
from cloister.job import Job
from cloister.kmeans import cluster_sums, lloyd, weighted_kmeans
from cloister.late import load_late
from cloister.privacy.units import EPSILON_LEAST, EPSILON_MOST
from cloister.records import FloatArray
from cloister.runtime import OnProgress, Progress

optimize = load_late("scipy.optimize")
distance = load_late("scipy.spatial.distance")

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
_RESTARTS, _ITERATIONS = 5, 100  # of k-means without privacy

OnTrial = Callable[[str], None]
"""Called once for each family or planted cluster of a case, with what was tried."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is tried.

    Attributes
    ----------
    numbers
        About how many made-up records times columns; never fewer than ``records_least`` records nor 20 per cluster.
    records_least, records_most
        The limits of the number of made-up records.
    runs, runs_unsteady
        Runs on each family, and on one whose losses vary much; at least two, to measure the spread.
    trials, trials_without
        Planted clusters, with and without privacy.
    restarts
        The maximum number of starts when cells are clustered, fewer for more than 20 clusters; a real run makes as many
        as its settings say.
    """

    numbers: int
    records_least: int
    records_most: int
    runs: int
    runs_unsteady: int
    trials: int
    trials_without: int
    restarts: int


FULL = Effort(
    numbers=4 * 10**5,
    records_least=2000,
    records_most=10_000,
    runs=3,
    runs_unsteady=12,
    trials=24,
    trials_without=12,
    restarts=20,
)
WIDE = replace(FULL, runs=2, runs_unsteady=5, trials=16)
"""For several numbers of records, with four times as many cases, and for jobs that are slow to try."""
QUICK = replace(
    WIDE, numbers=10**5, records_least=1000, records_most=4000, runs_unsteady=4, trials=10, trials_without=8, restarts=5
)


def count_trials(steps: int, on_progress: OnProgress | None) -> OnTrial:
    """Return a callback that turns trials, ``steps`` in total, into progress."""
    done = 0

    def report(label: str) -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(Progress(step=done, steps=max(done, steps), label=label, waiting_for=()))

    return report


class Reference:
    """K-means without privacy on one set of made-up records, for any number of centres."""

    def __init__(self, sample: Sample, stream: Stream) -> None:
        self.points = sample.points
        self._drawn_around = sample.centres
        self._stream = stream
        self._centres: dict[int, FloatArray] = {}

    def find_centres(self, k: int) -> FloatArray:
        """Return the best of a few starts, one of which is the centres that the records were drawn around."""
        if k not in self._centres:
            fit = weighted_kmeans(self.points, k, self._stream.child(k), restarts=_RESTARTS)
            if k == len(self._drawn_around):
                fit = min(fit, lloyd(self.points, self._drawn_around, iterations=_ITERATIONS), key=lambda one: one.loss)
            self._centres[k] = fit.centres
        return self._centres[k]

    def measure_ratio(self, centres: FloatArray) -> float:
        """Return the ratio of the loss of these centres to that without privacy."""
        best = cluster_sums(self.points, self.find_centres(len(centres))).loss
        return float(cluster_sums(self.points, centres).loss / max(best, 1e-300))

    def measure_spread(self, runs: Sequence[FloatArray]) -> float:
        """Return the standard deviation of a coordinate of a centre from run to run.

        Centres are matched with those found without privacy, as many as every run has. Over the clusters with half to
        twice the average number of records, the median is returned.
        """
        k = min(map(len, runs))
        reference = self.find_centres(k)
        counts = cluster_sums(self.points, reference).counts
        average = len(self.points) / k
        typical = (counts >= average / 2) & (counts <= average * 2)
        matched = np.empty((len(runs), *reference.shape))
        for i, centres in enumerate(runs):
            matched[i] = centres[optimize.linear_sum_assignment(distance.cdist(reference, centres, "sqeuclidean"))[1]]
        deviations = np.sqrt(matched.var(axis=0, ddof=1).mean(axis=1))
        return float(np.median(deviations[typical] if typical.any() else deviations))


def choose_epsilons(own: float, wanted: Sequence[float] | None) -> tuple[float, ...]:
    """Return the epsilons asked for, or the default ones, together with the job's own; ascending."""
    wanted = EPSILONS if wanted is None else wanted
    for epsilon in wanted:
        if not EPSILON_LEAST <= epsilon <= EPSILON_MOST:
            raise ConfigError(f"epsilon must lie between {EPSILON_LEAST:g} and {EPSILON_MOST:g}; got {epsilon:g}.")
    return tuple(sorted({*wanted, own}))


def refuse_epsilons(job: Job, request: PlanRequest) -> None:
    """Refuse epsilons to compare if losses are not forecast."""
    if request.epsilons:
        raise ConfigError(
            f"epsilons must be left out with the protocol {job.protocol.name}, whose losses are not forecast. Change "
            "budget.epsilon and plan again: the noise goes with 1 / epsilon."
        )
