"""All roles of one session, each of which can be killed and opened anew: in this process, or in their own processes.

Roles are those of `cloister.cli.role_process`. In this process a kill throws a role away; a process ends by SIGKILL.
"""

import multiprocessing
import os
import signal
import warnings
from contextlib import suppress
from unittest import mock

import pytest

from cloister.cli.role_process import RoleTask, open_role, read_report
from cloister.crypto import make_entropy
from cloister.jobfile import load_setup
from cloister.runtime.piped_role import _list_counts
from cloister.runtime.resuming import Memory
from tests.runtime.jobs import JOBS

KEY = bytes(range(32))
INSTANTS = ("before", "inside", "after")
"""Before a request is handled; after it was, when nothing is written yet; when it is written and nothing was sent."""


class KilledError(BaseException):
    """Stands for SIGKILL, or says that it has struck."""


class Cast:
    """The roles of one session, in this process; a context manager that leaves nobody behind.

    Parameters
    ----------
    folder, journals
        Where the tables are; where each role keeps its journal, or None.
    job, seed
        Which of `JOBS`; None for keys and noise as in earnest.
    """

    open_role = staticmethod(open_role)

    def __init__(self, folder, journals, job, seed):
        path = folder / "job.toml"
        path.write_text(JOBS[job])
        setup = load_setup(path)
        shared = {"job": path.read_text(), "folder": str(folder), "seed": seed}
        shared["session"] = make_entropy("session", seed=seed).bytes(16)
        names = [None, *(party.name for party in setup.job.parties)]
        self.tasks = []
        for number, name in enumerate(names):
            table = None if name is None else str(setup.own_side(name).data)
            kept = {} if journals is None else {"journal": str(journals / str(number)), "journal_key": KEY}
            self.tasks.append(RoleTask(**shared, party=name, data=table, **kept).encode())
        self.opened = [self.open_role(task) for task in self.tasks]
        self.directory = tuple(role.identity for role in self.opened[1:])
        self.roles = [role.seat(self.directory) for role in self.opened]
        self.kills = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        """Nobody outlives this process."""

    def stop(self, number):
        """End a role without a word."""
        self.roles[number].close()
        self.opened[number]._memory.close()

    def kill(self, number):
        """Stop a role, and open it anew; the others never notice."""
        self.stop(number)
        self.opened[number] = self.open_role(self.tasks[number])
        assert self.opened[number].identity == (self.directory[number - 1] if number else b"")
        self.roles[number] = self.opened[number].seat(self.directory)
        self.kills += 1

    def die_inside(self, number, handle):
        """Have a role killed when it has handled something and written nothing down."""

        def die(*args):
            raise KilledError

        with mock.patch.object(Memory, "finish", die), pytest.raises(KilledError):
            handle()

    def endpoint(self, number):
        return self.roles[number].endpoint

    def read_outcome(self):
        return _list_counts(self.endpoint(0).result)

    def run(self, plan=lambda step, role: None):
        """Run the session; ``plan`` says of a step and a role at which instant it is killed in it, if it is.

        Returns what the parties report, and the number of steps.
        """
        steps = 0
        while not self.endpoint(0).finished:
            frames = self.endpoint(0).frames()
            for party, frame in frames.items():
                self.endpoint(0).receive(party, self.ask(party, frame, plan(steps, party)))
            if plan(steps, 0) is not None:
                self.close_step(frames, plan(steps, 0))
            else:
                self.endpoint(0).close_step()
            steps += 1
        outcome = self.read_outcome()
        reports = [read_report(role.find(outcome)) for role in self.roles[1:]]
        for role in self.roles:
            role.end()
            role.close()
        return reports, steps

    def ask(self, party, frame, instant):
        if instant == "before":
            self.kill(party)
        if instant == "inside":
            self.die_inside(party, lambda: self.endpoint(party).receive(frame))
            self.kill(party)
        reply = self.endpoint(party).receive(frame)
        if instant == "after":
            self.kill(party)
            assert self.endpoint(party).receive(frame) == reply
        return reply

    def close_step(self, frames, instant):
        """The coordinator is killed; whoever has answered it is asked again, and answers the same."""
        if instant == "inside":
            self.die_inside(0, self.endpoint(0).close_step)
        elif instant == "after":
            self.endpoint(0).close_step()
            following = self.list_frames()
        self.kill(0)
        if instant == "after":
            assert self.list_frames() == following
            return
        assert self.endpoint(0).frames() == frames
        for party, frame in frames.items():
            self.endpoint(0).receive(party, self.endpoint(party).receive(frame))
        self.endpoint(0).close_step()

    def list_frames(self):
        return {} if self.endpoint(0).finished else self.endpoint(0).frames()


def everybody(turn):
    """In each step every role is killed: in three turns, each at each instant."""
    return lambda step, role: INSTANTS[(step + role + turn) % 3]


class Forked:
    """One role, in a process that is forked from this one: it takes long to import all that a role needs."""

    def __init__(self, task):
        self._pipe, theirs = multiprocessing.Pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads of NumPy, which are idle
            self.pid = os.fork()
        if self.pid == 0:
            self._pipe.close()
            _serve(task, theirs)
        theirs.close()
        self.endpoint = self
        self.identity = self._hear()

    def _hear(self):
        try:
            kind, answer = self._pipe.recv()
        except EOFError:
            raise KilledError from None
        assert kind == "done", answer
        return answer

    def _ask(self, what, *more):
        self._pipe.send((what, more))
        return self._hear()

    def __getattr__(self, what):
        """Pass calls on to the role's process."""
        if what in ("finished", "result"):
            return self._ask(what)
        return lambda *more: self._ask(what, *more)

    def seat(self, directory):
        self._ask("seat", directory)
        return self

    def kill(self):
        """End it, by SIGKILL unless that has struck already; return the signal that it ended by."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._pipe.close()
        return -os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self):
        """Nothing more is asked."""
        self._ask("close")
        self._pipe.close()
        assert os.waitpid(self.pid, 0)[1] == 0


class ForkedCast(Cast):
    """The roles of one session, each in a process of its own."""

    open_role = Forked

    def __exit__(self, *error):
        for role in self.roles:
            if not role._pipe.closed:
                role.kill()

    def stop(self, number):
        assert self.roles[number].kill() == signal.SIGKILL

    def die_inside(self, number, handle):
        self.roles[number].doom()
        with pytest.raises(KilledError):
            handle()

    def read_outcome(self):
        return self.roles[0].result


def _serve(task, pipe):
    """In a role's process: do as it is told, until it is closed."""
    code = 1
    try:
        opened, role, what = open_role(task), None, ""
        pipe.send(("done", opened.identity))
        while what != "close":
            assert pipe.poll(300), "a role must be asked something within 300 s"
            what, more = pipe.recv()
            if what == "seat":
                role, answer = opened.seat(*more), None
            elif what == "doom":
                Memory.finish, answer = _die, None
            else:
                answer = _act(role, what, more)
            pipe.send(("done", answer))
        code = 0
    except BaseException as error:
        with suppress(OSError):
            pipe.send(("failed", repr(error)))
    finally:
        os._exit(code)


def _die(*args):
    os.kill(os.getpid(), signal.SIGKILL)


def _act(role, what, more):
    if what == "result":
        return _list_counts(role.endpoint.result)
    if what == "finished":
        return role.endpoint.finished
    return getattr(role if hasattr(role, what) else role.endpoint, what)(*more)
