"""What a vertical clustering is expected to find: rehearsals on every family of made-up records, at every epsilon.

As in :mod:`~cloister.planning.trial`, n records under some noise are tried as m under a noise of m / n of that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cloister.crypto import Stream
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.numeric import FixedPoint
from cloister.planning.families import FAMILIES, Family, plant_cluster
from cloister.planning.forecast import Effort
from cloister.planning.model import Case, FamilyLoss, Range
from cloister.planning.trial import Yardstick
from cloister.planning.vertical_traffic import count_histogram
from cloister.planning.visibility import Visibility, find_smallest_cluster
from cloister.privacy.calibration import rho_for
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.privacy.zcdp import epsilon_of_rho
from cloister.protocols.vertical.rehearsal import rehearse_vertical
from cloister.protocols.vertical.settings import Settings
from cloister.records import FloatArray

OnTrial = Callable[[str], None]
_RECORDS_EACH = 20  # made up for each cluster at least
_FIRST_SIZE, _FIRST_SIZE_WITHOUT = 0.25, 0.02  # of an even share
_RESTARTS_WITHOUT = 2
_RHO_MOST = 4.0
"""Of a trial: counts of the joint histogram then carry noise of about half a record, and less is not tried as less.
Noise on whole numbers is all or nothing below that, which it is not in a job of a hundred times the records."""


class VerticalForecaster:
    """Tries a job's settings on made-up records.

    Parameters
    ----------
    settings
        Of the job.
    effort
        How much is tried.
    stream
        Decides the records and the noise.
    on_trial
        Told about each family and planted cluster.
    """

    def __init__(self, settings: Settings, *, effort: Effort, stream: Stream, on_trial: OnTrial) -> None:
        enough = min(max(effort.records_least, effort.numbers // settings.dimensions), effort.records_most)
        self._tried = min(settings.records, max(enough, _RECORDS_EACH * settings.clusters))
        knobs = replace(settings.knobs, restarts=min(settings.knobs.restarts, effort.restarts))
        self._settings = replace(settings, knobs=knobs)
        self._effort = effort
        self._stream = stream
        self._on_trial = on_trial
        self._yardsticks: dict[tuple[str, int], Yardstick] = {}

    def forecast(self, epsilon: float, *, look_for_smallest: bool) -> Case:
        """Return what to expect for one epsilon."""
        assert self._settings.budget is not None
        whole = replace(self._settings, budget=replace(self._settings.budget, epsilon=epsilon))
        small = self._shrink(whole)
        losses, spreads = [], []
        for family in FAMILIES:
            yardsticks, runs = self._run_family(family, small)
            losses.append(_compare(family, yardsticks, runs))
            if family.even:
                spreads.append(yardsticks[0].measure_spread(runs))
            self._on_trial(f"epsilon {epsilon:g}: {family.name}")
        seen = without = None
        if look_for_smallest:
            seen, without = self._look_for_smallest(small), self._look_without_privacy()
            self._on_trial(f"epsilon {epsilon:g}: planted clusters")
        scale = whole.records / self._tried
        return Case(
            epsilon=epsilon,
            records=whole.records,
            parties=whole.placement.parties,
            route="joint",
            cells=count_histogram(whole) if whole.start == "synopsis" else 0,
            rounds=whole.rounds_made,
            losses=tuple(losses),
            centre_noise=Range(low=min(spreads), high=max(spreads)),
            smallest_cluster=None if seen is None or seen.hidden else round(seen.size * scale),
            smallest_without_privacy=None if without is None or without.hidden else round(without.size * scale),
            looked_for_smallest=seen is not None,
        )

    def compare_exactly(self) -> tuple[FamilyLoss, ...]:
        """Without a budget: what deciding through cells costs, and the start; nothing else is lost."""
        small = replace(self._settings, records=self._tried)
        losses = []
        for family in FAMILIES:
            yardsticks, runs = self._run_family(family, small)
            losses.append(_compare(family, yardsticks, runs))
            self._on_trial(f"exact: {family.name}")
        return tuple(losses)

    def _shrink(self, whole: Settings) -> Settings:
        """The settings of a trial: noise as large relative to the records as the job's is."""
        assert whole.budget is not None
        rho = rho_for(whole.budget) * (whole.records / self._tried) ** 2
        delta = whole.budget.delta
        epsilon = epsilon_of_rho(min(rho, max(_RHO_MOST, rho_for(whole.budget))), delta)
        return replace(whole, budget=Budget(epsilon=epsilon, delta=delta), records=self._tried)

    def _run_family(self, family: Family, small: Settings) -> tuple[list[Yardstick], list[FloatArray]]:
        """Even clusters: the same records under other noise, for the spread. Others: records drawn anew."""
        runs = range(self._effort.runs_unsteady if family.unsteady else self._effort.runs)
        yardsticks = [self._find_yardstick(family, 0 if family.even else run) for run in runs]
        found = [
            self._run(small, yardstick.points, self._stream.child(family.name, "run", run))
            for run, yardstick in zip(runs, yardsticks, strict=True)
        ]
        return yardsticks, found

    def _run(self, small: Settings, points: FloatArray, stream: Stream) -> FloatArray:
        """Run the algorithm on the points; the stream decides the noise and the starts."""
        samplers = [SimulationSampler(stream.child("noise", holder)) for holder in range(small.placement.parties)]
        table = FixedPoint().quantise(points)
        rehearsal = rehearse_vertical(small, table, samplers=samplers, stream=stream.child("common"))
        return rehearsal.finding.centres

    def _find_yardstick(self, family: Family, draw: int) -> Yardstick:
        if (family.name, draw) not in self._yardsticks:
            stream = self._stream.child(family.name, draw, self._tried)
            sample = family.draw(stream, self._tried, self._settings.clusters, self._settings.dimensions)
            self._yardsticks[family.name, draw] = Yardstick(sample, stream.child("yardstick"))
        return self._yardsticks[family.name, draw]

    def _look_for_smallest(self, small: Settings) -> Visibility:
        return self._look(
            lambda points, stream: self._run(small, points, stream), first=_FIRST_SIZE, trials=self._effort.trials
        )

    def _look_without_privacy(self) -> Visibility:
        """The same for k-means itself, which gives a centre to none of the smallest either."""
        k = self._settings.clusters
        return self._look(
            lambda points, stream: weighted_kmeans(points, k, stream, restarts=_RESTARTS_WITHOUT).centres,
            first=_FIRST_SIZE_WITHOUT,
            trials=self._effort.trials_without,
        )

    def _look(
        self, find_centres: Callable[[FloatArray, Stream], FloatArray], *, first: float, trials: int
    ) -> Visibility:
        share = self._tried / self._settings.clusters
        return find_smallest_cluster(
            find_centres,
            lambda stream: plant_cluster(stream, self._tried, self._settings.clusters, self._settings.dimensions),
            most=share,
            start=first * share,
            trials=trials,
            stream=self._stream.child("visibility"),
        )


def _compare(family: Family, yardsticks: list[Yardstick], runs: list[FloatArray]) -> FamilyLoss:
    """The mean of the losses over those of k-means on the same records."""
    ratios = [yardstick.measure_ratio(found) for yardstick, found in zip(yardsticks, runs, strict=True)]
    return FamilyLoss(family=family.name, ratio=sum(ratios) / len(ratios))
