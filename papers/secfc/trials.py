"""One run of one method on one data set, named by a value: the same trial gives the same score anywhere, any time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream
from cloister.records import IntArray
from papers.data.partition import Rows, split_by_label
from papers.lab.k_fed import Variant, k_fed
from papers.lab.scores import matched_accuracy
from papers.lab.trials import Lab
from papers.secfc.centralised import LloydRun, run_double_lloyd, run_integer_lloyd
from papers.secfc.datasets import DataSet, Study, load_study
from papers.secfc.sessions import Job, choose_code, draw_start, make_agreement, run_session

Method = Literal["centralised", "k-fed", "k-fed-repaired", "secfc"]
_VARIANTS: dict[Method, Variant] = {"k-fed": "described", "k-fed-repaired": "repaired"}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is to be run.

    Parameters
    ----------
    data, method, run
        Where, what, and which repetition: splits and starts follow from it.
    clients
        n.
    local_clusters
        k', the most components that a client holds records of; None for what does not depend on it.
    protocol
        For ``secfc``: run a real session, and the same algorithm in one place beside it; else the latter only.
    """

    data: DataSet
    method: Method
    run: int
    clients: int
    local_clusters: int | None = None
    protocol: bool = False


@dataclass(frozen=True, kw_only=True)
class Score:
    """How a run went.

    Attributes
    ----------
    accuracy, closest_accuracy
        Share of records that the Hungarian method matches with their component, and with their closest true centre.
    rounds
        How many assignments were made; None for k-FED, which has one message.
    converged, separated
        Whether the assignments repeated, and whether the 1/3 rule changed the start; k-FED reports neither.
    labels_sha256
        Of the labels in the order of the records.
    exact
        Whether a session's labels, rounds and end are those of the algorithm in one place; None where none was run.
    """

    accuracy: float
    closest_accuracy: float
    rounds: int | None
    converged: bool
    separated: bool
    labels_sha256: str
    exact: bool | None = None


TrialLab = Lab[Trial, Score]


def score_trial(trial: Trial) -> Score:
    """Run a trial."""
    study = load_study(trial.data)
    if trial.method in _VARIANTS:
        return _score(study, _run_k_fed(trial, study))
    job = make_job(trial)
    start = draw_start(job, len(study.points))
    if trial.method == "centralised":
        run = run_double_lloyd(
            study.points,
            start,
            clusters=job.clusters,
            rounds_max=job.rounds_max,
            separate_after=job.separate_after,
        )
        return _score(study, run.labels, run)
    agreement = make_agreement(
        job,
        records=len(study.points),
        dimensions=study.points.shape[1],
        directory=tuple(bytes([number]) for number in range(trial.clients)),
    )
    coding = agreement.choose_coding(len(study.points))
    run = run_integer_lloyd(
        coding.fixed_point.encode(study.unit_points),
        start,
        clusters=job.clusters,
        field=coding.field,
        rounds_max=job.rounds_max,
        separate_after=job.separate_after,
    )
    if not trial.protocol:
        return _score(study, run.labels, run)
    outcome = run_session(job, study.unit_points, split_records(trial, study))
    through = LloydRun(
        labels=outcome.labels, rounds=outcome.rounds, converged=outcome.converged, separated=outcome.separated
    )
    return _score(study, through.labels, through, exact=_agree(through, run))


def make_job(trial: Trial) -> Job:
    """Return the session of a trial; without one, what its centralised twin needs."""
    return Job(clusters=trial.data.clusters, code=choose_code(trial.clients), seed=trial.run)


def split_records(trial: Trial, study: Study) -> tuple[Rows, ...]:
    """Return each client's rows: of at most k' components (5.1)."""
    assert trial.local_clusters is not None
    stream = Stream.from_seed(trial.run, "split", trial.data.label, trial.clients, trial.local_clusters)
    return split_by_label(study.components, trial.clients, trial.local_clusters, stream)


def _run_k_fed(trial: Trial, study: Study) -> IntArray:
    """Return the labels in the order of the records."""
    assert trial.local_clusters is not None
    parts = split_records(trial, study)
    fit = k_fed(
        [study.points[rows] for rows in parts],
        trial.data.clusters,
        trial.local_clusters,
        Stream.from_seed(trial.run, "k-fed", trial.data.label, trial.local_clusters),
        variant=_VARIANTS[trial.method],
    )
    labels = np.empty(len(study.points), dtype=np.int64)
    for rows, own in zip(parts, fit.labels, strict=True):
        labels[rows] = own
    return labels


def _score(study: Study, labels: NDArray[Any], run: LloydRun | None = None, exact: bool | None = None) -> Score:
    return Score(
        accuracy=matched_accuracy(study.components, labels),
        closest_accuracy=matched_accuracy(study.closest, labels),
        rounds=None if run is None else run.rounds,
        converged=run is not None and run.converged,
        separated=run is not None and run.separated,
        labels_sha256=hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest(),
        exact=exact,
    )


def _agree(left: LloydRun, right: LloydRun) -> bool:
    """Whether two runs are one, to the last label."""
    ends = [(run.rounds, run.converged, run.separated) for run in (left, right)]
    return ends[0] == ends[1] and bool(np.array_equal(left.labels, right.labels))
