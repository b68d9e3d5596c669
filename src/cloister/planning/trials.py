"""Trials: how much is tried on made-up records, and k-means without privacy to hold the results against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cloister.crypto import Stream
from cloister.data.synthetic import Sample
from cloister.kmeans.kernel import cluster_sums
from cloister.kmeans.lloyd import lloyd, weighted_kmeans
from cloister.records import FloatArray
from cloister.runtime.progress import OnProgress, Progress

_RESTARTS, _ITERATIONS = 5, 100  # of k-means without privacy

OnTrial = Callable[[str], None]
"""Told what was tried, once for each family or planted cluster of a case."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is tried.

    Attributes
    ----------
    numbers
        Made-up records times columns, about; never fewer than ``records_least`` records nor 20 for each cluster.
    records_least, records_most
        Made-up records.
    runs, runs_unsteady
        On each family, and on one whose losses scatter; at least two, or nothing can be said about the spread.
    trials, trials_without
        Planted clusters, with and without privacy.
    restarts
        The most starts when cells are clustered, and fewer for more than 20 clusters; a run makes ``Knobs.restarts``.
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
"""For several numbers of records, which are four times the cases, or for jobs that are slow to try."""
QUICK = replace(
    WIDE, numbers=10**5, records_least=1000, records_most=4000, runs_unsteady=4, trials=10, trials_without=8, restarts=5
)


def count_trials(steps: int, on_progress: OnProgress | None) -> OnTrial:
    """Return what turns trials into progress, out of so many."""
    done = 0

    def tell(label: str) -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(Progress(step=done, steps=max(done, steps), label=label, waiting_for=()))

    return tell


class Reference:
    """K-means without privacy on one set of made-up records, for as many centres as are asked for."""

    def __init__(self, sample: Sample, stream: Stream) -> None:
        self.points = sample.points
        self._drawn_around = sample.centres
        self._stream = stream
        self._centres: dict[int, FloatArray] = {}

    def find_centres(self, k: int) -> FloatArray:
        """Return the best of a few starts; the centres that the records were drawn around are one of them."""
        if k not in self._centres:
            fit = weighted_kmeans(self.points, k, self._stream.child(k), restarts=_RESTARTS)
            if k == len(self._drawn_around):
                fit = min(fit, lloyd(self.points, self._drawn_around, iterations=_ITERATIONS), key=lambda one: one.loss)
            self._centres[k] = fit.centres
        return self._centres[k]

    def measure_ratio(self, centres: FloatArray) -> float:
        """Return the loss of these centres over that without privacy."""
        best = cluster_sums(self.points, self.find_centres(len(centres))).loss
        return float(cluster_sums(self.points, centres).loss / max(best, 1e-300))

    def measure_spread(self, runs: Sequence[FloatArray]) -> float:
        """Return the standard deviation of a coordinate of a centre from run to run.

        Centres are matched with those found without privacy, as many as every run has; of the clusters with half to
        twice the average number of records, the median one counts.
        """
        k = min(map(len, runs))
        reference = self.find_centres(k)
        counts = cluster_sums(self.points, reference).counts
        average = len(self.points) / k
        typical = (counts >= average / 2) & (counts <= average * 2)
        matched = np.empty((len(runs), *reference.shape))
        for i, centres in enumerate(runs):
            matched[i] = centres[linear_sum_assignment(cdist(reference, centres, "sqeuclidean"))[1]]
        deviations = np.sqrt(matched.var(axis=0, ddof=1).mean(axis=1))
        return float(np.median(deviations[typical] if typical.any() else deviations))
