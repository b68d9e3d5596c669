"""The lab of SecFC: tables that share trials share their scores."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

from cloister.runtime.progress import OnProgress
from papers.fastlloyd.trial_lab import TrialLab
from papers.secfc.trials import Score, Trial, score_trial


class SecfcLab(TrialLab[Trial, Score]):
    """The trials of SecFC."""

    def __init__(self, *, steps: int, executor: ProcessPoolExecutor | None, on_progress: OnProgress) -> None:
        super().__init__(
            score_trial,
            # The longest first, so that no process is left alone with one at the end; then by data, which is kept.
            order=lambda trial: (not trial.protocol, trial.data.label),
            together=1,
            steps=steps,
            executor=executor,
            on_progress=on_progress,
        )
