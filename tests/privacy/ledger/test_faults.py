"""What docs/ledger.md promises of a failing machine: a kill, a full disk and a power cut at every single step."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from cloister.errors import LedgerError
from cloister.privacy.ledger import Ledger
from cloister.privacy.ledger.schema import make_folder
from tests.privacy.ledger.faults import KILLED, Fault, find_vfs, run_with
from tests.privacy.ledger.helpers import gaussian, open_session

pytestmark = pytest.mark.skipif(
    find_vfs() is None or not Path("/proc/self/fd").exists(), reason="needs SQLite as a shared library, and /proc"
)
OLD = Path(__file__).parent / "fixtures" / "version1.ledger"
RHO = 0.01


def start_anew(folder, acknowledge):
    """A party's first job, folder and all, and its second."""
    make_folder(folder / "books")
    for _ in range(2):
        with Ledger(folder / "books" / "north.ledger") as ledger:
            open_session(ledger).charge_all([gaussian(RHO), gaussian(RHO)])
            acknowledge()


def go_on(folder, acknowledge):
    with Ledger(folder / "books" / "north.ledger", create=False) as ledger:
        session = open_session(ledger)
        for _ in range(2):
            session.charge_all([gaussian(RHO), gaussian(RHO)])
            acknowledge()


def prepare_nothing(folder):
    folder.mkdir()


def prepare_ledger(folder):
    (folder / "books").mkdir(parents=True)
    with Ledger(folder / "books" / "north.ledger") as ledger:
        open_session(ledger).charge_all([gaussian(RHO)] * 3)


def prepare_old(folder):
    (folder / "books").mkdir(parents=True)
    shutil.copyfile(OLD, folder / "books" / "north.ledger")


SCENES = {"anew": (prepare_nothing, start_anew, 0), "on": (prepare_ledger, go_on, 3), "old": (prepare_old, go_on, 6)}


def prepare(scene, folder):
    prepare, work, before = SCENES[scene]
    prepare(folder)
    return lambda acknowledge: work(folder, acknowledge), before


def count_steps(scene, folder):
    work, _ = prepare(scene, folder)
    code, told = run_with(Fault(), work)
    assert (code, told[:2]) == (0, "++")
    steps = int(told.rpartition(" ")[2])
    assert steps > 20, "nothing lies between SQLite and the disk"
    return steps


def check(folder, told, before, at_most=1):
    """What was acknowledged is there, with at most one transaction more; and the ledger can be used."""
    acknowledged = told.count("+")
    path = folder / "books" / "north.ledger"
    if not path.exists():
        assert (acknowledged, before) == (0, 0)
        path.parent.mkdir(parents=True, exist_ok=True)
    with Ledger(path) as ledger:
        ledger.verify()
        charges = ledger.summarise_one(None).charges
        assert before + 2 * acknowledged <= charges <= before + 2 * (acknowledged + at_most)
        assert (charges - before) % 2 == 0, "a plan is there whole or not at all"
        open_session(ledger, session=b"later").charge(gaussian(RHO))
        assert ledger.summarise_one(None).charges == charges + 1
    assert not [one for one in path.parent.iterdir() if one.name.endswith("-journal")]


@pytest.fixture
def disk():
    """A folder in memory, where there is one: thousands of syncs would otherwise wait for a real disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def fail_at_each_step(scene, kind, disk, seed=0):
    """Run a scene once for every step that it takes; yields what was left, and what the child had told."""
    for step in range(1, count_steps(scene, disk / "count") + 1):
        folder, left = disk / str(step), disk / f"{step}-left"
        work, before = prepare(scene, folder)
        fault = Fault(kind=kind, step=step, seed=seed, disk=folder, copy=left)
        for path in (folder, *folder.rglob("*")):  # what is there before is on the disk
            (fault.sync_folder if path.is_dir() else fault.sync_file)(path)
        code, told = run_with(fault, work)
        yield (left if kind == "cut" else folder), code, told, before


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
    assert refused > 10


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
    for folder, code, told, before in fail_at_each_step(scene, kind, disk):
        assert code == KILLED
        try:
            check(folder, told, before)
        except (AssertionError, LedgerError):
            missed += 1
    assert missed
