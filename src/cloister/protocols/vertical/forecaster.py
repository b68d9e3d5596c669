"""What a vertical clustering is expected to find: rehearsals on all families of made-up records, at every epsilon.

As for the synopsis (:mod:`cloister.protocols.synopsis.plan`), n records under some noise are tried as m records under
m / n of that noise.
"""

from __future__ import annotations

from dataclasses import replace

from cloister.crypto import Stream
from cloister.forecast.families import FAMILIES, Family, plant_cluster
from cloister.forecast.model import Case, FamilyLoss, PlanRequest, Range
from cloister.forecast.trials import FULL, QUICK, WIDE, Effort, OnTrial, Reference, choose_epsilons, count_trials
from cloister.forecast.visibility import Finder, Visibility, find_smallest_cluster
from cloister.kmeans import weighted_kmeans
from cloister.numeric import FixedPoint
from cloister.privacy.calibration import rho_for
from cloister.privacy.costs import epsilon_of_rho
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocols.vertical.rehearsal import rehearse_vertical
from cloister.protocols.vertical.settings import Settings
from cloister.records import FloatArray

_MANY, _TOO_MANY = 10, 50  # columns or clusters: beyond, fewer runs; and where it must be quick, no other epsilon
_RECORDS_EACH = 20  # made up for each cluster at least
_FIRST_SIZE, _FIRST_SIZE_WITHOUT = 0.25, 0.02  # of an even share
_RESTARTS_WITHOUT = 2
_RHO_MOST = 4.0
"""Of a trial: counts of the joint histogram then have noise of about half a record, and smaller noise is not scaled.
Noise on whole numbers is all or nothing below that, which it is not in a job of a hundred times the records."""


def try_families(settings: Settings, request: PlanRequest) -> tuple[tuple[Case, ...], tuple[FamilyLoss, ...]]:
    """Try every epsilon, and the smallest cluster at the job's own; without a budget there are losses only."""
    budget, size = settings.budget, max(settings.dimensions, settings.clusters)
    wanted = () if request.quick and size > _TOO_MANY and request.epsilons is None else request.epsilons
    epsilons = () if budget is None else choose_epsilons(budget.epsilon, wanted)
    forecaster = Forecaster(
        settings,
        effort=QUICK if request.quick else WIDE if size > _MANY else FULL,
        stream=Stream.from_seed(0, "plan"),
        on_trial=count_trials(max(len(epsilons), 1) * len(FAMILIES) + len(epsilons[:1]), request.on_progress),
    )
    if budget is None:
        return (), forecaster.compare_exactly()
    return tuple(forecaster.forecast(one, look_for_smallest=one == budget.epsilon) for one in epsilons), ()


class Forecaster:
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
        self._references: dict[tuple[str, int], Reference] = {}

    def forecast(self, epsilon: float, *, look_for_smallest: bool) -> Case:
        """Return what to expect for one epsilon."""
        assert self._settings.budget is not None
        whole = replace(self._settings, budget=replace(self._settings.budget, epsilon=epsilon))
        small = self._shrink(whole)
        losses, spreads = [], []
        for family in FAMILIES:
            references, runs = self._run_family(family, small)
            losses.append(_compare(family, references, runs))
            if family.even:
                spreads.append(references[0].measure_spread(runs))
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
            cells=whole.histogram_length,
            rounds=whole.rounds_made,
            losses=tuple(losses),
            centre_noise=Range(low=min(spreads), high=max(spreads)),
            smallest_cluster=None if seen is None or seen.hidden else round(seen.size * scale),
            smallest_without_privacy=None if without is None or without.hidden else round(without.size * scale),
            looked_for_smallest=seen is not None,
            counted="records" if whole.budget is None else whole.budget.counted,
        )

    def compare_exactly(self) -> tuple[FamilyLoss, ...]:
        """Return the losses without a budget, which come from deciding through cells and from the start."""
        small = replace(self._settings, records=self._tried)
        losses = []
        for family in FAMILIES:
            losses.append(_compare(family, *self._run_family(family, small)))
            self._on_trial(f"exact: {family.name}")
        return tuple(losses)

    def _shrink(self, whole: Settings) -> Settings:
        """Return the settings of a trial: relative to the records, its noise is the job's."""
        assert whole.budget is not None
        budget = whole.noise_budget
        rho = rho_for(budget) * (whole.records / self._tried) ** 2
        epsilon = epsilon_of_rho(min(rho, max(_RHO_MOST, rho_for(budget))), budget.delta)
        return replace(whole, budget=replace(whole.budget, epsilon=epsilon), records=self._tried)

    def _run_family(self, family: Family, small: Settings) -> tuple[list[Reference], list[FloatArray]]:
        """Run one family. Even clusters: the same records under new noise, for the spread. Others: new records."""
        runs = range(self._effort.runs_unsteady if family.unsteady else self._effort.runs)
        references = [self._find_reference(family, 0 if family.even else run) for run in runs]
        found = [
            self._run(small, reference.points, self._stream.child(family.name, "run", run))
            for run, reference in zip(runs, references, strict=True)
        ]
        return references, found

    def _run(self, small: Settings, points: FloatArray, stream: Stream) -> FloatArray:
        """Run the algorithm on the points; the stream decides the noise and the starts."""
        samplers = [SimulationSampler(stream.child("noise", holder)) for holder in range(small.placement.parties)]
        table = FixedPoint().quantise(points)
        rehearsal = rehearse_vertical(small, table, samplers=samplers, stream=stream.child("common"))
        return rehearsal.finding.centres

    def _find_reference(self, family: Family, draw: int) -> Reference:
        if (family.name, draw) not in self._references:
            stream = self._stream.child(family.name, draw, self._tried)
            sample = family.draw(stream, self._tried, self._settings.clusters, self._settings.dimensions)
            self._references[family.name, draw] = Reference(sample, stream.child("yardstick"))
        return self._references[family.name, draw]

    def _look_for_smallest(self, small: Settings) -> Visibility:
        return self._look(
            lambda points, stream: self._run(small, points, stream), first=_FIRST_SIZE, trials=self._effort.trials
        )

    def _look_without_privacy(self) -> Visibility:
        """Do the same for k-means itself, which also misses the smallest clusters."""
        k = self._settings.clusters
        return self._look(
            lambda points, stream: weighted_kmeans(points, k, stream, restarts=_RESTARTS_WITHOUT).centres,
            first=_FIRST_SIZE_WITHOUT,
            trials=self._effort.trials_without,
        )

    def _look(self, find_centres: Finder, *, first: float, trials: int) -> Visibility:
        share = self._tried / self._settings.clusters
        return find_smallest_cluster(
            find_centres,
            lambda stream: plant_cluster(stream, self._tried, self._settings.clusters, self._settings.dimensions),
            most=share,
            start=first * share,
            trials=trials,
            stream=self._stream.child("visibility"),
        )


def _compare(family: Family, references: list[Reference], runs: list[FloatArray]) -> FamilyLoss:
    """Return the mean ratio of the losses to those of k-means on the same records."""
    ratios = [reference.measure_ratio(found) for reference, found in zip(references, runs, strict=True)]
    return FamilyLoss(family=family.name, ratio=sum(ratios) / len(ratios))
