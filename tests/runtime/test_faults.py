"""Whatever happens to messages and parties, a run ends with the right result or a typed error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import CloisterError, ConfigError, DivergedError, TooFewPartiesError
from cloister.runtime import Fault, FaultKind
from tests.protocols.multiparty_lloyd.oracle import plain_lloyd
from tests.protocols.multiparty_lloyd.sessions import make_session

START = ((-0.5,), (0.5,))
# Unique buckets: party l has 10^(l-1) records in each cluster, so a count with a digit 2 is a double count.
RECORDS = [np.repeat([[-0.25], [0.75]], 10**power, axis=0) for power in range(4)]

CORRUPTING = (FaultKind.CORRUPT_REQUEST, FaultKind.CORRUPT_REPLY)
LOSING = [kind for kind in FaultKind if kind not in CORRUPTING]


def plans(kinds):
    return st.lists(st.builds(Fault, st.sampled_from(kinds), st.integers(1, 4), st.integers(0, 8)), max_size=12)


def build(variant, **options):
    return make_session(
        variant, records=RECORDS, clusters=2, iterations=4, initialisation="given", start=START, **options
    )


@settings(max_examples=250, deadline=None)
@given(plans(LOSING), st.sampled_from(["naive", "masked-sum-count"]))
def test_every_run_ends_with_the_right_result_or_a_typed_error(plan, variant):
    session = build(variant)
    try:
        run, parties = session.run(faults=plan, record_views=True)
    except TooFewPartiesError:
        return
    expected = plain_lloyd(session.records, np.array(START), run.result.members)[-1]
    for number, party in enumerate(parties, start=1):
        restarted = any(f.kind is FaultKind.RESTART and f.party == number for f in plan)
        if party.finished and not restarted:
            assert np.allclose(party.centres, expected, rtol=0, atol=1e-12)
    if variant == "naive":
        assert np.allclose(run.result.centres, expected, rtol=0, atol=1e-12)
        counts = [
            np.frombuffer(entry.message.update.data, np.int64).reshape(2, 2)[:, 1]
            for entry in run.views[0]
            if hasattr(entry.message, "update")
        ]
        assert all(set(str(count)) <= set("01") for row in counts for count in row)


@settings(max_examples=100, deadline=None)
@given(plans(list(FaultKind)), st.sampled_from(["naive", "masked-sum-count", "masked-centroid"]))
def test_corrupted_frames_end_in_a_result_or_a_typed_error(plan, variant):
    """Integrity of what passes the checks is the transport's (TLS); a flipped bit must at least not crash anyone."""
    try:
        run, parties = build(variant).run(faults=plan)
    except CloisterError:
        return
    assert run.result.rounds == 4
    assert all((np.abs(party.centres) <= 1).all() for party in parties if party.finished)


@settings(max_examples=100, deadline=None)
@given(plans(list(FaultKind)))
def test_a_second_answer_never_differs_from_the_first(plan):
    """Two different masked vectors under one mask would cancel it: per round and party the coordinator sees one."""
    try:
        run, _ = build("masked-sum-count").run(faults=plan, record_views=True)
    except CloisterError:
        return
    seen = {}
    for entry in run.views[0]:
        if hasattr(entry.message, "masked"):
            data = entry.message.masked.data
            assert seen.setdefault((entry.step, entry.sender), data) == data


@settings(max_examples=60, deadline=None)
@given(plans(list(FaultKind)))
def test_faulty_runs_are_reproducible(plan):
    def outcome():
        try:
            run, _ = build("masked-sum-count").run(faults=plan)
        except CloisterError as error:
            return str(error)
        return run.transcript_sha256

    assert outcome() == outcome()


@pytest.mark.parametrize("kind", FaultKind)
@pytest.mark.parametrize("step", range(8))
def test_each_fault_alone_is_survived_by_the_others(kind, step):
    """One party's trouble never stops the rest; the party itself is out only where it must be.

    A bit that flips in a sum or a vector on its way is noticed: the session ends, as nobody knows whose it was.
    """
    session = build("masked-sum-count")
    try:
        run, parties = session.run(faults=[Fault(kind, 3, step)])
    except (DivergedError, TooFewPartiesError):
        assert kind in CORRUPTING
        return
    harmless = kind in (FaultKind.DUPLICATE_REPLY, FaultKind.DUPLICATE_REQUEST, FaultKind.REORDER)
    assert parties[0].finished
    assert all({1, 2, 4} <= set(members) for members in run.result.members)
    if harmless:
        assert all(members == (1, 2, 3, 4) for members in run.result.members)
    if kind is FaultKind.REORDER and step > 0 and step != 1:
        assert run.rejected or step == 2  # a frame of an earlier step was refused


def test_a_crashed_leader_is_replaced():
    run, parties = build("masked-sum-count").run(faults=[Fault(FaultKind.CRASH, 1, 1)])
    assert run.result.members == ((2, 3, 4),) * 4
    assert parties[1].finished
    assert not parties[0].finished


def test_a_party_that_lost_its_memory_cannot_answer_and_harms_nobody():
    run, parties = build("masked-sum-count").run(faults=[Fault(FaultKind.RESTART, 2, 5)])
    assert run.result.members == ((1, 2, 3, 4), (1, 2, 3, 4), (1, 3, 4), (1, 3, 4))
    assert any("a session opens with" in entry.reason for entry in run.rejected)
    assert parties[0].finished


def test_restart_needs_a_way_to_make_the_party_anew():
    session = build("naive")
    session.party = lambda number: type(session).party(session, number)
    with pytest.raises(ConfigError, match="restart="):
        session.run(faults=[Fault(FaultKind.RESTART, 1, 1)], restart=None)
