"""Runs the trials of a paper, on several processes, each trial only once; artefacts share the scores of common trials.

A trial is a frozen value that names one seeded run: the same trial has the same score in any process, at any time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from cloister.errors import ConfigError
from cloister.runtime import OnProgress, Progress

TrialT = TypeVar("TrialT", bound=Hashable)
ScoreT = TypeVar("ScoreT")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Lab(Generic[TrialT, ScoreT]):
    """Scores by trial, and progress.

    Parameters
    ----------
    score_trial
        Runs one trial; a function of a module, since other processes look it up by its name.
    order
        The key that trials are sorted by: those that share what is kept in memory should be neighbours.
    together
        Trials that a process is handed at once; few enough that Ctrl-C need not wait long.
    steps
        How many trials and timed sessions there will be.
    executor
        Where trials run (:func:`open_executor`); None for this process.
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
        """Report that this many more steps are done."""
        self._done += count
        self._on_progress(Progress(step=self._done, steps=max(self._steps, self._done), label=label, waiting_for=()))

    def measure(self, label: str, trials: Iterable[TrialT]) -> None:
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

    def scores(self, trials: Iterable[TrialT]) -> list[ScoreT]:
        """Return the scores of trials that have been run, in their order."""
        return [self.score(trial) for trial in trials]


def _score_all(score_trial: Callable[[TrialT], ScoreT], trials: Sequence[TrialT]) -> list[ScoreT]:
    return [score_trial(trial) for trial in trials]


@contextmanager
def open_executor(processes: int) -> Iterator[ProcessPoolExecutor | None]:
    """Start fresh processes with one thread each, or none for one; how many there are does not show in a result.

    When the block is left by an exception, what has not begun is dropped.
    """
    if processes < 1:
        raise ConfigError(f"--processes must be at least 1; got {processes}.")
    if processes == 1:
        yield None
        return
    kept = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # read by libraries when the new processes load them
    executor = ProcessPoolExecutor(
        processes, mp_context=multiprocessing.get_context("spawn"), initializer=_ignore_interrupts
    )
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; the first one decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
