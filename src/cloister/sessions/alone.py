"""One table: a job with one party, which is run by whoever holds the table. No coordinator, no masks, no messages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cloister.errors import AbsentError, own_error
from cloister.job import Job
from cloister.protocol import Clustering, Party
from cloister.runtime import LocalRun, OnProgress, Progress, Traffic


def is_alone(job: Job) -> bool:
    """Whether a job is over one table."""
    return len(job.parties) == 1


def run_alone(protocol: Clustering[Any], agreed: Any, party: Party, on_progress: OnProgress | None) -> LocalRun[Any]:
    """Run the only party of a job, and return a run in which nothing was sent."""
    if on_progress is not None:
        on_progress(Progress(step=0, steps=1, label="clustering the table", waiting_for=()))
    outcome = protocol.work_alone(agreed, party)
    return LocalRun(
        result=outcome,
        steps=0,
        traffic={1: Traffic()},
        transcript_sha256=hashlib.sha256().hexdigest(),
        network_s=None,
        views={},
    )


@contextmanager
def told_if_alone(job: Job) -> Iterator[None]:
    """Tell whoever runs a job over one table what is wrong on the party's own side: it is theirs."""
    try:
        yield
    except AbsentError as error:
        if not is_alone(job):
            raise
        raise own_error(error) from None
