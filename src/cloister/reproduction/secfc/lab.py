"""Runs trials, on several processes, each only once; tables that share trials share their scores."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from cloister.reproduction.secfc.trials import Score, Trial, score_trial
from cloister.runtime.progress import OnProgress, Progress


class SecfcLab:
    """Scores by trial, and progress.

    Parameters
    ----------
    steps
        How many trials and timed sessions there will be.
    executor
        Where trials run (:func:`~cloister.reproduction.lab.open_executor`); None for this process.
    on_progress
        Told after each.
    """

    def __init__(self, *, steps: int, executor: ProcessPoolExecutor | None, on_progress: OnProgress) -> None:
        self._steps = steps
        self._executor = executor
        self._on_progress = on_progress
        self._done = 0
        self._scores: dict[Trial, Score] = {}

    def tick(self, label: str) -> None:
        """Say that one step more is done."""
        self._done += 1
        self._on_progress(Progress(step=self._done, steps=max(self._steps, self._done), label=label, waiting_for=()))

    def measure(self, label: str, trials: Sequence[Trial]) -> None:
        """Run what has not been run yet."""
        todo = [trial for trial in dict.fromkeys(trials) if trial not in self._scores]
        # The longest first, so that no process is left alone with one at the end; then by data, which is kept.
        todo.sort(key=lambda trial: (not trial.protocol, trial.data.label))
        if self._executor is None:
            for trial in todo:
                self._scores[trial] = score_trial(trial)
                self.tick(label)
            return
        pending = {self._executor.submit(score_trial, trial): trial for trial in todo}
        for future in as_completed(pending):
            self._scores[pending[future]] = future.result()
            self.tick(label)

    def score(self, trial: Trial) -> Score:
        """Return the score of a trial that has been run."""
        return self._scores[trial]
