"""Whole sessions in which one party's process is killed, or its disk fails, and it goes on from its journal and ledger.

The party is a forked child behind two pipes; the coordinator and the other parties are in this process. Whatever
becomes of the child, it is started anew on what its disk holds, sent the open request again, and must end with the
others. What it was sent before it must answer with the same bytes, and its ledger must be charged once.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from cloister.cli.role_process import RoleTask, open_role, read_report
from cloister.crypto import make_entropy
from cloister.errors import CloisterError, own_error
from cloister.job import OwnSide
from cloister.jobfile import load_setup
from cloister.privacy.ledger import Ledger
from cloister.privacy.ledger.cost import Cost
from cloister.privacy.ledger.entries import price_release
from cloister.privacy.units import Unit
from cloister.runtime.piped_role import _list_counts as list_counts
from cloister.sessions.assembly import open_session
from tests.golden.tables import write_tables
from tests.privacy.ledger.faults import KILLED, Fault, install
from tests.runtime.jobs import JOBS

KEY = bytes(range(32))
NAMES = ("synopsis", "mask-noise-average", "FastLloyd", "FedDP", "vertical with a budget", "masked sums")
KINDS = ("signal", "kill", "half", "full", "cut")
"""A kill at any time, from outside; faults of the disk, as in `tests.privacy.ledger.faults`."""
_PATIENCE_S = 120.0
_FAULTS_MOST = 3
_SIGNAL_WITHIN_S = 0.02
LEDGER, JOURNAL = "north.ledger", "journal"


class DiedError(Exception):
    """The child is gone; it said so, or it did not."""


class Child:
    """One party's process, until its next fault."""

    def __init__(self, task: RoleTask, folder: Path, fault: Fault) -> None:
        self._down, down = os.pipe()[::-1]
        up, self._up = os.pipe()[::-1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.number = os.fork()
        if self.number == 0:
            os.close(self._down)
            os.close(self._up)
            _serve(task, folder, fault, down, up)
        os.close(down)
        os.close(up)

    def ask(self, kind: str, body: bytes = b"", *, kill_after_s: float | None = None) -> bytes:
        """Send something and wait for the answer."""
        with suppress(BrokenPipeError):
            _send(self._down, kind.encode(), body)
        if kill_after_s is not None:
            time.sleep(kill_after_s)
            self.kill()
        return self.read()

    def read(self) -> bytes:
        """Wait for an answer."""
        kind, body = _receive(self._up, _PATIENCE_S)
        if kind != b"done":
            raise DiedError(body.decode() if kind == b"failed" else "")
        return body

    def kill(self) -> None:
        os.kill(self.number, signal.SIGKILL)

    def close(self) -> int:
        """Wait for its end; returns the exit code, negative for a signal."""
        os.close(self._down)
        os.close(self._up)
        return os.waitstatus_to_exitcode(os.waitpid(self.number, 0)[1])


def _serve(task: RoleTask, folder: Path, fault: Fault, down: int, up: int) -> None:
    """In the child: seat the party, and answer until there is nothing more."""
    code = 70
    try:
        install(fault)
        opened = open_role(msgspec.structs.replace(task, journal=str(folder / JOURNAL), journal_key=KEY).encode())
        if opened._setup.job.budget is not None:
            side = OwnSide(data=Path(task.data), ledger=folder / LEDGER)
            opened._setup = replace(opened._setup, own={task.party: side})
        _send(up, b"done", opened.identity)
        role: Any = None
        while True:
            kind, body = _receive(down, None)
            if kind == b"":
                break
            if kind == b"seat":
                role, answer = opened.seat(msgspec.msgpack.decode(body, type=tuple[bytes, ...])), b""
            elif kind == b"frame":
                answer = role.endpoint.receive(body)
            elif kind == b"again":  # unless it has answered the open request, too
                answer = role.endpoint.receive(body) if role.endpoint.has_answered(body) else b""
            elif kind == b"find":
                answer = role.find(msgspec.msgpack.decode(body))
            else:
                role.end()
                role.close()
                answer = str(fault.steps).encode()
            _send(up, b"done", answer)
        code = 0
    except CloisterError as caught:
        error = own_error(caught)
        _send(up, b"failed", f"{type(error).__name__}: {error}".encode())
        code = 1
    except BaseException as error:
        _send(up, b"failed", f"untyped {error!r}".encode())
        code = 2
    finally:
        os._exit(code)


def _send(pipe: int, kind: bytes, body: bytes) -> None:
    whole = memoryview(struct.pack("<BQ", len(kind), len(body)) + kind + body)
    while whole:
        whole = whole[os.write(pipe, whole) :]


def _receive(pipe: int, patience_s: float | None) -> tuple[bytes, bytes]:
    def read(count: int) -> bytes | None:
        raw = b""
        while len(raw) < count:
            if not select.select([pipe], [], [], patience_s)[0]:
                raise AssertionError(f"a party must answer within {_PATIENCE_S:g} s; it hangs.")
            more = os.read(pipe, count - len(raw))
            if not more:
                return None
            raw += more
        return raw

    head = read(9)
    kind_length, length = (0, 0) if head is None else struct.unpack("<BQ", head)
    kind, body = read(kind_length), read(length)
    return (b"", b"") if head is None or kind is None or body is None else (kind, body)  # cut off is not sent


class FaultedSession:
    """One session.

    Parameters
    ----------
    job, disk
        The job's file, beside its tables; an empty folder.
    seed, party
        What decides about faults, and whose process they strike.
    steps
        How many steps its disk takes; None: there is no fault, to count them.
    """

    def __init__(self, job: Path, disk: Path, seed: int, *, party: int, steps: int | None = None) -> None:
        self._rng = Random(f"session {seed}")
        self._steps = steps
        setup = load_setup(job)
        self.names = [party.name for party in setup.job.parties]
        shared = {"job": job.read_text(), "folder": str(job.parent), "session": make_entropy("s", seed=None).bytes(16)}
        tasks = [RoleTask(**shared)]
        tasks += [RoleTask(**shared, party=name, data=str(setup.own_side(name).data)) for name in self.names]
        self.number = party
        self._task = tasks[self.number]
        self._opened = {number: open_role(one.encode()) for number, one in enumerate(tasks) if number != self.number}
        self._folder = disk / "0"
        self._folder.mkdir()
        self._left = 0 if steps is None else self._rng.randrange(1, _FAULTS_MOST + 1)
        self.faults: list[str] = []
        self._answered: tuple[bytes, bytes] | None = None
        self._directory: tuple[bytes, ...] = ()
        self._child: Child | None = None

    def run(self) -> int:
        """Run it to its end and check it; returns how many steps the child took."""
        try:
            self._start()
            roles = {number: opened.seat(self._directory) for number, opened in self._opened.items()}
            coordinator = roles[0].endpoint
            while not coordinator.finished:
                for party, frame in coordinator.frames().items():
                    receive = self._ask if party == self.number else roles[party].endpoint.receive
                    coordinator.receive(party, receive(frame))
                coordinator.close_step()
            outcome = list_counts(coordinator.result)
            own = read_report(self._survive("find", msgspec.msgpack.encode(outcome)))
            reports = [own, *(read_report(role.find(outcome)) for number, role in roles.items() if number)]
            assert all(one.centres == own.centres is not None for one in reports), "all end with one result"
            steps = self._end()
            self._check_books(own.charged)
            return steps
        finally:
            if self._child is not None:
                self._child.kill()
                self._child.close()

    # --- the child ----------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start the party's process, with the next fault, until it has its seat."""
        while True:
            kind = self._rng.choice(KINDS) if self._left else "none"
            disk_fault = kind if kind != "signal" else "none"
            step = self._rng.randrange(1, (self._steps or 1) + 1) if disk_fault != "none" else None
            seed = self._rng.choice((0, self._rng.randrange(2**32)))
            copy = self._folder.with_name(str(int(self._folder.name) + 1))
            self._fault = Fault(kind=disk_fault, step=step, seed=seed, disk=self._folder, copy=copy)
            self._fault.sync_all()
            self._kind = kind
            self._child = Child(self._task, self._folder, self._fault)
            try:
                identity = self._child.read()
                directory = self._list_identities(identity)
                assert self._directory in ((), directory), "a party must stay who it is"
                self._directory = directory
                self._child.ask("seat", msgspec.msgpack.encode(directory))
                if self._answered is not None:
                    frame, reply = self._answered
                    again = self._child.ask("again", frame)
                    assert again in (reply, b""), "the same bytes to the same request"
                return
            except DiedError as error:
                self._bury(error)

    def _list_identities(self, own: bytes) -> tuple[bytes, ...]:
        others = {number: opened.identity for number, opened in self._opened.items()}
        return tuple({**others, self.number: own}[number] for number in range(1, len(self.names) + 1))

    def _survive(self, kind: str, body: bytes) -> bytes:
        """Ask the child until it answers."""
        while True:
            assert self._child is not None
            signalled = self._kind == "signal" and self._rng.random() < 0.2
            try:
                wait_s = self._rng.uniform(0, _SIGNAL_WITHIN_S) if signalled else None
                return self._child.ask(kind, body, kill_after_s=wait_s)
            except DiedError as error:
                self._bury(error)
                self._start()

    def _ask(self, frame: bytes) -> bytes:
        reply = self._survive("frame", frame)
        self._answered = (frame, reply)
        return reply

    def _end(self) -> int:
        """End the session; where the child dies in it the journal may be there or not, and nobody needs it."""
        assert self._child is not None
        try:
            return int(self._child.ask("end"))
        except DiedError as error:
            self._bury(error)
            return 0

    def _bury(self, error: DiedError) -> None:
        """Check how the child ended; what is left is the disk of the next one."""
        assert self._child is not None
        child, self._child = self._child, None
        code, told = child.close(), str(error)
        self.faults.append(self._kind)
        self._left -= 1
        if self._kind == "full":
            assert code == 1, f"a full disk is a typed error: {told}"
            assert told.startswith(("LedgerError", "JournalError", "ConfigError")), told
        else:
            assert code == (-signal.SIGKILL if self._kind == "signal" else KILLED), f"{self._kind}: {code} {told}"
        if self._kind == "cut":
            self._folder = self._fault.copy

    # --- the books ----------------------------------------------------------------------------------------------------

    def _check_books(self, charged: tuple[str, ...]) -> None:
        opened = self._opened[0]
        session = open_session(opened._setup.job, self._directory, opened._public, session=self._task.session)
        if session.charges is None:
            return
        assert charged
        due = Cost()
        for release in session.charges.prepaid:
            due = due.plus(price_release(release))
        with Ledger(self._folder / LEDGER, create=False) as ledger:
            ledger.verify()
            (account,) = ledger.summarise()
            assert account.charges == len(session.charges.prepaid), "charged once"
            assert ledger.total(account.dataset, Unit.RECORD) == due


class FaultedJobs:
    """Jobs of several protocols, whose sessions are run with faults."""

    def __enter__(self) -> FaultedJobs:
        self._tables = tempfile.TemporaryDirectory()
        self._steps: dict[tuple[str, int], int] = {}
        write_tables(Path(self._tables.name))
        return self

    def __exit__(self, *details: object) -> None:
        self._tables.cleanup()

    def run(self, seed: int, disk: Path) -> list[str]:
        """Run one session, all of it drawn by the seed but for the time of a signal; returns the faults that struck."""
        name = NAMES[seed % len(NAMES)]
        path = Path(self._tables.name) / "job.toml"
        path.write_text(JOBS[name])
        party = Random(f"party {seed}").randrange(1, 4)
        if (name, party) not in self._steps:
            (disk / "count").mkdir()
            self._steps[name, party] = FaultedSession(path, disk / "count", seed, party=party).run()
        (disk / "faulted").mkdir()
        session = FaultedSession(path, disk / "faulted", seed, party=party, steps=self._steps[name, party])
        session.run()
        return session.faults
