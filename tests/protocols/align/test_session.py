"""The alignment agrees with plain sets, whatever they are; parties that fail end it with a clear error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError, LocalProtocolError, TooFewPartiesError
from cloister.protocols.align.terms import CODEC, Mode, NormalForm, Terms
from cloister.runtime import Fault, FaultKind, run_local
from tests.protocols.align.sessions import AlignSession, merge_orders, name_ids
from tests.sessions import SESSION

some_ids = st.lists(st.integers(0, 12), unique=True, max_size=9).map(name_ids)


def expected(sets, mode):
    of_parties = [set(ids) for ids in sets]
    return set.intersection(*of_parties) if mode is Mode.INTERSECTION else set.union(*of_parties)


def check_result(sets, mode, run, parties):
    wanted = expected(sets, mode)
    assert run.result.count == len(wanted)
    assert run.result.sizes == tuple(len(ids) for ids in sets)
    order = merge_orders(sets, parties)
    assert sorted(order) == sorted(wanted)
    assert len({party.alignment.digest for party in parties}) == 1
    for ids, party in zip(sets, parties, strict=True):
        alignment = party.alignment
        assert alignment.mode is mode
        places = alignment.places
        assert {ids[row] for row in np.flatnonzero(places >= 0)} == set(ids) & wanted
        assert [order[place] for place in places if place >= 0] == [ids[r] for r in np.flatnonzero(places >= 0)]


@settings(max_examples=40, deadline=None)
@given(st.lists(some_ids, min_size=2, max_size=5), st.sampled_from(Mode), st.integers(1, 12), st.integers(0, 99))
def test_alignments_agree_with_plain_sets(sets, mode, part_elements, seed):
    run, parties = AlignSession(sets, mode=mode, part_elements=part_elements, seed=seed).run()
    check_result(sets, mode, run, parties)
    assert not run.rejected


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "sets",
    [
        [range(5), range(5, 10)],
        [range(5), []],
        [[], []],
        [[], [], []],
        [range(9), range(9)],
        [[1, 2], [2, 3], [3, 1]],
        [range(20), [3], range(2, 30, 3), [3, 5, 7], [3]],
    ],
)
def test_edges_agree_with_plain_sets(sets, mode):
    sets = [name_ids(numbers) for numbers in sets]
    run, parties = AlignSession(sets, mode=mode).run()
    check_result(sets, mode, run, parties)


def test_a_seed_gives_the_same_transcript_and_sessions_differ_in_digest_and_order():
    sets = [name_ids(range(20)), name_ids(range(5, 25))]
    runs = [AlignSession(sets, seed=seed).run() for seed in (1, 1, 2)]
    first, again, other = (run.transcript_sha256 for run, _ in runs)
    assert first == again != other
    assert runs[0][1][0].alignment.digest == runs[1][1][0].alignment.digest != runs[2][1][0].alignment.digest
    assert merge_orders(sets, runs[0][1]) != merge_orders(sets, runs[2][1])


SETS = [name_ids(range(6)), name_ids(range(3, 9)), name_ids([4, 5, 20])]
STEPS = 3 + 1 + 2 * 3 + 2 + 1  # seed, ring, two parts of three hops, two parts of places, the end


def test_steps_are_announced_as_they_come():
    told = []
    run, _ = AlignSession(SETS).run(on_progress=told.append)
    assert run.steps == STEPS
    assert {entry.steps for entry in told if "blinding" in entry.label} == {STEPS}
    assert any(entry.label == "blinding part 2 of 2, hop 3 of 3" for entry in told)


@pytest.mark.parametrize(
    "kind", [FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY, FaultKind.DELAY_REPLY, FaultKind.CRASH_AFTER]
)
@pytest.mark.parametrize("party", [1, 2, 3])
def test_a_party_lost_at_any_step_ends_the_session(kind, party):
    asked = {step for step in range(STEPS) if party in _asked_at(step)}
    for step in sorted(asked):
        # The seed's leader may be replaced, but an alignment needs every party, so that all end alike.
        with pytest.raises(TooFewPartiesError, match="must"):
            AlignSession(SETS).run(faults=[Fault(kind, party=party, step=step)])


@pytest.mark.parametrize("step", [1, 3, 4, 5, 6, 7, 9, 10, 11, 12])  # those in which party 1 is asked
def test_a_party_that_lost_its_memory_ends_the_session(step):
    """It has no keys any more; a second set of keys in one session would be another exponent for one list."""
    with pytest.raises(TooFewPartiesError):
        AlignSession(SETS).run(faults=[Fault(FaultKind.RESTART, party=1, step=step)])


@pytest.mark.parametrize(("step", "party"), [(4, 1), (4, 3), (5, 1), (5, 3), (7, 1), (7, 2), (8, 2), (8, 3)])
def test_a_sealed_part_that_was_damaged_ends_the_session(step, party):
    with pytest.raises(TooFewPartiesError, match="blinding"):
        AlignSession(SETS).run(faults=[Fault(FaultKind.CORRUPT_REPLY, party=party, step=step)])


def _asked_at(step):
    """Whom the coordinator asks in a step of an undisturbed session: from the views."""
    if not _ASKED:
        run, _ = AlignSession(SETS).run(record_views=True)
        _ASKED.update({p: {entry.step for entry in run.views[p]} for p in (1, 2, 3)})
    return [party for party, steps in _ASKED.items() if step in steps]


_ASKED: dict[int, set[int]] = {}


@pytest.mark.parametrize("kind", [FaultKind.DUPLICATE_REQUEST, FaultKind.DUPLICATE_REPLY, FaultKind.REORDER])
def test_repeated_frames_change_nothing(kind):
    reference, _ = AlignSession(SETS).run()
    for step in range(STEPS):
        run, parties = AlignSession(SETS).run(faults=[Fault(kind, party=2, step=step)])
        check_result(SETS, Mode.INTERSECTION, run, parties)
    assert reference.result.count == 2


def test_the_error_names_the_step_and_the_party():
    with pytest.raises(TooFewPartiesError, match=r"'blinding part 1 of 2, hop 2 of 3' party 3 did not answer"):
        AlignSession(SETS).run(faults=[Fault(FaultKind.DROP_REPLY, party=3, step=5)])


@pytest.mark.parametrize(
    "other",
    [
        {"mode": Mode.UNION},
        {"form": NormalForm(kind="integer")},
        {"form": NormalForm(trim=True)},
        {"form": NormalForm(ignore_case=True)},
        {"part_elements": 5},
    ],
)
def test_parties_that_agreed_on_something_else_refuse(other):
    session = AlignSession(SETS)
    options = {"mode": Mode.INTERSECTION, "part_elements": 4, "directory": session.terms.directory, **other}
    parties = [session.party(1), session.party(2, terms=Terms(**options)), session.party(3)]
    with pytest.raises(TooFewPartiesError):
        run_local(session.coordinator(), parties, codec=CODEC, session=SESSION)


def test_a_party_must_not_hold_an_id_twice_and_reads_nothing_before_the_end():
    session = AlignSession(SETS)
    with pytest.raises(LocalProtocolError, match="differ"):
        session.party(1, ids=[b"a", b"b", b"a"])
    with pytest.raises(LocalProtocolError, match="finished"):
        session.party(1).alignment  # noqa: B018


@pytest.mark.parametrize(
    "options",
    [{"directory": (b"one",)}, {"directory": (b"one", b"two"), "part_elements": 0}],
)
def test_terms_that_cannot_be_are_refused(options):
    with pytest.raises(ConfigError):
        Terms(mode=Mode.UNION, **options)
