"""One run of one method on one data set, named by a value: the same trial gives the same centres anywhere, any time.

The optimum, k-FED, the baselines and the published algorithm run in one place. Cloister's protocols are rehearsed: the
session's algorithm with its noise and its charges, in one place too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans import cluster_sums, kmeans_plus_plus, lloyd, nearest
from cloister.privacy.samplers import Sampler
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Settings
from cloister.records import FloatArray
from papers.feddp import published
from papers.feddp.baselines import Bounds, Start, bound_client_sums, find_start, run_feddp_lloyds
from papers.feddp.datasets import CLUSTERS, DataSet, MixtureSet, Study, load_records, load_study
from papers.feddp.printed import RECOMMENDED_CLIENT, RECOMMENDED_RECORD
from papers.feddp.published import Split
from papers.lab.k_fed import k_fed
from papers.lab.scores import matched_accuracy
from papers.lab.trials import Lab

Method = Literal[
    "optimal", "k-fed", "server-kmeans++", "server-lloyds", "sphere-packing", "published", "cloister", "synopsis"
]
DELTA = 1e-6
"""For all steps and for the total (5)."""
_OPTIMAL_STARTS, _OPTIMAL_ITERATIONS, _OPTIMAL_TOLERANCE = 5, 100, 1e-6
_K_FED_RESTARTS = 10
QUESTIONS_OF_A_CLIENT = 5
"""What a Stack Overflow user's counts are clipped to; the paper calls it a hyperparameter (G.5)."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is to be run.

    Parameters
    ----------
    data, method, run
        Where, what, and which repetition: noise and starts follow from it.
    epsilon
        The total, at delta = 1e-6; None for what has no privacy.
    steps
        Rounds of FedDP-Lloyds after the start; None where the method decides.
    split
        For ``published``.
    """

    data: DataSet
    method: Method
    run: int
    epsilon: float | None = None
    steps: int | None = None
    split: Split | None = None

    @property
    def budget(self) -> Budget:
        """For all releases together."""
        assert self.epsilon is not None
        return Budget(epsilon=self.epsilon, delta=DELTA, unit=self.data.unit)


@dataclass(frozen=True, kw_only=True)
class Score:
    """How a run went.

    Attributes
    ----------
    cost
        Squared distance to the nearest centre, a record, in the data's own units.
    accuracy
        Share of records matched with their component; None for real data.
    cpu_s
        CPU seconds of everything that clients and server do; loading apart.
    """

    cost: float
    accuracy: float | None
    cpu_s: float


TrialLab = Lab[Trial, Score]


def score_trial(trial: Trial) -> Score:
    """Run a trial."""
    study = load_study(trial.data)
    if trial.method in ("published", "cloister", "synopsis"):
        load_records(trial.data)  # not on their clock
    started_s = time.process_time()
    centres = find_centres(trial, study)
    cpu_s = time.process_time() - started_s
    accuracy = None
    if study.components is not None:
        accuracy = matched_accuracy(study.components, nearest(study.points, centres).labels)
    return Score(cost=cluster_sums(study.points, centres).loss / len(study.points), accuracy=accuracy, cpu_s=cpu_s)


def find_centres(trial: Trial, study: Study) -> FloatArray:
    """Return a trial's centres, in the data's own units."""
    stream = Stream.from_seed(trial.run, "feddp trial", trial.method)
    sampler = SimulationSampler(stream.child("noise"))
    match trial.method:
        case "optimal":
            return _cluster_centrally(study, stream)
        case "k-fed":
            return k_fed(study.parts, CLUSTERS, CLUSTERS, stream, variant="repaired", restarts=_K_FED_RESTARTS).centres
        case "server-kmeans++" | "server-lloyds" | "sphere-packing":
            return _run_baseline(trial, trial.method, study, sampler, stream)
        case "cloister" | "synopsis":
            return _rehearse(trial, study, sampler, stream)
        case "published":
            assert trial.split is not None
            assert trial.steps is not None
            plan = published.Plan(
                budget=trial.budget,
                clusters=CLUSTERS,
                split=trial.split,
                rounds=trial.steps,
                client_records=_count_client_records(trial),
            )
            return published.run_feddp(study.parts, study.server, plan, sampler=sampler, stream=stream)


def _cluster_centrally(study: Study, stream: Stream) -> FloatArray:
    """Lloyd's algorithm to its end on all records in one place, the best of some k-means++ starts."""
    starts = (kmeans_plus_plus(stream, study.points, CLUSTERS, candidates=4) for _ in range(_OPTIMAL_STARTS))
    fits = (
        lloyd(study.points, start, iterations=_OPTIMAL_ITERATIONS, tolerance=_OPTIMAL_TOLERANCE) for start in starts
    )
    return min(fits, key=lambda fit: fit.loss).centres


def _rehearse(trial: Trial, study: Study, sampler: Sampler, stream: Stream) -> FloatArray:
    """Our form of FedDP, or what Cloister does without server data; the number of records is private."""
    records = load_records(trial.data)
    sizes = {"clusters": CLUSTERS, "dimensions": study.points.shape[1], "parties": len(records)}
    if trial.method == "synopsis":
        public = Settings(budget=trial.budget, **sizes)
        run = rehearse(public, records, pipeline=run_synopsis, sampler=sampler, stream=stream)
        return study.frame.to_original(run.finding.centres)
    server = study.frame.to_unit(study.server)
    settings = FeddpSettings(budget=trial.budget, **sizes).for_server(server)
    found = rehearse(settings, records, pipeline=bind_server(server), sampler=sampler, stream=stream).finding
    return study.frame.to_original(found.centres)


def _run_baseline(trial: Trial, start: Start, study: Study, sampler: Sampler, stream: Stream) -> FloatArray:
    """A public start, which costs nothing, and the whole budget for FedDP-Lloyds (5, "Baselines")."""
    assert trial.steps is not None
    centres = find_start(start, study.server, CLUSTERS, stream.child("start"))
    client_records = _count_client_records(trial)
    if trial.data.unit is Unit.RECORD:
        recommended, bound = RECOMMENDED_RECORD, float(np.sqrt((study.server**2).sum(axis=1).max()))  # Delta (5.1)
    else:
        recommended = RECOMMENDED_CLIENT
        bound = bound_client_sums(study.server, centres, client_records, stream.child("bound"))
    *_, sums, counts = recommended
    return run_feddp_lloyds(
        study.parts,
        centres,
        Bounds(unit=trial.data.unit, sums=bound, counts=client_records),
        budget=trial.budget,
        rounds=trial.steps,
        count_share=counts / (sums + counts),  # as G.4 recommends for the step that is like these
        sampler=sampler,
    )


def _count_client_records(trial: Trial) -> int:
    """How many records of a unit count: one of a record, all of a mixture's clients, which is public."""
    if trial.data.unit is Unit.RECORD:
        return 1
    return trial.data.records_each if isinstance(trial.data, MixtureSet) else QUESTIONS_OF_A_CLIENT
