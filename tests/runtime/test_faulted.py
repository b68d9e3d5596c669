"""Sessions whose party is killed or whose disk fails, some of them; many more: ``python -m bench.faults``."""

import os

import pytest

from cloister.privacy.ledger import LedgerSession
from cloister.runtime import journal
from tests.privacy.ledger.faults import find_vfs
from tests.privacy.ledger.scenes import make_disk
from tests.runtime.faulted import FaultedJobs

pytestmark = pytest.mark.skipif(find_vfs() is None, reason="needs SQLite as a shared library")


@pytest.fixture(scope="module")
def jobs():
    with FaultedJobs() as jobs:
        yield jobs


def fail(jobs, seed):
    with make_disk() as disk:
        return jobs.run(seed, disk)


def fail_all(jobs, seeds):
    for seed in seeds:
        fail(jobs, seed)


@pytest.mark.parametrize("seed", range(10))
def test_a_session_survives_whatever_becomes_of_one_partys_process(jobs, seed):
    fail(jobs, seed)


# --- mutants ----------------------------------------------------------------------------------------------------------


def charge_again(monkeypatch):
    """A session that goes on pays once more."""
    monkeypatch.setattr(LedgerSession, "resume", LedgerSession.charge_all)


def charge_nothing(monkeypatch):
    """A session that goes on is taken to have paid."""
    monkeypatch.setattr(LedgerSession, "resume", lambda self, releases: self._paid.update(tuple(releases)))


def leave_unsynced(monkeypatch):
    """What the journal holds reaches the disk some time."""

    class Unsynced:
        def __getattr__(self, name):
            return (lambda number: None) if name == "fsync" else getattr(os, name)

    monkeypatch.setattr(journal, "os", Unsynced())


@pytest.mark.parametrize("mutant", [charge_again, charge_nothing, leave_unsynced])
def test_mutants_are_noticed(jobs, monkeypatch, mutant):
    mutant(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):  # ValueError: there is no account
        fail_all(jobs, range(60))
