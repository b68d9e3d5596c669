"""Every role of every family is killed at every step, at three instants, and goes on: one result, draw and charge.

The roles are those of `cloister.cli.role_process`, in this process: a kill throws a role away and opens it anew.
"""

import os
from collections import Counter

import numpy as np
import pytest

from cloister.cli.role_process import RoleTask, open_role, read_report
from cloister.crypto import make_entropy
from cloister.errors import JournalError, RemoteProtocolError
from cloister.jobfile import load_setup
from cloister.privacy.samplers import ExactSampler
from cloister.runtime import resuming
from cloister.runtime.piped_role import _list_counts
from cloister.runtime.resuming import Memory
from tests.golden.tables import write_tables
from tests.runtime.test_processors import JOBS

KEY = bytes(range(32))
INSTANTS = ("before", "inside", "after")
"""Before a request is handled; after it was, when nothing is written yet; when it is written and nothing was sent."""


class KilledError(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


class Cast:
    """The roles of one session, in this process."""

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
        self.opened = [open_role(task) for task in self.tasks]
        self.directory = tuple(role.identity for role in self.opened[1:])
        self.roles = [role.seat(self.directory) for role in self.opened]
        self.kills = 0

    def kill(self, number):
        """Throw a role away, and open it anew; the others never notice."""
        self.roles[number].close()
        self.opened[number]._memory.close()
        self.opened[number] = open_role(self.tasks[number])
        assert self.opened[number].identity == (self.directory[number - 1] if number else b"")
        self.roles[number] = self.opened[number].seat(self.directory)
        self.kills += 1

    def endpoint(self, number):
        return self.roles[number].endpoint

    def run(self, plan=lambda step, role: None, monkeypatch=None):
        """Run the session; ``plan`` says of a step and a role at which instant it is killed in it, if it is."""
        steps = 0
        while not self.endpoint(0).finished:
            frames = self.endpoint(0).frames()
            for party, frame in frames.items():
                self.endpoint(0).receive(party, self.ask(party, frame, plan(steps, party), monkeypatch))
            if plan(steps, 0) is not None:
                self.close_step(frames, plan(steps, 0), monkeypatch)
            else:
                self.endpoint(0).close_step()
            steps += 1
        outcome = _list_counts(self.endpoint(0).result)
        reports = [read_report(role.find(outcome)) for role in self.roles[1:]]
        for role in self.roles:
            role.end()
            role.close()
        return reports, steps

    def ask(self, party, frame, instant, monkeypatch):
        if instant == "before":
            self.kill(party)
        if instant == "inside":
            self.die_inside(lambda: self.endpoint(party).receive(frame), monkeypatch)
            self.kill(party)
        reply = self.endpoint(party).receive(frame)
        if instant == "after":
            self.kill(party)
            assert self.endpoint(party).receive(frame) == reply
        return reply

    def close_step(self, frames, instant, monkeypatch):
        """The coordinator is killed; whoever has answered it is asked again, and answers the same."""
        if instant == "inside":
            self.die_inside(self.endpoint(0).close_step, monkeypatch)
        elif instant == "after":
            self.endpoint(0).close_step()
            following = {} if self.endpoint(0).finished else self.endpoint(0).frames()
        self.kill(0)
        if instant == "after":
            assert ({} if self.endpoint(0).finished else self.endpoint(0).frames()) == following
            return
        assert self.endpoint(0).frames() == frames
        for party, frame in frames.items():
            self.endpoint(0).receive(party, self.endpoint(party).receive(frame))
        self.endpoint(0).close_step()

    @staticmethod
    def die_inside(handle, monkeypatch):
        def die(*args):
            raise KilledError

        with monkeypatch.context() as patch:
            patch.setattr(Memory, "finish", die)
            with pytest.raises(KilledError):
                handle()


def everybody(turn):
    """In each step every role is killed: in three turns, each at each instant."""
    return lambda step, role: INSTANTS[(step + role + turn) % 3]


DRAWING = [job for job, text in JOBS.items() if "[budget]" in text and "joint" not in text]
"""Joint noise is drawn by nobody: it follows from keys."""
IN_ONE_TURN = () if "CLOISTER_LONG" in os.environ else ("vertical", *DRAWING)
"""Each role at each step, at one instant; the others at all three. Those that draw noise are so without a seed, too."""


@pytest.mark.parametrize(
    ("job", "turn"), [(job, turn) for job in JOBS for turn in range(1 if job in IN_ONE_TURN else 3)]
)
def test_every_role_is_killed_at_every_step_and_the_session_ends_as_it_does_without(
    job, turn, folder, tmp_path, monkeypatch
):
    """Seeded: the same results, books and number of steps."""
    undisturbed, steps = Cast(folder, None, job, seed=1).run()
    cast = Cast(folder, tmp_path, job, seed=1)
    assert cast.run(everybody(turn), monkeypatch) == (undisturbed, steps)
    assert cast.kills >= 2 * steps  # the coordinator, and whoever is asked
    assert list(tmp_path.iterdir()) == []  # the journals are wiped


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("job", DRAWING)
def test_without_a_seed_every_noise_that_leaves_is_drawn_once(job, turn, folder, tmp_path, monkeypatch):
    """What was drawn on account of a request that was answered is never drawn again, nor charged again."""
    drawn, sent = [], []
    real_draw, real_finish = ExactSampler.draw, Memory.finish

    def draw(self, *args):
        drawn.append(real_draw(self, *args))
        return drawn[-1]

    def finish(self, frames, answer):  # what is written, and leaves afterwards
        sent.extend(self._noise)
        real_finish(self, frames, answer)

    monkeypatch.setattr(ExactSampler, "draw", draw)
    undisturbed, _ = Cast(folder, None, job, seed=None).run()
    needed = len(drawn)
    assert needed
    drawn.clear()
    monkeypatch.setattr(Memory, "finish", finish)
    reports, _ = Cast(folder, tmp_path, job, seed=None).run(everybody(turn), monkeypatch)
    for report, other in zip(reports, undisturbed, strict=True):  # which rounds are idle may differ with the noise
        assert max(Counter(report.charged).values(), default=0) == max(Counter(other.charged).values(), default=0)
    assert all(report.centres == reports[0].centres is not None for report in reports)
    assert len(sent) == needed
    assert {id(noise) for noise in sent} <= {id(noise) for noise in drawn}  # else drawn inside a kill, and never seen


# --- a role that would answer otherwise -------------------------------------------------------------------------------


def reach(folder, tmp_path, step, job="synopsis"):
    cast = Cast(folder, tmp_path, job, seed=None)
    for _ in range(step):
        for party, frame in cast.endpoint(0).frames().items():
            cast.endpoint(0).receive(party, cast.endpoint(party).receive(frame))
        cast.endpoint(0).close_step()
    return cast


def test_a_role_whose_table_was_changed_ends_with_a_typed_error(folder, tmp_path):
    cast = reach(folder, tmp_path, 9)
    table = folder / "north.csv"
    whole = table.read_text()
    lines = whole.splitlines()
    table.write_text("\n".join([*lines[:1], *lines[3:], lines[1], lines[1]]) + "\n")
    with pytest.raises(JournalError, match="would answer otherwise than it did"):
        cast.kill(1)
    table.write_text(whole)
    cast.kill(1)  # the true table is taken


def test_without_the_check_another_table_would_answer_a_paid_question_again(folder, tmp_path, monkeypatch):
    cast = reach(folder, tmp_path, 9)
    table = folder / "north.csv"
    whole = table.read_text()
    lines = whole.splitlines()
    table.write_text("\n".join([*lines[:1], *lines[3:], lines[1], lines[1]]) + "\n")
    monkeypatch.setattr(Memory, "confirm", lambda *args: None)
    cast.kill(1)
    table.write_text(whole)


def test_without_kept_noise_there_would_be_a_second_release(folder, tmp_path, monkeypatch):
    """The mutant draws anew what was drawn before the kill; the answer is another, and refused."""
    cast = reach(folder, tmp_path, 9)

    def draw_anew(self, sampler, mechanism, entries, on_progress):
        drawn = sampler.draw(mechanism, entries, on_progress)
        self._noise.append(drawn)
        return drawn

    monkeypatch.setattr(Memory, "draw_noise", draw_anew)
    with pytest.raises(JournalError, match="would answer otherwise than it did"):
        cast.kill(1)


def test_refused_requests_leave_no_trace(folder, tmp_path):
    """Neither in the journal nor in the keys that are made later."""
    cast = reach(folder, tmp_path, 8)  # a question, which is signed and sealed
    sizes = [entry.stat().st_size for entry in sorted(tmp_path.iterdir())]
    frame = cast.endpoint(0).frames()[1]
    for place in range(40, len(frame), 7):
        damaged = bytearray(frame)
        damaged[place] ^= 255
        with pytest.raises(RemoteProtocolError):
            cast.endpoint(1).receive(bytes(damaged))
    assert [entry.stat().st_size for entry in sorted(tmp_path.iterdir())] == sizes
    reply = cast.endpoint(1).receive(frame)
    cast.kill(1)
    assert cast.endpoint(1).receive(frame) == reply


def test_noise_on_account_of_nothing_is_refused(tmp_path):
    memory = Memory(tmp_path / "journal", key=KEY, session=b"s")
    with pytest.raises(resuming.LocalProtocolError, match="on account of a message"):
        memory.keep_noise(ExactSampler()).draw(None, 1)
    memory.close()


def test_keys_differ_from_record_to_record_and_with_frames_labels_and_sessions(tmp_path):
    seen = []
    for session in (b"1", b"2"):
        memory = Memory(tmp_path / session.decode(), key=KEY, session=session)
        one, other = memory.make_entropy("one"), memory.make_entropy("other")
        for number in (1, 2):
            for frames in ({0: b"a"}, {0: b"b"}, {1: b"a"}, {0: b"a", 1: b"b"}):
                memory.begin(number, frames)
                seen += [one.bytes(16), one.bytes(16), other.bytes(16)]
            memory.finish(frames, b"")
        memory.close()
    assert len(set(seen)) == len(seen)
    assert np.unpackbits(np.frombuffer(b"".join(seen), np.uint8)).mean() == pytest.approx(0.5, abs=0.06)


def test_a_journal_that_begins_otherwise_is_refused(tmp_path):
    journal = resuming.Journal(tmp_path / "journal", key=KEY, session=b"s")
    journal.append(b"\x92\x02\xc4\x00")
    journal.close()
    with pytest.raises(JournalError, match="must begin with version 1"):
        Memory(tmp_path / "journal", key=KEY, session=b"s")
