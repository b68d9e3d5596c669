"""What the synopsis is expected to find: every family of made-up records, at every epsilon and number of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cloister.crypto import Stream
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.planning.families import FAMILIES, Family, plant_cluster
from cloister.planning.model import Case, FamilyLoss, Range
from cloister.planning.trial import CLIENTS_MOST, Scaling, Yardstick
from cloister.planning.visibility import Planter, Visibility, find_smallest_cluster
from cloister.protocols.synopsis import Settings
from cloister.records import FloatArray

OnTrial = Callable[[str], None]
"""Told what was tried, once for each family or planted cluster of a case."""

_FIRST_SIZE, _FIRST_SIZE_WITHOUT = 0.25, 0.02  # of an even share
_RESTARTS = 2  # of k-means without privacy on planted clusters


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

    def choose_records(self, records: int, settings: Settings) -> int:
        """Return how many records to make up; for clients, no more each than they have, as far as that is enough."""
        enough = max(self.records_least, self.numbers // settings.dimensions)
        if settings.client_level:
            enough = min(enough, -(-records * min(settings.parties, CLIENTS_MOST) // settings.parties))
        return min(records, max(min(enough, self.records_most), 20 * settings.clusters))

    def limit(self, settings: Settings) -> Settings:
        """Return the settings with as many restarts as are tried."""
        most = max(4, min(self.restarts, self.restarts * 20 // settings.clusters))
        return replace(settings, knobs=replace(settings.knobs, restarts=min(settings.knobs.restarts, most)))


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


def is_slow(settings: Settings) -> bool:
    """Whether a trial takes a tenth of a second and more: many columns, clusters or clients."""
    return max(settings.dimensions, settings.clusters) > 50 or settings.client_level


class Forecaster:
    """Tries a job's settings on made-up records; keeps what several cases can share.

    Parameters
    ----------
    settings
        Of the job; cases differ in epsilon and, at client level, in the number of parties.
    effort
        How much is tried.
    stream
        Decides the records and the noise.
    on_trial
        Told about each family and planted cluster.
    """

    def __init__(self, settings: Settings, *, effort: Effort, stream: Stream, on_trial: OnTrial) -> None:
        self._settings = effort.limit(settings)
        self._effort = effort
        self._stream = stream
        self._on_trial = on_trial
        self._yardsticks: dict[tuple[str, int, int], Yardstick] = {}
        self._without_privacy: dict[int, Visibility] = {}
        self._last: tuple[float, float] | None = None  # a smallest cluster, relative to an even share; and its signal

    def forecast(self, *, epsilon: float, records: int, look_for_smallest: bool, parties: int | None = None) -> Case:
        """Return what to expect for one epsilon and size of the job; a smallest cluster needs others beside it."""
        budget = replace(self._settings.budget, epsilon=epsilon)
        settings = set_parties(self._settings, parties or self._settings.parties, records)
        scaling = Scaling(
            settings=replace(settings, budget=budget),
            records=records,
            tried=self._effort.choose_records(records, settings),
        )
        scale = records / scaling.tried
        losses, spreads = [], []
        route, cells, rounds = None, 0, 0
        for family in FAMILIES:
            # Even clusters: the same records under other noise, for the spread. Others: records drawn anew.
            yardsticks = [
                self._find_yardstick(family, 0 if family.even else run, scaling.tried)
                for run in range(self._effort.runs_unsteady if family.unsteady else self._effort.runs)
            ]
            rehearsals = [
                scaling.run(yardstick.points, self._stream.child(family.name, "run", run))
                for run, yardstick in enumerate(yardsticks)
            ]
            runs = [rehearsal.finding.centres for rehearsal in rehearsals]
            ratios = [yardstick.measure_ratio(found) for yardstick, found in zip(yardsticks, runs, strict=True)]
            losses.append(FamilyLoss(family=family.name, ratio=sum(ratios) / len(ratios)))
            if family.even:
                spreads.append(yardsticks[0].measure_spread(runs))
            if route is None:
                first = rehearsals[0]
                route, rounds, cells = first.finding.route, first.finding.rounds, scaling.count_cells(first)
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
        )

    def _find_yardstick(self, family: Family, draw: int, tried: int) -> Yardstick:
        if (family.name, draw, tried) not in self._yardsticks:
            stream = self._stream.child(family.name, draw, tried)
            sample = family.draw(stream, tried, self._settings.clusters, self._settings.dimensions)
            self._yardsticks[family.name, draw, tried] = Yardstick(sample, stream.child("yardstick"))
        return self._yardsticks[family.name, draw, tried]

    def _look_for_smallest(self, scaling: Scaling) -> Visibility:
        """Begin where the last case ended, allowing for its signal: less noise, smaller clusters."""
        share = scaling.tried / self._settings.clusters
        signal = scaling.records / scaling.settings.noise_std
        start = _FIRST_SIZE if self._last is None else self._last[0] * self._last[1] / signal
        seen = find_smallest_cluster(
            lambda points, stream: scaling.run(points, stream).finding.centres,
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
        """The same for k-means itself, which gives a centre to none of the smallest either."""
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


def set_parties(settings: Settings, parties: int, records: int) -> Settings:
    """Return the settings with another number of parties, who place their noise as the job's do."""
    if parties == settings.parties:
        return settings
    return replace(
        settings,
        parties=parties,
        placement=settings.placement.scaled_to(parties),
        records=None if settings.records is None else records,
    )


def _name_case(scaling: Scaling) -> str:
    """What progress calls a case."""
    settings = scaling.settings
    size = f"{settings.parties:,} parties" if settings.client_level else f"{scaling.records:,} records"
    return f"epsilon {settings.budget.epsilon:g}, {size}"


def count_trials(cases: Sequence[bool]) -> int:
    """Return how often ``on_trial`` is called for cases that do or do not look for the smallest cluster."""
    return sum(len(FAMILIES) + looks for looks in cases)
