"""The serverless sum: exact for all who stay, whoever leaves and whenever, at the stated cost."""

import itertools

import numpy as np
import pytest

from cloister.aggregation.messages import RestoreMasks
from cloister.errors import ConfigError, TooFewPartiesError
from cloister.numeric import RING32, RING64
from cloister.protocols.serverless.terms import JointNoise, Terms
from cloister.runtime import Fault, FaultKind
from tests.protocols.serverless.sessions import SumSession, random_vectors

LOST = [
    FaultKind.DROP_REQUEST,
    FaultKind.DROP_REPLY,
    FaultKind.DELAY_REPLY,
    FaultKind.CRASH,
    FaultKind.CRASH_AFTER,
    FaultKind.RESTART,
]


def check_sums(session, run, parties):
    """Everyone who finished has the exact sum over the members, every round."""
    outcome = run.result
    for members in outcome.members:
        assert len(members) >= session.terms.members_min
    for recorder in parties:
        if not recorder.party.finished:
            continue
        for round_, members in enumerate(outcome.members, start=1):
            assert np.array_equal(recorder.contributor.totals[round_], session.sum_of(round_, members))
            assert recorder.contributor.members[round_] == len(members)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("parties", [2, 3, 4, 5, 6])
def test_everyone_gets_the_plain_sum(parties, bits):
    session = SumSession(random_vectors(parties, rounds=3, length=7, seed=parties, bits=bits), bits=bits)
    run, roles = session.run()
    everyone = tuple(range(1, parties + 1))
    assert run.result.members == (everyone,) * 3
    assert run.result.attempts == (1, 1, 1)
    assert run.steps == session.terms.steps
    assert all(role.party.finished and role.contributor.contributed == [1, 2, 3] for role in roles)
    assert len({role.contributor.seed for role in roles}) == 1
    check_sums(session, run, roles)


def test_sums_on_the_ends_of_the_ring():
    largest = 2**31 - 1
    vectors = np.array([[[largest, -largest, 5]], [[0, 0, -5]], [[0, 0, 0]]])
    session = SumSession(vectors)
    run, roles = session.run()
    check_sums(session, run, roles)


@pytest.mark.parametrize("kind", LOST)
@pytest.mark.parametrize("parties", [2, 3, 4])
def test_any_one_dropout_at_any_step_leaves_the_exact_sum_of_the_others(parties, kind):
    session = SumSession(random_vectors(parties, rounds=2, seed=1))
    dropped = 0
    for party, step in itertools.product(range(1, parties + 1), range(session.terms.steps)):
        try:
            run, roles = session.run(faults=[Fault(kind, party, step)])
        except TooFewPartiesError:
            assert parties == 2
            continue
        check_sums(session, run, roles)
        others = set(range(1, parties + 1)) - {party}
        assert all(others <= set(members) for members in run.result.members)  # nobody else is left out
        assert all(roles[other - 1].party.finished for other in others)
        was_in = [party in members for members in run.result.members]
        assert was_in == sorted(was_in, reverse=True)  # who is out stays out
        dropped += run.result.attempts != (1, 1)
    assert dropped or parties == 2


@pytest.mark.parametrize(("kind", "apart"), [(FaultKind.DELAY_REPLY, 3), (FaultKind.CRASH, 1)])
def test_any_two_dropouts_of_five_parties(kind, apart):
    """Late replies and crashes at any two steps at most ``apart`` from each other."""
    session = SumSession(random_vectors(5, rounds=1, seed=2))
    attempts, left_while_opening = set(), 0
    steps = range(4, session.terms.steps + 3)
    for one, other in itertools.combinations(range(1, 6), 2):
        for step, later in itertools.product(steps, steps):
            if abs(step - later) <= apart:
                run, roles = session.run(faults=[Fault(kind, one, step), Fault(kind, other, later)])
                check_sums(session, run, roles)
                assert {1, 2, 3, 4, 5} - {one, other} <= set(run.result.members[0])
                attempts.add(run.result.attempts)
                left_while_opening += any(isinstance(r, RestoreMasks) for role in roles for r, _ in role.log)
    assert attempts == {(1,), (2,), (3,)}
    assert left_while_opening


def test_too_few_left_is_an_error():
    session = SumSession(random_vectors(4, rounds=1), members_min=3)
    for step in range(session.terms.steps - 2):
        with pytest.raises(TooFewPartiesError, match=r"at least 3 (of 4|parties must stay)"):
            session.run(faults=[Fault(FaultKind.CRASH, 2, step), Fault(FaultKind.CRASH, 4, step)])


def test_a_party_that_left_is_still_sent_the_sums_it_missed():
    session = SumSession(random_vectors(3, rounds=3))
    run, roles = session.run(faults=[Fault(FaultKind.DROP_REPLY, 2, 4)])  # in its first round
    assert run.result.members == ((1, 3),) * 3
    assert roles[1].party.finished
    check_sums(session, run, roles)


def test_a_party_that_leaves_while_the_sum_is_opened_stays_in_the_sum():
    session = SumSession(random_vectors(5, rounds=2))
    opening = 4 + 1 + 5
    for kind in (FaultKind.CRASH, FaultKind.DELAY_REPLY):
        run, roles = session.run(faults=[Fault(kind, 3, opening), Fault(kind, 1, opening)])
        assert run.result.members == ((1, 2, 3, 4, 5), (2, 4, 5))
        assert run.result.attempts == (1, 1)
        check_sums(session, run, roles)


def test_late_and_repeated_frames_change_nothing():
    session = SumSession(random_vectors(3, rounds=2))
    for kind in (FaultKind.DUPLICATE_REQUEST, FaultKind.DUPLICATE_REPLY, FaultKind.REORDER):
        for party, step in itertools.product((1, 2, 3), range(session.terms.steps)):
            run, roles = session.run(faults=[Fault(kind, party, step)])
            assert run.result.attempts == (1, 1)
            assert run.result.members == ((1, 2, 3),) * 2
            check_sums(session, run, roles)


@pytest.mark.parametrize("kind", [FaultKind.CORRUPT_REQUEST, FaultKind.CORRUPT_REPLY])
def test_a_flipped_bit_never_gives_a_wrong_sum(kind):
    """Boxes are authenticated: damage drops a party (or all), it is never added up."""
    session = SumSession(random_vectors(3, rounds=2, length=40))
    for party, step in itertools.product((1, 2, 3), range(session.terms.steps)):
        try:
            run, roles = session.run(faults=[Fault(kind, party, step)])
        except TooFewPartiesError:
            continue
        check_sums(session, run, roles)


@pytest.mark.parametrize("scale", [None, 4.0])
@pytest.mark.parametrize("parties", [2, 5])
def test_messages_and_bytes_are_as_stated(parties, scale):
    """The cost formula of the package's docstring, with 80 bytes for the envelope and lengths of each message."""
    rounds, length, word = 3, 200, 8
    vectors = random_vectors(parties, rounds, length, bits=16)
    session = SumSession(vectors, bits=64, scale=scale)
    run, _ = session.run()
    openings = session.terms.plan_noise(parties).opening_bytes if scale else ()
    messages = 3 + rounds * (3 + len(openings)) + 2
    box = 32 + length * word
    drawn = sum(openings) + 16 * len(openings)
    shares = (parties - 1) * 49 + 80 if session.terms.sums.shares_masks else 0
    assert (shares > 0) is (parties == 5 and scale is None)
    up = rounds * (box + 48 + shares + drawn) + 80
    down = parties * 96 + rounds * (box + 48 * parties + 32 + (parties - 1) * drawn) + 80 * parties
    hand = session.terms.plan_noise(parties).dealt_bytes if scale else 0
    for party, traffic in run.traffic.items():
        assert traffic.messages_sent == traffic.messages_received == messages
        assert up < traffic.bytes_sent < up + 80 * (messages + 2 * parties)
        least = down + rounds * (box * (party > 1) + (hand if party == parties else 32 if scale else 0))
        assert least < traffic.bytes_received < least + (80 + 8 * parties) * messages + 80 * parties
    assert run.steps == 4 + rounds * (2 + len(openings) + parties) + 2


def test_terms_that_cannot_hold_are_refused():
    good = {"digest": b"", "directory": (b"a", b"b"), "rounds": 1, "length": 2, "ring": RING32, "members_min": 2}
    Terms(**good)
    for name, bad in [("members_min", 1), ("members_min", 3), ("rounds", 0), ("length", 0), ("length", 2**24)]:
        with pytest.raises(ConfigError, match="must"):
            Terms(**{**good, name: bad})
    for scale in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="positive and finite"):
            JointNoise(scale=scale)
    with pytest.raises(ConfigError, match="what is dealt and opened"):
        Terms(**{**good, "length": 30_000, "ring": RING64, "joint": JointNoise(scale=2.0**18)})
    with pytest.raises(ConfigError, match="must be joint"):
        Terms(**good).plan_noise(2)
