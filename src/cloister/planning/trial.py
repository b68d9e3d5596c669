"""Trials: the whole algorithm with its noise on made-up records, fewer than there are, with noise to match.

What the algorithm finds depends on the noise relative to the number of units (records; with client-level privacy,
parties): twice the units under twice the noise are the same histogram and the same sums, but for a factor. So a million
records are tried as ten thousand under a hundredth of the noise. What is not the same is how much the records
themselves scatter, and that is in the loss of k-means without privacy, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cloister.crypto import Stream
from cloister.crypto.stream import KEY_BYTES
from cloister.data.synthetic import Sample
from cloister.kmeans.kernel import cluster_sums
from cloister.kmeans.lloyd import lloyd, weighted_kmeans
from cloister.privacy.placement import Aggregator
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import EPSILON_MOST, Budget
from cloister.privacy.zcdp import epsilon_of_rho
from cloister.protocols.guided_sums.query import Query
from cloister.protocols.guided_sums.settings import PURSE
from cloister.protocols.synopsis import Finding, Rehearsal, Settings, SharedThinking, rehearse
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.records import ArrayRecords, FloatArray

_RESTARTS, _ITERATIONS = 5, 100  # of k-means without privacy
CLIENTS_MOST = 100


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """A job of some number of records, tried with fewer.

    Attributes
    ----------
    settings
        Of the job, at the epsilon in question.
    records
        The number of records in question.
    tried
        How many are made up instead.
    """

    settings: Settings
    records: int
    tried: int

    @cached_property
    def small(self) -> Settings:
        """The settings of the trial: noise of one holder, as large relative to the units as the job's is."""
        whole = self.settings
        clients = min(whole.parties, CLIENTS_MOST)
        part = clients / whole.parties if whole.client_level else self.tried / self.records
        rho = PURSE / (2.0 * (whole.noise_std * part) ** 2)
        epsilon = min(epsilon_of_rho(rho, whole.budget.delta), EPSILON_MOST)  # at the most, noise is nothing
        return replace(
            whole,
            budget=Budget(epsilon=epsilon, delta=whole.budget.delta, unit=whole.budget.unit),
            placement=Aggregator(),
            parties=clients,
            records=None if whole.records is None else self.tried,
        )

    def run(self, points: FloatArray, stream: Stream) -> Rehearsal[Finding]:
        """Run the algorithm on the points; the stream decides the noise and the starts."""
        parts = np.array_split(points, self.small.parties) if self.small.client_level else [points]
        return rehearse(
            self.small,
            [ArrayRecords(self.small.fixed_point.quantise(part)) for part in parts],
            sampler=SimulationSampler(stream.child("noise")),
            stream=stream.child("common"),
        )

    def count_cells(self, rehearsal: Rehearsal[Finding]) -> int:
        """Return how many cells the histogram of a run had: how many numbers of its slot were asked for."""
        slots = [slot.name for slot in self.small.slots]
        thought = SharedThinking(guard=nullcontext(), pipeline=run_synopsis).begin(self.small, bytes(KEY_BYTES))
        for total in rehearsal.totals[: slots.index("histogram")]:
            thought = thought.follow(total)
        assert isinstance(thought.answer, Query)
        return thought.answer.length


class Yardstick:
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
