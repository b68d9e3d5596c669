"""Ledgers, releases and second processes for the ledger's tests."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from cloister.privacy.ledger import LedgerSession
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Release
from cloister.privacy.units import Budget, Sensitivity

PATIENTS = "patients"
CUSTOMERS = "customers"
BUDGET = Budget(epsilon=50.0, delta=1e-6)


def gaussian(rho, name="round"):
    """A release that costs ``rho``, up to rounding."""
    return Release(
        name=name,
        mechanism=DiscreteGaussian(sigma=(10_000 / (2 * rho)) ** 0.5),
        sensitivity=Sensitivity(l1=100, l2_squared=10_000),
        entries=3,
    )


def laplace(epsilon, name="count"):
    return Release(
        name=name,
        mechanism=DiscreteLaplace(scale=1 / epsilon),
        sensitivity=Sensitivity(l1=1, l2_squared=1),
        entries=1,
    )


def open_session(ledger, data=PATIENTS, *, job="job", session=b"\x01" * 16, budget=BUDGET, **more):
    return LedgerSession(ledger, dataset=data, job=job, session=session, budget=budget, **more)


def start_process(code, *arguments):
    """Run Python code in a second process that knows these helpers."""
    prelude = (
        "import sys, time\nfrom tests.privacy.ledger.helpers import *\nfrom cloister.privacy.ledger import Ledger\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", prelude + textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_together(workers):
    """Let processes that called ``wait_for_start`` go on at once."""
    for worker in workers:
        assert worker.stdout.readline() == "ready\n", worker.communicate()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()


def wait_for_start():
    """In a worker: say that the imports are done, and wait for the others."""
    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
