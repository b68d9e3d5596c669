"""The lab of FastLloyd and the thesis, and the processes that any lab runs its trials on."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from cloister.errors import ConfigError
from cloister.runtime.progress import OnProgress
from papers.fastlloyd.estimates import Cell
from papers.fastlloyd.trial_lab import TrialLab
from papers.fastlloyd.trials import Score, Trial, score_trial

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Lab(TrialLab[Trial, Score]):
    """The trials of FastLloyd and of the thesis."""

    def __init__(self, *, steps: int, executor: ProcessPoolExecutor | None, on_progress: OnProgress) -> None:
        super().__init__(
            score_trial,
            # Trials of one run share parts, start and first flow, which a process then has in memory.
            order=lambda trial: (trial.data.label, trial.start, trial.run, trial.parties),
            together=2,
            steps=steps,
            executor=executor,
            on_progress=on_progress,
        )

    def cell(self, trials: Iterable[Trial]) -> Cell:
        """Summarise trials that have been run."""
        return Cell.of(self.score(trial) for trial in trials)


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
