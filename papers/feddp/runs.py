"""Runs a trial: the optimum, k-FED, the baselines; what is a protocol runs in :mod:`.protocol_runs`."""

from __future__ import annotations

import time

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans.initialisation import kmeans_plus_plus
from cloister.kmeans.kernel import cluster_sums, nearest
from cloister.kmeans.lloyd import lloyd
from cloister.privacy.samplers import Sampler
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Unit
from cloister.records import FloatArray
from papers.feddp.datasets import CLUSTERS, MixtureSet, Study, load_records, load_study
from papers.feddp.lloyds import Bounds, bound_client_sums, run_feddp_lloyds
from papers.feddp.printed import RECOMMENDED_CLIENT, RECOMMENDED_RECORD
from papers.feddp.protocol_runs import run_cloister, run_synopsis
from papers.feddp.published import PublishedPlan, run_published_feddp
from papers.feddp.starts import Start, find_start
from papers.feddp.trials import Score, Trial
from papers.lab.k_fed import k_fed
from papers.lab.scores import matched_accuracy

_OPTIMAL_STARTS, _OPTIMAL_ITERATIONS, _OPTIMAL_TOLERANCE = 5, 100, 1e-6
_K_FED_RESTARTS = 10
QUESTIONS_OF_A_CLIENT = 5
"""What a Stack Overflow user's counts are clipped to; the paper calls it a hyperparameter (G.5)."""


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
        case "synopsis":
            return run_synopsis(trial, study, sampler=sampler, stream=stream)
        case "cloister":
            return run_cloister(trial, study, sampler=sampler, stream=stream)
        case "published":
            assert trial.split is not None
            assert trial.steps is not None
            plan = PublishedPlan(
                budget=trial.budget,
                clusters=CLUSTERS,
                split=trial.split,
                rounds=trial.steps,
                client_records=_count_client_records(trial),
            )
            return run_published_feddp(study.parts, study.server, plan, sampler=sampler, stream=stream)


def _cluster_centrally(study: Study, stream: Stream) -> FloatArray:
    """Lloyd's algorithm to its end on all records in one place, the best of some k-means++ starts."""
    starts = (kmeans_plus_plus(stream, study.points, CLUSTERS, candidates=4) for _ in range(_OPTIMAL_STARTS))
    fits = (
        lloyd(study.points, start, iterations=_OPTIMAL_ITERATIONS, tolerance=_OPTIMAL_TOLERANCE) for start in starts
    )
    return min(fits, key=lambda fit: fit.loss).centres


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
