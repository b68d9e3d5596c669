"""The forecast of the synopsis: losses, noise and the smallest cluster, from trials on made-up records.

A trial is the whole algorithm with its noise, on fewer records than the job has, with less noise to match. What the
algorithm finds depends on the noise relative to the number of units (records; with client-level privacy, parties).
Twice the units under twice the noise give the same histogram and the same sums, up to a factor. So a million records
are tried as ten thousand under a hundredth of the noise. The scatter of the records themselves does not scale, but it
is in the loss of k-means without privacy, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from cloister.columns import Coordinate
from cloister.crypto import Stream
from cloister.forecast.advice import advise_case, describe_case, describe_goal, describe_loss, find_epsilon, is_enough
from cloister.forecast.families import FAMILIES, Family, Sample, plant_cluster
from cloister.forecast.model import Case, FamilyLoss, Forecast, PlanRequest, Range
from cloister.forecast.placements import Sightings
from cloister.forecast.trials import FULL, QUICK, WIDE, Effort, OnTrial, Reference, choose_epsilons, count_trials
from cloister.forecast.visibility import Planter, Visibility, find_smallest_cluster
from cloister.job import Job
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.privacy.costs import epsilon_of_rho
from cloister.privacy.placement import Aggregator
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import EPSILON_MOST, LeakageTable
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, Rehearsal, rehearse
from cloister.protocols.guided_sums.plan import compare_sums, place_sums
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import SIGNAL_LEAST, Settings, SpreadSettings, describe_signal
from cloister.records import ArrayRecords, FloatArray

CLIENTS_MOST = 100
_COLUMNS_MOST = 500  # for several epsilons: beyond, a trial takes a second
_FIRST_SIZE, _FIRST_SIZE_WITHOUT = 0.25, 0.02  # of an even share
_RESTARTS = 2  # of k-means without privacy on planted clusters


def forecast_synopsis(
    job: Job, agreed: GuidedSession[Settings], request: PlanRequest, leakage: LeakageTable
) -> Forecast:
    """Say what a job of the synopsis would do, cost and find."""
    settings, sizes = agreed.agreement.settings, request.sizes
    hasty = request.quick + (len(sizes) > 1) + _is_slow(settings) > 1
    epsilons = request.epsilons
    if epsilons is None and (hasty or settings.dimensions > _COLUMNS_MOST):
        epsilons = ()
    cases = _try_cases(settings, request, choose_epsilons(settings.budget.epsilon, epsilons))
    placed = place_sums(agreed)
    return Forecast(
        leakage=leakage,
        who_adds_noise=settings.placement.who_adds,
        warnings=settings.placement.warnings,
        rounds_max=len(settings.slots),
        traffic=placed.traffic,
        what_runs=(_describe_route(settings, cases),),
        cases=cases,
        placements=compare_sums(
            job, agreed, placed, sightings=Sightings(cases=cases, noise_per_unit=partial(_noise_per_unit, settings))
        ),
        notes=list_notes(settings, request),
        advice=advise(settings, cases),
    )


def _try_cases(settings: Settings, request: PlanRequest, epsilons: tuple[float, ...]) -> tuple[Case, ...]:
    """Try every epsilon with every size; if that is slow, the smallest cluster only at the job's own epsilon."""
    many = len(request.sizes) > 1 or _is_slow(settings)
    wanted = [
        (size, epsilon, settings.clusters > 1 and (not many or epsilon == settings.budget.epsilon))
        for size in request.sizes
        for epsilon in epsilons
    ]
    steps = sum(len(FAMILIES) + looks for _, _, looks in wanted)
    forecaster = Forecaster(
        settings,
        effort=QUICK if request.quick else WIDE if many else FULL,
        stream=Stream.from_seed(0, "plan"),
        on_trial=count_trials(steps, request.on_progress),
    )
    return tuple(
        forecaster.forecast(epsilon=epsilon, records=size.records, parties=size.parties, look_for_smallest=looks)
        for size, epsilon, looks in wanted
    )


def _is_slow(settings: Settings) -> bool:
    """Whether a trial takes a tenth of a second or more: many columns, clusters or clients."""
    return max(settings.dimensions, settings.clusters) > 50 or settings.client_level


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """A job with some number of records, tried with fewer.

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
        rho = BUDGET_UNITS / (2.0 * (whole.noise_std * part / whole.budget.most_records) ** 2)
        epsilon = min(epsilon_of_rho(rho, whole.budget.delta), EPSILON_MOST)  # where noise is negligible
        small = replace(
            whole,
            budget=replace(whole.budget, epsilon=epsilon),
            placement=Aggregator(),
            parties=clients,
            records=None if whole.records is None else self.tried,
        )
        return replace(small, axes=_name_axes(whole.dimensions)) if isinstance(small, SpreadSettings) else small

    def run(self, points: FloatArray, stream: Stream) -> Rehearsal:
        """Run the algorithm on the points; the stream decides the noise and the starts."""
        parts = np.array_split(points, self.small.parties) if self.small.client_level else [points]
        return rehearse(
            self.small,
            [ArrayRecords(self.small.fixed_point.quantise(part)) for part in parts],
            pipeline=run_synopsis,
            sampler=SimulationSampler(stream.child("noise")),
            stream=stream.child("common"),
        )

    def find_centres(self, points: FloatArray, stream: Stream) -> FloatArray:
        """Return the centres of a run, where the points are."""
        return place_centres(self.run(points, stream).finding)


def place_centres(finding: GuidedFinding) -> FloatArray:
    """Return centres in the units of the records."""
    return finding.centres if finding.scale is None else finding.scale.to_original(finding.centres)


def _name_axes(dimensions: int) -> tuple[Coordinate, ...]:
    """Return the axes of made-up records."""
    return tuple(Coordinate(name=f"x{j}", low=-1.0, high=1.0) for j in range(dimensions))


def even_out(sample: Sample) -> Sample:
    """Return a sample in which all columns spread alike: so they are clustered where a spread scales them."""
    mean, deviation = sample.points.mean(axis=0), np.maximum(sample.points.std(axis=0), 1e-12)
    points, centres = ((array - mean) / deviation for array in (sample.points, sample.centres))
    most = float(np.abs(points).max())
    return replace(sample, points=points / most, centres=centres / most)


def choose_records(effort: Effort, records: int, settings: Settings) -> int:
    """Return how many records to make up; for clients, no more each than they have, if that is enough."""
    enough = max(effort.records_least, effort.numbers // settings.dimensions)
    if settings.client_level:
        enough = min(enough, -(-records * min(settings.parties, CLIENTS_MOST) // settings.parties))
    return min(records, max(min(enough, effort.records_most), 20 * settings.clusters))


def _limit_restarts(effort: Effort, settings: Settings) -> Settings:
    """Return the settings with as many restarts as are tried."""
    most = max(4, min(effort.restarts, effort.restarts * 20 // settings.clusters))
    return replace(settings, knobs=replace(settings.knobs, restarts=min(settings.knobs.restarts, most)))


class Forecaster:
    """Tries a job's settings on made-up records, and keeps what several cases can share.

    Parameters
    ----------
    settings
        Of the job; cases differ in epsilon and, at client level, in the number of parties.
    effort
        How much is tried.
    stream
        Decides the records and the noise.
    on_trial
        Called after each family and planted cluster.
    """

    def __init__(self, settings: Settings, *, effort: Effort, stream: Stream, on_trial: OnTrial) -> None:
        self._settings = _limit_restarts(effort, settings)
        self._effort = effort
        self._stream = stream
        self._on_trial = on_trial
        self._references: dict[tuple[str, int, int], Reference] = {}
        self._without_privacy: dict[int, Visibility] = {}
        self._last: tuple[float, float] | None = None  # a smallest cluster, relative to an even share; and its signal

    def forecast(self, *, epsilon: float, records: int, look_for_smallest: bool, parties: int | None = None) -> Case:
        """Return what to expect for one epsilon and size of the job; a smallest cluster needs others beside it."""
        budget = replace(self._settings.budget, epsilon=epsilon)
        settings = set_parties(self._settings, parties or self._settings.parties, records)
        scaling = Scaling(
            settings=replace(settings, budget=budget),
            records=records,
            tried=choose_records(self._effort, records, settings),
        )
        scale = records / scaling.tried
        losses, spreads = [], []
        route, cells, rounds = None, 0, 0
        for family in FAMILIES:
            # Even clusters: the same records under new noise, for the spread. Others: new records.
            references = [
                self._find_reference(family, 0 if family.even else run, scaling.tried)
                for run in range(self._effort.runs_unsteady if family.unsteady else self._effort.runs)
            ]
            rehearsals = [
                scaling.run(reference.points, self._stream.child(family.name, "run", run))
                for run, reference in enumerate(references)
            ]
            runs = [place_centres(rehearsal.finding) for rehearsal in rehearsals]
            ratios = [reference.measure_ratio(found) for reference, found in zip(references, runs, strict=True)]
            losses.append(FamilyLoss(family=family.name, ratio=sum(ratios) / len(ratios)))
            if family.even:
                spreads.append(references[0].measure_spread(runs))
            if route is None:
                first = rehearsals[0]
                layout, rounds = first.finding.layout, first.finding.rounds
                assert layout is not None
                route, cells = layout.route, layout.cells
            self._on_trial(f"{_name_case(scaling)}: {family.name}")
        assert route is not None
        seen = without = None
        if look_for_smallest:
            seen, without = self._look_for_smallest(scaling), self._look_without_privacy(scaling.tried)
        return Case(
            epsilon=epsilon,
            records=records,
            parties=scaling.settings.parties,
            route=route,
            cells=cells,
            rounds=rounds,
            losses=tuple(losses),
            centre_noise=Range(low=min(spreads), high=max(spreads)),
            smallest_cluster=None if seen is None or seen.hidden else round(seen.size * scale),
            smallest_without_privacy=None if without is None or without.hidden else round(without.size * scale),
            looked_for_smallest=seen is not None,
            counted=settings.budget.counted,
        )

    def _find_reference(self, family: Family, draw: int, tried: int) -> Reference:
        if (family.name, draw, tried) not in self._references:
            stream = self._stream.child(family.name, draw, tried)
            sample = family.draw(stream, tried, self._settings.clusters, self._settings.dimensions)
            if isinstance(self._settings, SpreadSettings):
                sample = even_out(sample)
            self._references[family.name, draw, tried] = Reference(sample, stream.child("yardstick"))
        return self._references[family.name, draw, tried]

    def _look_for_smallest(self, scaling: Scaling) -> Visibility:
        """Start where the last case ended, scaled by the signal: with less noise, smaller clusters are seen."""
        share = scaling.tried / self._settings.clusters
        signal = scaling.records / scaling.settings.noise_std
        start = _FIRST_SIZE if self._last is None else self._last[0] * self._last[1] / signal
        seen = find_smallest_cluster(
            scaling.find_centres,
            self._plant(scaling.tried),
            most=share,
            start=start * share,
            trials=self._effort.trials,
            stream=self._stream.child("visibility"),
        )
        self._last = (seen.size / share, signal)
        self._on_trial(f"{_name_case(scaling)}: planted clusters")
        return seen

    def _look_without_privacy(self, tried: int) -> Visibility:
        """Do the same for k-means itself, which also misses the smallest clusters."""
        k = self._settings.clusters

        def find_centres(points: FloatArray, stream: Stream) -> FloatArray:
            return weighted_kmeans(points, k, stream, restarts=_RESTARTS).centres

        if tried not in self._without_privacy:
            self._without_privacy[tried] = find_smallest_cluster(
                find_centres,
                self._plant(tried),
                most=tried / k,
                start=_FIRST_SIZE_WITHOUT * tried / k,
                trials=self._effort.trials_without,
                stream=self._stream.child("visibility"),
            )
        return self._without_privacy[tried]

    def _plant(self, tried: int) -> Planter:
        return lambda stream: plant_cluster(stream, tried, self._settings.clusters, self._settings.dimensions)


def _name_case(scaling: Scaling) -> str:
    """Return the name of a case in progress messages."""
    settings = scaling.settings
    size = (
        f"{settings.parties:,} parties" if settings.client_level else f"{scaling.records:,} {settings.budget.counted}"
    )
    return f"epsilon {settings.budget.epsilon:g}, {size}"


def set_parties(settings: Settings, parties: int, records: int) -> Settings:
    """Return the settings with another number of parties, who place their noise as the job's do."""
    return replace(settings.scaled_to(parties), records=None if settings.records is None else records)


def _noise_per_unit(settings: Settings, case: Case) -> float:
    """Return the standard deviation of the noise of a case, over the number of its units."""
    budget = replace(settings.budget, epsilon=case.epsilon)
    noise_std = replace(set_parties(settings, case.parties, case.records), budget=budget).noise_std
    return noise_std / (case.parties if settings.client_level else case.records)


def _describe_route(settings: Settings, cases: Sequence[Case]) -> str:
    own = [case for case in cases if case.epsilon == settings.budget.epsilon]
    routes = sorted({case.route for case in own})
    where = {"direct": "over the columns themselves", "projected": "over axes found in noisy second moments"}
    return (
        f"Route: {' or '.join(routes)}: the histogram is {' or '.join(where[route] for route in routes)}, "
        f"with {_span([case.cells for case in own])} cells; then {_span([case.rounds for case in own])} rounds of "
        "Lloyd's algorithm."
        + ("" if settings.alone else f" There are {len(settings.slots)} rounds on the wire, those not needed as zeros.")
    )


def _span(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def list_notes(settings: Settings, request: PlanRequest) -> tuple[str, ...]:
    """Say what the reader must know."""
    notes = [_note_records(settings, request)]
    if settings.client_level:
        notes.append(
            "A unit is a party: noise hides its whole table, so the number of parties is what counts; beyond some "
            "hundred records each, more records at the same parties help little. Parties are assumed to hold equally "
            "many records of every kind; parties that differ from each other lose more."
        )
    if settings.choose_k:
        notes.append(
            f"k is chosen by the run, at most {settings.clusters}; losses are compared at the k that it chose."
        )
    if isinstance(settings, SpreadSettings):
        notes += list_signals(settings, request)
        notes.append(
            "Losses are for made-up records whose extremes are the bounds, each column over its spread, as it is "
            "clustered; records unlike any family may do better or worse."
        )
        return tuple(notes)
    notes.append(
        "Losses and noise are for made-up records whose extremes are the bounds: bounds that are too wide cost more, "
        "and records unlike any family may do better or worse."
    )
    return tuple(notes)


def list_signals(settings: SpreadSettings, request: PlanRequest) -> list[str]:
    """Say whether the records are strong enough to find the scale, for each number of them."""
    said = []
    for size in request.sizes:
        signal = settings.measure_signal(size.records)
        start = f"{size.records:,} records: " if len(request.sizes) > 1 else ""
        said.append(start + describe_signal(signal))
        if settings.any_private and signal < SIGNAL_LEAST:
            said.append(
                f'{start}Too few for bounds = "private": from {SIGNAL_LEAST:g} on. A run would count the records, end '
                "without a result, and what it was allowed is paid for. Give bounds, or raise epsilon."
            )
    return said


def _note_records(settings: Settings, request: PlanRequest) -> str:
    """Where the number of records comes from."""
    counted = settings.budget.counted
    if settings.records is not None:
        return (
            f"The job declares {settings.records:,} {counted} public: their number is not hidden and costs no budget."
        )
    if request.guessed:
        said = f"{request.records:,} {counted} are your guess, not read from a table"
        return f"{said}; the run itself counts them with noise."
    if settings.client_level:
        each = request.sizes[0].records // request.sizes[0].parties
        return (
            f"The number of records is private and no table is read: {each:,} per party are assumed. Use "
            "--records N if you can guess from public facts how many the job's parties have together."
        )
    return (
        f"The number of {counted} is private and no table is read, so a few numbers are tried. Use --records N "
        f"if you can guess it from public facts. Ten times the {counted} are about as good as ten times the epsilon."
    )


def advise(settings: Settings, cases: Sequence[Case]) -> str:
    """Say what the job's epsilon is good for, and what would be better."""
    own = [case for case in cases if case.epsilon == settings.budget.epsilon]
    if settings.client_level:
        return _advise_parties(settings, cases, own)
    if len(own) > 1:
        return _advise_records(settings, own)
    return advise_case(settings, own[0], cases)


def _advise_parties(settings: Settings, cases: Sequence[Case], own: Sequence[Case]) -> str:
    """Client level: parties are the units, so more of them help first."""
    case = own[0]
    said = f"With the job's {case.parties:,} parties, {describe_case(case, start='at')}"
    if is_enough(settings, case):
        return said
    enough = [other for other in own[1:] if is_enough(settings, other)]
    more = (
        f"more parties ({enough[0].parties:,} are enough {describe_goal(settings)})"
        if enough
        else f"more parties than {own[-1].parties:,}"
    )
    same = [other for other in cases if other.parties == case.parties]
    return (
        f"{said} If that is too much, try {more}, {find_epsilon(settings, case, same)}, fewer clusters or "
        "narrower bounds."
    )


def _advise_records(settings: Settings, own: Sequence[Case]) -> str:
    enough = [case for case in own if is_enough(settings, case)]
    if not enough:
        return (
            f"At epsilon = {own[0].epsilon:g} none of these numbers of {own[0].counted} is enough "
            f"{describe_goal(settings)}: try a larger epsilon, fewer clusters or narrower bounds."
        )
    case = enough[0]
    said = f"{case.records:,} {case.counted} are enough {describe_goal(settings)}. {describe_case(case)}"
    fewer = [other for other in own if other.records < case.records]
    return said + (f" With {fewer[-1].records:,}, {describe_loss(fewer[-1])}." if fewer else "")
