"""What is done to a ledger while its disk fails, and what must be true of it afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from cloister.privacy.ledger import Ledger, LedgerSession
from cloister.privacy.ledger.schema import make_folder
from cloister.privacy.units import Budget, Unit
from tests.privacy.ledger.faults import KILLED, Fault, run_with
from tests.privacy.ledger.helpers import CUSTOMERS, PATIENTS, gaussian, open_session

OLD = Path(__file__).parent / "fixtures" / "version1.ledger"
RHO = 0.01
KINDS = ("kill", "half", "full", "cut")
_CAP = Budget(epsilon=100.0, delta=1e-6)


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


def count_steps(work):
    code, told = run_with(Fault(), work)
    assert code == 0, told
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


@contextmanager
def make_disk() -> Iterator[Path]:
    """A folder in memory, where there is one: thousands of syncs would otherwise wait for a real disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def fail_at(step, kind, folder, work, seed=0):
    """Run ``work`` with one fault; returns what is left of its folder, and what the child had told."""
    left = folder.with_name(f"{folder.name}-left")
    fault = Fault(kind=kind, step=step, seed=seed, disk=folder, copy=left)
    fault.sync_all()
    code, told = run_with(fault, work)
    return (left if kind == "cut" else folder), code, told


# --- any work --------------------------------------------------------------------------------------------------------

Step = Callable[[Ledger], None]


def draw_work(rng: Random) -> list[Step]:
    """Draw a few things that an owner or a job does to a ledger, each in one transaction."""
    return [step for number in range(rng.randrange(1, 5)) for step in _draw_steps(rng, number)]


def _draw_steps(rng: Random, number: int) -> list[Step]:
    data, session, held = rng.choice((PATIENTS, CUSTOMERS)), bytes([number]) * 16, []
    releases = [gaussian(RHO * rng.randrange(1, 9)) for _ in range(rng.randrange(1, 5))]

    def open_own(ledger: Ledger) -> LedgerSession:
        return open_session(ledger, data, session=session, fingerprint=f"{data} {number}")

    def hold(ledger: Ledger) -> None:
        held.append(open_own(ledger).hold(releases, what="a search"))

    kinds: dict[str, list[Step]] = {
        "charge": [lambda ledger: open_own(ledger).charge(releases[0])],
        "charge all": [lambda ledger: open_own(ledger).charge_all(releases)],
        "hold": [hold],
        "settle": [hold, lambda ledger: open_own(ledger).settle(held[0], releases[1:])],
        "cap": [lambda ledger: ledger.set_cap(data, _CAP, reason="agreed")],
    }
    return kinds[rng.choice(tuple(kinds))]


def do_work(path: Path, steps: Sequence[Step], acknowledge: Callable[[], object] = lambda: None) -> None:
    """Each step with the ledger opened anew, as by another process."""
    make_folder(path.parent)
    for step in steps:
        with Ledger(path) as ledger:
            step(ledger)
        acknowledge()


def state_books(path: Path) -> list[object]:
    """What a ledger says of every data set, after it was verified."""
    with Ledger(path) as ledger:
        ledger.verify()
        return [
            (ledger.summarise_one(name).charges, ledger.total(name, Unit.RECORD), ledger.find_cap(name))
            for name in (PATIENTS, CUSTOMERS)
        ]


def fail_once(seed: int, disk: Path) -> str:
    """Do some work with one fault, all drawn by the seed; returns its kind.

    Afterwards the ledger holds what was acknowledged, and at most one step more. When the rest of the work is done, it
    says what one says whose disk never failed.
    """
    rng = Random(f"ledger {seed}")
    steps, kind = draw_work(rng), rng.choice(KINDS)
    states = [state_books(disk / "fresh.ledger")]
    for step in steps:
        do_work(disk / "sound" / "one.ledger", [step])
        states.append(state_books(disk / "sound" / "one.ledger"))
    faulted, file = disk / "faulted", Path("books", "one.ledger")
    for folder in (faulted, disk / "count"):
        folder.mkdir()
    count = count_steps(lambda acknowledge: do_work(disk / "count" / file, steps, acknowledge))
    left, code, told = fail_at(
        rng.randrange(1, count + 1),
        kind,
        faulted,
        lambda acknowledge: do_work(faulted / file, steps, acknowledge),
        seed=rng.choice((0, rng.randrange(2**32))),
    )
    check_end(kind, code, told)
    done = told.count("+")
    found = state_books(left / file) if (left / file).exists() else states[0]
    assert found in states[done : done + 2], "what was acknowledged is there, and at most one step more"
    do_work(left / file, steps[done + (found != states[done]) :])
    assert state_books(left / file) == states[-1]
    return kind


def check_end(kind: str, code: int, told: str) -> None:
    """A process that was not killed has ended well or with an error of the right kind."""
    if code == KILLED:
        assert kind != "full"
    elif kind == "full":
        assert code == 0 or (code == 1 and ("[LedgerError: " in told or "[ConfigError: " in told)), told
    else:  # half of a write that was none
        assert (code, kind) == (0, "half"), told
