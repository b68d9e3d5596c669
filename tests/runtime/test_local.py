"""The local runtime: bytes are counted, transcripts reproducible, progress told, threads change nothing."""

import threading
import time

import numpy as np
import pytest

from cloister.aggregation.seed_agreement import ShareSeed
from cloister.errors import ConfigError, TooFewPartiesError
from cloister.runtime import NETWORKS, Fault, FaultKind, local
from tests.protocols.multiparty_lloyd.sessions import make_session, split
from tests.sessions import blobs

POINTS = blobs(200, 2, 3, seed=2)


def session(parties=3, **options):
    return make_session(records=split(POINTS, parties), **options)


def test_a_seed_gives_an_identical_transcript_and_another_seed_another():
    first, again, other = (session(seed=seed).run()[0].transcript_sha256 for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_change_no_byte(threads):
    run, parties = session().run(threads=threads)
    reference, others = session().run(threads=1)
    assert run.transcript_sha256 == reference.transcript_sha256
    assert run.traffic == reference.traffic
    assert np.array_equal(parties[0].centres, others[0].centres)


def test_threads_start_only_when_a_partys_work_is_long(monkeypatch):
    seen = set()

    class Watched:
        def __init__(self, party):
            self.party = party

        def handle(self, request):
            seen.add(threading.current_thread() is threading.main_thread())
            return self.party.handle(request)

    def run(threads=None):
        watched = session(2)
        watched.run([Watched(watched.party(number)) for number in watched.numbers], threads=threads)

    monkeypatch.setattr(local, "_THREADS_PAY_S", 1e9)
    run()
    assert seen == {True}
    monkeypatch.setattr(local, "_THREADS_PAY_S", 0.0)
    run()
    assert seen == {True, False}  # the first step is always in the main thread
    seen.clear()
    run(threads=2)
    assert seen == {False}


def test_one_partys_long_step_starts_no_threads(monkeypatch):
    """The leader seals the seed to all others, alone: that says nothing about the steps in which all work."""
    seen = set()

    class Leading:
        def __init__(self, party):
            self.party = party

        def handle(self, request):
            if isinstance(request, ShareSeed):
                time.sleep(0.3)
            seen.add(threading.current_thread() is threading.main_thread())
            return self.party.handle(request)

    monkeypatch.setattr(local, "_THREADS_PAY_S", 0.2)
    many = session(100, iterations=2)
    many.run([Leading(many.party(number)) for number in many.numbers], threads=None)
    assert seen == {True}


def test_progress_is_told_to_the_reply_for_a_few_parties_and_now_and_then_for_many():
    few, many = [], []
    session(3, iterations=1).run(on_progress=few.append)
    assert [len(entry.waiting_for) for entry in few if entry.label == "round 1 of 1"] == [3, 2, 1, 0]
    session(120, iterations=1).run(on_progress=many.append)
    waiting = [len(entry.waiting_for) for entry in many if entry.label == "round 1 of 1"]
    assert waiting[0] == 120
    assert waiting == sorted(waiting, reverse=True)
    assert 20 < len(waiting) <= 51


def test_bytes_and_messages_are_counted_per_party_and_direction():
    run, _ = session(iterations=4).run(record_views=True)
    steps = run.steps
    assert steps == 3 + 4 + 2
    for number, traffic in run.traffic.items():
        asked = len(run.views[number])
        assert traffic.messages_received == asked
        assert traffic.messages_sent == asked
        assert traffic.steps_missed == 0
        assert traffic.bytes_sent > 4 * 4 * 9
    assert sum(t.messages_sent for t in run.traffic.values()) == len(run.views[0])


def test_lost_messages_are_not_counted_as_carried():
    clean = session().run()[0].traffic[2]
    run, _ = session().run(faults=[Fault(FaultKind.DROP_REPLY, 2, 4)])
    assert run.traffic[2].messages_sent == clean.messages_sent - 1
    assert run.traffic[2].messages_received == clean.messages_received
    assert run.traffic[2].steps_missed == 1


@pytest.mark.parametrize("words", [1, 3, 16, 100])
def test_a_round_costs_its_words_and_at_most_64_bytes_each_way(words):
    """The mark: 4 k (d+1) + 64 and 16 for check words where the 32-bit ring fits, here for several k."""
    points = np.clip(np.tile(POINTS, (1, 1)), -1, 1)
    run, _ = make_session(records=split(points, 2), clusters=words, iterations=30).run()
    few, _ = make_session(records=split(points, 2), clusters=words, iterations=29).run()
    for number in (1, 2):
        sent = run.traffic[number].bytes_sent - few.traffic[number].bytes_sent
        received = run.traffic[number].bytes_received - few.traffic[number].bytes_received
        assert sent <= 4 * words * 3 + 16 + 64
        assert received <= 4 * words * 3 + 16 + 64


def test_progress_names_who_is_waited_for():
    seen = []
    session(iterations=2).run(on_progress=seen.append, names=["north", "harbour", "valley"])
    assert seen[0].waiting_for == ("north", "harbour", "valley")
    assert {entry.label for entry in seen} >= {"opening the session", "round 1 of 2", "round 2 of 2"}
    assert all(entry.step <= entry.steps for entry in seen)
    assert [entry.step for entry in seen] == sorted(entry.step for entry in seen)
    assert (seen[-1].step, seen[-1].waiting_for) == (seen[-1].steps, ())


def test_a_watcher_can_stop_a_run():
    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session().run(on_progress=stop)


def test_network_time_is_simulated_not_slept():
    lan, wan = (session().run(network=NETWORKS[name])[0] for name in ("thesis-LAN", "thesis-WAN"))
    assert lan.network_s == pytest.approx(lan.steps * 1e-3)
    assert wan.network_s == pytest.approx(wan.steps * 0.1)
    assert session().run()[0].network_s is None
    assert lan.transcript_sha256 == wan.transcript_sha256


def test_a_deadline_drops_who_is_too_late_and_refuses_the_late_answer():
    slow = NETWORKS["ccWAN50"]
    with pytest.raises(TooFewPartiesError):
        session().run(network=slow, step_deadline_s=0.01)
    run, _ = session(8, iterations=12).run(network=NETWORKS["regWAN100"], step_deadline_s=0.085, network_seed=4)
    missed = sum(t.steps_missed for t in run.traffic.values())
    assert missed > 0
    assert run.rejected
    assert any("must be for step" in entry.reason for entry in run.rejected)
    with pytest.raises(ConfigError, match="must come with a network model"):
        session().run(step_deadline_s=1.0)


def test_views_are_recorded_only_on_request():
    assert not any(session().run()[0].views.values())
