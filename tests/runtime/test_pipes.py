"""Every role in a process: drop-outs, kills, restarts, deadlines and bounds; and no process is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from cloister.errors import (
    AbsentError,
    BudgetError,
    ConfigError,
    DataError,
    DivergedError,
    JournalError,
    LocalProtocolError,
    RemoteProtocolError,
    TooFewPartiesError,
)
from cloister.runtime import Fault, FaultKind
from cloister.runtime.pipe_messages import Failed, Frame, decode, encode, read_length
from cloister.runtime.pipes import Processes
from tests.runtime.toy_process import ToyTask

MODULE = "tests.runtime.toy_process"
NO_TROUBLE = [{}, {}, {}, {}]


def make_tasks(**trouble):
    """The coordinator's task and the parties'; ``trouble`` is party 2's."""
    tasks = [ToyTask(number=number, **(trouble if number == 2 else {})) for number in range(4)]
    return [msgspec.msgpack.encode(task) for task in tasks]


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def processes():
    with Processes([{}, {"TOY": "one"}, {"TOY": "two"}, {}], module=MODULE, limit_bytes=2**20) as opened:
        yield opened
        pids = list(opened.pids.values())
    assert not any(map(is_running, pids))


def read(found):
    return {party: msgspec.msgpack.decode(body) for party, body in found.items()}


def check_whole(processes):
    """After whatever happened, the same processes serve an ordinary session."""
    run = processes.run(make_tasks())
    assert sorted(run.found) == [1, 2, 3]
    assert run.failures == {}
    assert run.steps == 3
    assert not any(run.missed.values())


def test_every_role_has_a_process_with_its_own_environment_and_they_serve_session_after_session(processes):
    seen = []
    for _ in range(2):
        run = processes.run(make_tasks())
        found = read(run.found)
        assert all(one[0] == {"rounds": 3, "complete": True} for one in found.values())
        assert [one[1] for one in found.values()] == [[0, 1, 2]] * 3
        assert [found[party][2] for party in (1, 2, 3)] == ["one", "two", os.environ.get("TOY", "")]
        assert {party: found[party][3] for party in found} == {party: processes.pids[party] for party in found}
        seen.append(dict(processes.pids))
    assert seen[0] == seen[1]
    assert len({os.getpid(), *seen[0].values()}) == 5


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.CRASH_AFTER, FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY])
@pytest.mark.parametrize("step", [0, 2])
def test_a_party_that_is_killed_or_not_heard_is_a_drop_out(processes, kind, step):
    run = processes.run(make_tasks(), faults=[Fault(kind, 2, step)])
    assert run.steps == 3
    killed = kind in (FaultKind.CRASH, FaultKind.CRASH_AFTER)
    assert run.missed == {1: 0, 2: 3 - step if killed or kind is FaultKind.DROP_REQUEST else 1, 3: 0}
    found = read(run.found)
    assert sorted(found) == ([1, 3] if killed else [1, 2, 3])
    assert found[1][0] == {"rounds": 3, "complete": False}
    assert isinstance(run.failures.get(2), TooFewPartiesError) is killed
    check_whole(processes)


@pytest.mark.parametrize("step", [0, 2])
def test_a_killed_coordinator_ends_everybody_with_a_typed_error(processes, step):
    before = dict(processes.pids)
    run = processes.run(make_tasks(), faults=[Fault(FaultKind.CRASH, 0, step)])
    assert run.found == {}
    assert sorted(run.failures) == [0, 1, 2, 3]
    assert all(isinstance(error, TooFewPartiesError) for error in run.failures.values())
    assert "the coordinator must stay to the end" in str(run.failures[3])
    assert {party: pid for party, pid in processes.pids.items() if party} == {p: before[p] for p in (1, 2, 3)}
    check_whole(processes)


@pytest.mark.parametrize("step", [0, 2])
def test_a_party_that_is_started_anew_without_memory_harms_nobody(processes, step):
    before = processes.pids[2]
    run = processes.run(make_tasks(), faults=[Fault(FaultKind.RESTART, 2, step)])
    assert processes.pids[2] != before
    assert not is_running(before)
    found = read(run.found)
    assert sorted(found) == [1, 2, 3]
    assert found[1][1] == found[3][1] == [0, 1, 2]
    assert found[2][1] == ([0, 1, 2] if step == 0 else [])
    assert run.missed[2] == (0 if step == 0 else 3 - step)
    assert all(one.reason == "" for one in run.rejected)  # why a party refuses stands in its own log
    check_whole(processes)


def test_too_few_parties_are_the_coordinators_error(processes):
    faults = [Fault(FaultKind.CRASH, party, 1) for party in (2, 3)]
    run = processes.run(make_tasks(), faults=faults)
    kinds = (TooFewPartiesError, TooFewPartiesError, AbsentError, AbsentError)
    assert {number: type(error) for number, error in run.failures.items()} == dict(enumerate(kinds))
    assert "at least 2 of 3 parties must take part; 1 did" in str(run.failures[0])
    check_whole(processes)


def test_who_has_not_answered_by_the_deadline_is_silent_and_its_late_reply_is_refused(processes):
    """Party 2 answers the first request when the second comes, and then that one, too."""
    run = processes.run(make_tasks(trouble="is late", at=0), deadline_s=1.5)
    assert run.missed == {1: 0, 2: 1, 3: 0}
    assert [one.reason for one in run.rejected] == ["an answer must be for step 1; got step 0."]
    assert sorted(run.found) == [1, 2, 3]
    check_whole(processes)


def test_a_party_that_never_answers_again_is_killed_at_the_end(processes):
    stuck = processes.pids[2]
    run = processes.run(make_tasks(trouble="sleeps", at=1), deadline_s=1.0, start_deadline_s=3)
    assert run.missed == {1: 0, 2: 2, 3: 0}
    assert sorted(run.found) == [1, 3]
    assert not is_running(stuck)
    check_whole(processes)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
def test_a_process_that_is_stopped_does_not_hold_the_others_up(processes):
    os.kill(processes.pids[3], signal.SIGSTOP)
    with pytest.raises(AbsentError, match="'party 3' is not"):
        processes.run(make_tasks(), start_deadline_s=1)
    check_whole(processes)


@pytest.mark.parametrize("trouble", ["announces too much", "speaks gibberish", "is long", "dies"])
def test_a_process_that_breaks_the_pipe_is_killed_and_silent(processes, trouble):
    """Frames are bounded: nothing is read of a message that is announced longer than allowed."""
    broken = processes.pids[2]
    run = processes.run(make_tasks(trouble=trouble, at=1), deadline_s=20)
    assert run.missed == {1: 0, 2: 2, 3: 0}
    assert sorted(run.found) == [1, 3]
    assert str(run.failures[2]) == str(AbsentError("party 2"))
    if trouble != "is long":  # that is refused on the party's own side
        assert not is_running(broken)
    check_whole(processes)


def test_what_a_role_prints_does_not_get_between_messages(processes):
    run = processes.run(make_tasks(trouble="prints", at=1))
    assert sorted(run.found) == [1, 2, 3]
    assert run.failures == {}


def test_a_partys_own_error_is_its_own(processes):
    run = processes.run(make_tasks(trouble="has no budget", at=1))
    assert {number: repr(error) for number, error in run.failures.items()} == {2: repr(AbsentError("party 2"))}
    assert run.missed[2] == 2
    check_whole(processes)


def test_a_party_that_cannot_take_its_seat_ends_the_session_before_its_first_step(processes):
    with pytest.raises(AbsentError) as caught:
        processes.run(make_tasks(trouble="has a bad table"))
    assert (str(caught.value), caught.value.why) == (str(AbsentError("party 2")), None)
    check_whole(processes)


def test_tasks_and_faults_that_cannot_be_are_refused(processes):
    with pytest.raises(ConfigError, match="one task for each of 4 roles; got 3"):
        processes.run(make_tasks()[:3])
    for fault in (Fault(FaultKind.REORDER, 1, 0), Fault(FaultKind.DROP_REPLY, 0, 0)):
        with pytest.raises(ConfigError, match="killed or started anew, and parties not heard"):
            processes.run(make_tasks(), faults=[fault])


def wait_until_gone(pids, deadline_s=15.0):
    until = time.monotonic() + deadline_s
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_running, pids))


def test_no_process_outlives_its_hub():
    """Also where the hub is killed and can tell nobody."""
    code = f"""
import sys, time
sys.path.insert(0, {str(Path.cwd())!r})
from cloister.runtime.pipes import Processes
from tests.runtime.test_pipes import make_tasks, MODULE
processes = Processes([{{}}] * 4, module=MODULE)
processes.run(make_tasks())
print(*processes.pids.values(), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as hub:
        pids = list(map(int, hub.stdout.readline().split()))
        assert len(pids) == 4
        assert all(map(is_running, pids))
        hub.kill()
    assert wait_until_gone(pids)


def test_no_process_is_left_where_a_session_is_given_up():
    pids = []

    def give_up():
        with Processes(NO_TROUBLE, module=MODULE) as opened:
            opened.run(make_tasks())
            pids.extend(opened.pids.values())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert len(pids) == 4
    assert not any(map(is_running, pids))


# --- messages -----------------------------------------------------------------------------------------------------


def test_messages_come_back_as_they_were_and_are_bounded():
    raw = encode(Frame(3, b"frame"))
    assert read_length(raw[:4]) == len(raw) - 4
    assert decode(raw[4:]) == Frame(3, b"frame")
    with pytest.raises(LocalProtocolError, match="at most 100 bytes; it has"):
        encode(Frame(3, bytes(100)), limit_bytes=100)
    with pytest.raises(RemoteProtocolError, match="at most 100 bytes; 101 were announced"):
        read_length((101).to_bytes(4, "little"), limit_bytes=100)
    for wrong in (b"", b"\xc1", raw[5:], raw[4:] + b"\0", msgspec.msgpack.encode([99, 1])):
        with pytest.raises(RemoteProtocolError, match="must be one of its types"):
            decode(wrong)


def test_errors_between_roles_travel_by_class_and_text_and_nothing_of_any_other_does():
    for error in (DivergedError("other questions"), TooFewPartiesError("too few")):
        back = Failed.of(error).to_error("party 2")
        assert (type(back), str(back)) == (type(error), str(error))
    bad = DataError("3 cells")
    own = (bad, BudgetError("spent 2"), JournalError("a table"), AbsentError("b", bad))
    assert {encode(Failed.of(error)) for error in own} == {encode(Failed())}
    for kind in ("", "SystemExit", "os", "__name__", "DataError", "RemoteProtocolErrors"):
        assert repr(Failed(kind, "text").to_error("party 2")) == repr(AbsentError("party 2"))
