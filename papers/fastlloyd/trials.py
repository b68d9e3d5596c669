"""One run of one method on one data set, named by a value: the same trial gives the same score anywhere, any time.

All methods of one run start from the same centres with the same parts, so those with equal size constraints solve the
same flow in their first round. On birch2 a flow takes a second and most runs have two rounds: solving each flow only
once saves half.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np

from cloister.crypto import Stream
from cloister.errors import InfeasibleError
from cloister.kmeans import (
    Assignment,
    AssignmentKind,
    ClusterSums,
    ConstrainedExclusive,
    Membership,
    cluster_sums,
    nearest,
    random_in_domain,
    sphere_packing,
)
from cloister.numeric import FixedPoint
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd.published import ROUNDS_MOST, Preset, PublishedSettings, plan_published
from cloister.protocols.fastlloyd.published_rules import PostProcessing
from cloister.protocols.fastlloyd.rehearsal import rehearse
from cloister.protocols.fastlloyd.sound import SoundSettings, plan_fastlloyd
from cloister.protocols.multiparty_lloyd.noise import NoiseKind, NoisePlan
from cloister.protocols.multiparty_lloyd.rules import ExactCentroids, ExactSums, Rule
from cloister.records import ArrayRecords, FloatArray, Records
from papers.fastlloyd.datasets import DataSet, load_points
from papers.lab.products import Estimate
from papers.lab.scores import silhouette
from papers.lab.trials import Lab

Method = Preset | Literal["sound"]
Start = Literal["sphere-packing", "random"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is to be run.

    Parameters
    ----------
    data, method, run
        Where, what, and which repetition: splits, starts and noise follow from it.
    epsilon
        None for the same steps without noise, seven of them.
    assignment
        Other than the preset's.
    post, start
        Post-processing and initialisation.
    noise, placement, parties
        The sound method's law of noise and who adds it; among how many parties records are dealt out.
    silhouette_records
        Compute the silhouette on this many records; 0 for none.
    """

    data: DataSet
    method: Method
    run: int
    epsilon: float | None = None
    assignment: AssignmentKind | None = None
    post: PostProcessing = field(default_factory=PostProcessing)
    start: Start = "sphere-packing"
    noise: NoiseKind = "gaussian"
    placement: Placement = field(default_factory=Aggregator)
    parties: int = 2
    silhouette_records: int = 0


@dataclass(frozen=True, kw_only=True)
class Score:
    """What came of it; all numbers are nan where no assignment met the constraints."""

    loss: float
    """NICV: WCSS / N (FastLloyd 6.2)."""
    empty: float
    """Clusters that are nobody's nearest."""
    silhouette: float
    feasible: bool = True


NO_ASSIGNMENT = Score(loss=math.nan, empty=math.nan, silhouette=math.nan, feasible=False)


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


TrialLab = Lab[Trial, Score]


def score_trial(trial: Trial) -> Score:
    """Run a trial with two parties or more, each with its part of the shuffled records (thesis 8.2)."""
    points = load_points(trial.data)
    parts = deal_records(trial.data, trial.run, trial.parties)
    centres = _draw_start(trial, points.shape[1])
    plan, assignment = make_plan(trial, *points.shape)
    if isinstance(assignment, ConstrainedExclusive):
        assignment = FlowCache(inner=assignment)
    try:
        if isinstance(plan, NoisePlan):
            sampler = SimulationSampler(_noise_stream(trial))
            found = rehearse(plan, parts, centres, sampler=sampler, assignment=assignment)
        else:
            found = rehearse(plan, parts, centres, rounds=ROUNDS_MOST, assignment=assignment)
    except InfeasibleError:
        return NO_ASSIGNMENT
    return _measure(trial, points, found.centres)


def choose_delta(placement: Placement | None, pure: bool, records: int) -> float:
    """1 / (n ln n) as peers set it, 0 for pure epsilon; joint noise needs a little, too little to buy less noise."""
    if not pure:
        return 1.0 / (records * math.log(records))
    return 1e-18 if placement is not None and placement.sampled_jointly else 0.0


def make_plan(
    trial: Trial, records: int, dimensions: int, *, iterations: int | None = None
) -> tuple[NoisePlan | Rule, Assignment | None]:
    """The noise, or the exact rule, of a trial; and how records join clusters, where not to the nearest centre."""
    k = trial.data.clusters
    if trial.method == "sound":
        assert trial.epsilon is not None
        # The cap is the power of two above what a party holds.
        delta = choose_delta(trial.placement, trial.noise == "laplace", records)
        sound = SoundSettings(
            clusters=k,
            dimensions=dimensions,
            parties=trial.parties,
            max_records=cap_records(records, trial.parties),
            kind=trial.noise,
            iterations=iterations,
        )
        return plan_fastlloyd(sound, Budget(epsilon=trial.epsilon, delta=delta), placement=trial.placement), None
    options = PublishedSettings(
        preset=trial.method,
        records=records,
        clusters=k,
        dimensions=dimensions,
        parties=trial.parties,
        assignment=trial.assignment,
        iterations=iterations,
        post=trial.post,
    )
    assignment = options.make_assignment()
    if trial.epsilon is not None:
        return plan_published(options, Budget(epsilon=trial.epsilon, delta=0.0)), assignment
    if options.by_centroids:
        return ExactCentroids(
            dimensions=dimensions, fixed_point=FixedPoint(), max_records=records, parties=trial.parties
        ), assignment
    return ExactSums(dimensions=dimensions, fixed_point=FixedPoint(), max_records=records), assignment


def cap_records(records: int, parties: int) -> int:
    """A public cap on one party's records: the power of two above an even share, less one."""
    return (1 << (-(-records // parties)).bit_length()) - 1


def _draw_start(trial: Trial, dimensions: int) -> FloatArray:
    """All methods of a run start from the same centres."""
    stream = Stream.from_seed(trial.run, "start", trial.start, trial.data.label)
    draw = sphere_packing if trial.start == "sphere-packing" else random_in_domain
    return draw(stream, trial.data.clusters, dimensions)


def _noise_stream(trial: Trial) -> Stream:
    """Noise of its own for everything that names a trial; the folder of the data does not."""
    post = trial.post
    return Stream.from_seed(
        trial.run,
        "noise",
        trial.data.label,
        trial.method,
        repr(trial.epsilon),
        trial.assignment or "",
        f"{post.sums} {post.counts} {post.centres} {trial.start} {trial.noise} {trial.placement} {trial.parties}",
    )


def _measure(trial: Trial, points: FloatArray, centres: FloatArray) -> Score:
    """Evaluate on the union of all records (thesis 8.2), each with its nearest centre."""
    parts = cluster_sums(points, centres, threads=1)
    width = math.nan
    if trial.silhouette_records:
        rows = Stream.from_seed(0, "silhouette sample", trial.data.label).permutation(len(points))
        sample = points[rows[: trial.silhouette_records]]
        labels = nearest(sample, centres, threads=1).labels
        width = silhouette(sample, labels, sample_size=max(len(sample), 2))
    return Score(loss=parts.loss / len(points), empty=float(np.count_nonzero(parts.counts == 0)), silhouette=width)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One party's records in one run: its piece of the shuffled data set (thesis 8.2)."""

    data: DataSet
    run: int
    parties: int
    number: int


class PartRecords(ArrayRecords):
    """Records that know which part they are."""

    __slots__ = ("part",)

    def __init__(self, part: Part, points: FloatArray) -> None:
        super().__init__(points)
        self.part = part


@lru_cache(maxsize=8)
def deal_records(data: DataSet, run: int, parties: int) -> tuple[PartRecords, ...]:
    """Shuffle a data set and split it evenly."""
    points = load_points(data)
    order = Stream.from_seed(run, "split", data.label).permutation(len(points))
    return tuple(
        PartRecords(Part(data=data, run=run, parties=parties, number=number), points[rows])
        for number, rows in enumerate(np.array_split(order, parties))
    )


@dataclass(frozen=True, kw_only=True)
class FlowCache:
    """The constrained exclusive assignment of :class:`PartRecords`, each flow solved once."""

    inner: ConstrainedExclusive

    @property
    def name(self) -> str:
        """The method's name."""
        return self.inner.name

    def assign(self, points: FloatArray, centres: FloatArray) -> Membership:
        """As the inner assignment."""
        return self.inner.assign(points, centres)

    def sums(self, records: Records | FloatArray, centres: FloatArray) -> ClusterSums:
        """As the inner assignment, from memory where the same part met the same centres lately."""
        if isinstance(records, PartRecords):
            return _sum_once(self.inner, records.part, centres.tobytes(), centres.shape)
        return self.inner.sums(records, centres)


@lru_cache(maxsize=64)
def _sum_once(assignment: ConstrainedExclusive, part: Part, centres: bytes, shape: tuple[int, ...]) -> ClusterSums:
    records = deal_records(part.data, part.run, part.parties)[part.number]
    return assignment.sums(records, np.frombuffer(centres).reshape(shape))
