"""What docs/ledger.md promises of a failing machine: a kill, a full disk and a power cut at every single step.

``CLOISTER_LONG=1`` takes every step; without it, each test takes every fourth, and different ones.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cloister.errors import LedgerError
from tests.privacy.ledger.faults import KILLED, find_vfs
from tests.privacy.ledger.scenes import SCENES, check, count_steps, fail_at, fail_once, make_disk, prepare

pytestmark = pytest.mark.skipif(
    find_vfs() is None or not Path("/proc/self/fd").exists(), reason="needs SQLite as a shared library, and /proc"
)


EVERY = 1 if os.environ.get("CLOISTER_LONG") else 4


@pytest.fixture
def disk():
    with make_disk() as folder:
        yield folder


def fail_at_each_step(scene, kind, disk, seed=0, every=EVERY):
    """Run a scene once for every step that it takes; yields what was left, and what the child had told."""
    first = 1 + (seed + len(kind)) % every
    for step in range(first, count_steps(prepare(scene, disk / "count")[0]) + 1, every):
        folder = disk / str(step)
        work, before = prepare(scene, folder)
        yield (*fail_at(step, kind, folder, work, seed), before)


@pytest.mark.parametrize("kind", ["kill", "half"])
@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_at_any_step_loses_nothing_that_was_acknowledged(scene, kind, disk):
    for folder, code, told, before in fail_at_each_step(scene, kind, disk):
        assert code == KILLED or kind == "half"
        check(folder, told, before)


@pytest.mark.parametrize("scene", SCENES)
def test_a_disk_that_is_full_from_any_step_on_is_a_typed_error(scene, disk):
    refused = 0
    for folder, code, told, before in fail_at_each_step(scene, "full", disk):
        assert code in (0, 1)
        if code == 1:
            assert "[LedgerError: " in told or "[ConfigError: " in told, told
            refused += 1
        check(folder, told, before)
    assert refused > 10 // EVERY


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("scene", SCENES)
def test_a_power_cut_at_any_step_loses_nothing_that_was_acknowledged(scene, seed, disk):
    for folder, code, told, before in fail_at_each_step(scene, "cut", disk, seed):
        assert code == KILLED, told
        check(folder, told, before)


@pytest.mark.parametrize(
    ("scene", "kind", "place", "broken"),
    [
        ("on", "cut", "schema._SYNC_EVERYTHING", "PRAGMA synchronous = FULL"),  # the journal's deletion is not synced
        ("on", "cut", "schema._SYNC_EVERYTHING", "PRAGMA synchronous = OFF"),
        ("anew", "cut", "schema.sync_folder", lambda folder: None),  # the name of a new ledger's folder
        ("anew", "kill", "store.drop_second_name", lambda path: None),
    ],
    ids=["deletion", "nothing", "name", "second-name"],
)
def test_what_keeps_the_promise_is_missed_when_it_is_gone(scene, kind, place, broken, disk, monkeypatch):
    monkeypatch.setattr(f"cloister.privacy.ledger.{place}", broken)
    missed = 0
    for folder, code, told, before in fail_at_each_step(scene, kind, disk, every=1):
        assert code == KILLED
        try:
            check(folder, told, before)
        except (AssertionError, LedgerError):
            missed += 1
    assert missed


@pytest.mark.parametrize("seed", range(10))
def test_any_work_survives_any_fault(seed, disk):
    """More of them: ``python -m bench.faults``."""
    fail_once(seed, disk)


@pytest.mark.parametrize("broken", ["PRAGMA synchronous = OFF", "PRAGMA journal_mode = OFF"])
def test_any_work_would_not_survive_without_what_keeps_the_promise(broken, disk, monkeypatch):
    monkeypatch.setattr("cloister.privacy.ledger.schema._SYNC_EVERYTHING", broken)
    missed = 0
    for seed in range(60):
        (disk / str(seed)).mkdir()
        try:
            fail_once(seed, disk / str(seed))
        except (AssertionError, LedgerError):
            missed += 1
    assert missed
