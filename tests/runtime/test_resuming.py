"""Every role of every family is killed at every step, at three instants, and goes on: one result, draw and charge."""

import hashlib
import os
from collections import Counter

import numpy as np
import pytest

from cloister.errors import JournalError, RemoteProtocolError
from cloister.privacy.samplers import ExactSampler
from cloister.runtime import resuming
from cloister.runtime.resuming import Memory
from tests.golden.tables import write_tables
from tests.runtime.casts import KEY, Cast, ForkedCast, everybody
from tests.runtime.jobs import JOBS, LONG, RUN


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


NOISY = [job for job, text in JOBS.items() if "[budget]" in text]
DRAWING = [job for job in NOISY if "joint" not in job]
"""Joint noise is drawn by nobody: it follows from keys."""
IN_ONE_TURN = () if LONG else ("vertical", *DRAWING)
"""Each role at each step, at one instant; the others at all three. Those that draw noise are so without a seed, too."""
KILLED = [(job, turn) for job in JOBS for turn in range(3)] if LONG else [("masked sums", 0), ("FastLloyd", 2)]
"""By SIGKILL, in processes; with CLOISTER_LONG=1 every job at all instants."""


@pytest.mark.parametrize(
    ("job", "turn"), [(job, turn) for job in RUN for turn in range(1 if job in IN_ONE_TURN else 3)]
)
def test_every_role_is_killed_at_every_step_and_the_session_ends_as_it_does_without(job, turn, folder, tmp_path):
    """Seeded: the same results, books and number of steps."""
    cast = Cast(folder, tmp_path, job, seed=1)
    end_as_undisturbed(cast, job, turn, folder)
    assert list(tmp_path.iterdir()) == []  # the journals are wiped


def end_as_undisturbed(cast, job, turn, folder):
    undisturbed, steps = Cast(folder, None, job, seed=1).run()
    assert cast.run(everybody(turn)) == (undisturbed, steps)
    assert cast.kills >= 2 * steps  # the coordinator, and whoever is asked


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("job", [job for job in RUN if job in DRAWING])
def test_without_a_seed_every_noise_that_leaves_is_drawn_once(job, turn, folder, tmp_path, monkeypatch):
    with Noise(tmp_path / "noise", monkeypatch) as noise:
        draw_once(noise, Cast, job, turn, folder, tmp_path)


class Noise:
    """What is drawn, and what is written down and leaves afterwards, by whatever process."""

    def __init__(self, path, monkeypatch):
        self._log = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR)
        real_draw, real_finish = ExactSampler.draw, Memory.finish

        def draw(sampler, *args):
            drawn = real_draw(sampler, *args)
            self._note("drawn", drawn)
            return drawn

        def finish(memory, frames, answer):
            for drawn in memory._noise:
                self._note("sent", drawn)
            real_finish(memory, frames, answer)

        monkeypatch.setattr(ExactSampler, "draw", draw)
        monkeypatch.setattr(Memory, "finish", finish)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self._log)

    def _note(self, what, drawn):
        os.write(self._log, f"{what} {hashlib.sha256(np.asarray(drawn, np.int64).tobytes()).hexdigest()}\n".encode())

    def take(self):
        """How often each noise was drawn, and how often it was sent, since the last time."""
        lines = os.pread(self._log, os.fstat(self._log).st_size, 0).decode().splitlines()
        os.ftruncate(self._log, 0)
        return [Counter(line.split()[1] for line in lines if line.startswith(what)) for what in ("drawn", "sent")]


def draw_once(noise, kind, job, turn, folder, journals):
    """What was drawn on account of a request that was answered is never drawn again, nor charged again."""
    undisturbed, _ = Cast(folder, None, job, seed=None).run()
    needed = noise.take()[0].total()
    assert needed
    cast = kind(folder, journals, job, seed=None)
    with cast:
        reports, steps = cast.run(everybody(turn))
    for report, other in zip(reports, undisturbed, strict=True):  # which rounds are idle may differ with the noise
        assert max(Counter(report.charged).values(), default=0) == max(Counter(other.charged).values(), default=0)
    assert all(report.centres == reports[0].centres is not None for report in reports)
    drawn, sent = noise.take()
    assert sent.total() == needed
    assert sent <= drawn  # what was drawn inside a kill was never seen
    assert cast.kills >= 2 * steps


@pytest.mark.parametrize(("job", "turn"), KILLED)
def test_processes_that_are_killed_at_every_step_go_on_and_the_session_ends_as_it_does_without(
    job, turn, folder, tmp_path, monkeypatch
):
    """Each role in a process of its own; a kill is SIGKILL."""
    with ForkedCast(folder, tmp_path, job, seed=1) as cast:
        end_as_undisturbed(cast, job, turn, folder)
    if job in DRAWING:
        with Noise(tmp_path / "noise", monkeypatch) as noise:
            draw_once(noise, ForkedCast, job, turn, folder, tmp_path)


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
