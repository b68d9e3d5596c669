"""The lab of FedDP-KMeans: figures and tables share their trials' scores."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

from cloister.runtime.progress import OnProgress
from papers.fastlloyd.trial_lab import TrialLab
from papers.feddp.runs import score_trial
from papers.feddp.trials import Score, Trial


class FeddpLab(TrialLab[Trial, Score]):
    """The trials of FedDP-KMeans."""

    def __init__(self, *, steps: int, executor: ProcessPoolExecutor | None, on_progress: OnProgress) -> None:
        super().__init__(
            score_trial,
            # By data, which a process keeps; the longest first, so that none is left alone with one at the end.
            order=lambda trial: (trial.data.label, trial.method not in ("k-fed", "optimal"), trial.method),
            together=1,
            steps=steps,
            executor=executor,
            on_progress=on_progress,
        )
