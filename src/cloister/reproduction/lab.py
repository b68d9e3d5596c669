"""Runs trials, on several processes, each only once; artefacts that share trials share their scores."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager

from cloister.errors import ConfigError
from cloister.reproduction.estimates import Cell
from cloister.reproduction.trials import Score, Trial, score_trial
from cloister.runtime.progress import OnProgress, Progress

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_TOGETHER = 2
"""Trials that a process is handed at once; few, so that Ctrl-C need not wait long."""


class Lab:
    """Scores by trial, and progress.

    Parameters
    ----------
    steps
        How many trials and timed sessions there will be.
    executor
        Where trials run; None for this process.
    on_progress
        Told after each.
    """

    def __init__(self, *, steps: int, executor: ProcessPoolExecutor | None, on_progress: OnProgress) -> None:
        self._steps = steps
        self._executor = executor
        self._on_progress = on_progress
        self._done = 0
        self._scores: dict[Trial, Score] = {}

    def tick(self, label: str, count: int = 1) -> None:
        """Say that so many steps more are done."""
        self._done += count
        self._on_progress(Progress(step=self._done, steps=max(self._steps, self._done), label=label, waiting_for=()))

    def measure(self, label: str, trials: Sequence[Trial]) -> None:
        """Run what has not been run yet."""
        todo = [trial for trial in dict.fromkeys(trials) if trial not in self._scores]
        # Trials of one run share parts, start and first flow, which a process then has in memory.
        todo.sort(key=lambda trial: (trial.data.label, trial.start, trial.run, trial.parties))
        if self._executor is None:
            for trial in todo:
                self._scores[trial] = score_trial(trial)
                self.tick(label)
            return
        batches = [todo[first : first + _TOGETHER] for first in range(0, len(todo), _TOGETHER)]
        pending = {self._executor.submit(_score_all, batch): batch for batch in batches}
        for future in as_completed(pending):
            batch = pending[future]
            self._scores.update(zip(batch, future.result(), strict=True))
            self.tick(label, len(batch))

    def cell(self, trials: Iterable[Trial]) -> Cell:
        """Summarise trials that have been run."""
        return Cell.of(self._scores[trial] for trial in trials)


def _score_all(trials: Sequence[Trial]) -> list[Score]:
    return [score_trial(trial) for trial in trials]


@contextmanager
def open_executor(processes: int) -> Iterator[ProcessPoolExecutor | None]:
    """Start fresh processes with one thread each; how many there are does not show in a result.

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
