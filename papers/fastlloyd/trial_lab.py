"""Runs the trials of any paper, on several processes, each only once; artefacts share the scores of common trials."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, Generic, TypeVar

from cloister.runtime.local import OnProgress, Progress

TrialT = TypeVar("TrialT", bound=Hashable)
ScoreT = TypeVar("ScoreT")


class TrialLab(Generic[TrialT, ScoreT]):
    """Scores by trial, and progress.

    Parameters
    ----------
    score_trial
        Runs one trial; a function of a module, since other processes look it up by its name.
    order
        The key that trials are sorted by: those that share what is kept in memory should be neighbours.
    together
        Trials that a process is handed at once; few, so that Ctrl-C need not wait long.
    steps
        How many trials and timed sessions there will be.
    executor
        Where trials run (:func:`~papers.fastlloyd.lab.open_executor`); None for this process.
    on_progress
        Told after each.
    """

    def __init__(
        self,
        score_trial: Callable[[TrialT], ScoreT],
        *,
        order: Callable[[TrialT], Any],
        together: int,
        steps: int,
        executor: ProcessPoolExecutor | None,
        on_progress: OnProgress,
    ) -> None:
        self._score_trial = score_trial
        self._order = order
        self._together = together
        self._steps = steps
        self._executor = executor
        self._on_progress = on_progress
        self._done = 0
        self._scores: dict[TrialT, ScoreT] = {}

    def tick(self, label: str, count: int = 1) -> None:
        """Say that so many steps more are done."""
        self._done += count
        self._on_progress(Progress(step=self._done, steps=max(self._steps, self._done), label=label, waiting_for=()))

    def measure(self, label: str, trials: Sequence[TrialT]) -> None:
        """Run what has not been run yet."""
        todo = [trial for trial in dict.fromkeys(trials) if trial not in self._scores]
        todo.sort(key=self._order)
        if self._executor is None:
            for trial in todo:
                self._scores[trial] = self._score_trial(trial)
                self.tick(label)
            return
        batches = [todo[first : first + self._together] for first in range(0, len(todo), self._together)]
        pending = {self._executor.submit(_score_all, self._score_trial, batch): batch for batch in batches}
        for future in as_completed(pending):
            batch = pending[future]
            self._scores.update(zip(batch, future.result(), strict=True))
            self.tick(label, len(batch))

    def score(self, trial: TrialT) -> ScoreT:
        """Return the score of a trial that has been run."""
        return self._scores[trial]


def _score_all(score_trial: Callable[[TrialT], ScoreT], trials: Sequence[TrialT]) -> list[ScoreT]:
    return [score_trial(trial) for trial in trials]
