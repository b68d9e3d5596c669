"""Every role is killed at every step, at three instants, and goes on from its journal: one result, draw and charge.

The roles are those of `cloister.cli.role_process`, in this process: a kill throws a role away and opens it anew.
"""

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

    def run(self, plan=None, monkeypatch=None):
        """Run the session; ``plan`` says from a step which role is killed in it, and when."""
        steps = 0
        while not self.endpoint(0).finished:
            victim, instant = (None, None) if plan is None else plan(steps)
            frames = self.endpoint(0).frames()
            for party, frame in frames.items():
                own = instant if party == victim else None
                self.endpoint(0).receive(party, self.ask(party, frame, own, monkeypatch))
            if victim == 0:
                self.close_step(frames, instant, monkeypatch)
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


def in_turn(instant):
    """In each step another role is killed."""
    return lambda step: (step % 4, instant)


@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("job", JOBS)
def test_a_seeded_session_ends_as_it_does_without_kills(job, instant, folder, tmp_path, monkeypatch):
    undisturbed, steps = Cast(folder, None, job, seed=1).run()
    cast = Cast(folder, tmp_path, job, seed=1)
    assert cast.run(in_turn(instant), monkeypatch) == (undisturbed, steps)
    assert cast.kills >= steps / 2  # a party that is not asked in a step is not killed in it
    assert list(tmp_path.iterdir()) == []  # the journals are wiped


DRAWING = [job for job, text in JOBS.items() if "[budget]" in text and "joint" not in text]
"""Joint noise is drawn by nobody: it follows from keys, which the test above covers."""


@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.parametrize("job", DRAWING)
def test_without_a_seed_every_noise_that_leaves_is_drawn_once(job, instant, folder, tmp_path, monkeypatch):
    """What was drawn on account of a request that was answered is never drawn again, nor charged again."""
    drawn = []
    real = ExactSampler.draw

    def draw(self, *args):
        drawn.append(1)
        return real(self, *args)

    monkeypatch.setattr(ExactSampler, "draw", draw)
    undisturbed, _ = Cast(folder, None, job, seed=None).run()
    needed = len(drawn)
    assert needed
    drawn.clear()
    reports, _ = Cast(folder, tmp_path, job, seed=None).run(in_turn(instant), monkeypatch)
    for report, other in zip(reports, undisturbed, strict=True):  # which rounds are idle may differ with the noise
        assert max(Counter(report.charged).values(), default=0) == max(Counter(other.charged).values(), default=0)
    assert all(report.centres == reports[0].centres is not None for report in reports)
    if instant != "inside":  # there noise that nobody ever saw was drawn
        assert len(drawn) == needed


def test_one_party_is_killed_at_every_step_and_at_every_instant(folder, tmp_path, monkeypatch):
    """Also the leader, round after round."""
    undisturbed, _ = Cast(folder, None, "synopsis", seed=2).run()
    for party in (1, 2):
        for instant in INSTANTS:
            cast = Cast(folder, tmp_path, "synopsis", seed=2)
            assert cast.run(lambda step, kill=(party, instant): kill, monkeypatch)[0] == undisturbed


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


def test_keys_differ_from_record_to_record_from_label_to_label_and_from_session_to_session(tmp_path):
    seen = []
    for session in (b"1", b"2"):
        memory = Memory(tmp_path / session.decode(), key=KEY, session=session)
        one, other = memory.make_entropy("one"), memory.make_entropy("other")
        for number in (1, 2):
            memory.begin(number)
            seen += [one.bytes(16), one.bytes(16), other.bytes(16)]
            memory.finish({}, b"")
        memory.close()
    assert len(set(seen)) == len(seen)
    assert np.unpackbits(np.frombuffer(b"".join(seen), np.uint8)).mean() == pytest.approx(0.5, abs=0.06)


def test_a_journal_that_begins_otherwise_is_refused(tmp_path):
    journal = resuming.Journal(tmp_path / "journal", key=KEY, session=b"s")
    journal.append(b"\x92\x02\xc4\x00")
    journal.close()
    with pytest.raises(JournalError, match="must begin with version 1"):
        Memory(tmp_path / "journal", key=KEY, session=b"s")
