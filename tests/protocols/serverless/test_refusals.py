"""Whatever a relay changes, repeats or reorders is refused and changes nothing; no attempt is answered twice."""

import msgspec
import numpy as np
import pytest

from cloister.aggregation.messages import (
    Attempt,
    Conclude,
    MeetPeers,
    OpenTotal,
    PartyBox,
    RestoreMasks,
    Settle,
)
from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.errors import DivergedError, LocalProtocolError, RemoteProtocolError
from cloister.protocols.serverless.messages import AddVector, BeginRound, DrawNoise, Opening, Passed, TakeOpenings
from cloister.roles import Dropped
from cloister.runtime import Fault, FaultKind
from tests.protocols.serverless.sessions import Recorder, SumSession, random_vectors


def flipped(raw):
    """One bit changed at the start, in the middle, at the end; one byte less, one more; nothing at all."""
    for place in {0, len(raw) // 2, len(raw) - 1}:
        yield raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
    yield from (raw[:-1], raw + b"\0", b"")


def tampered(value, name=""):
    """Every way to change one field of a request that a party must notice."""
    if isinstance(value, bytes):
        if name in ("dealt", "digest"):  # the dealer makes it: only its length can be wrong
            yield from (value[:-1], value + b"\0", b"")
        elif value and name != "silent":  # who is silent is for the relay to say
            yield from flipped(value)
    elif isinstance(value, tuple):
        for place, item in enumerate(value):
            for changed in tampered(item, name):
                yield (*value[:place], changed, *value[place + 1 :])
        if value:
            yield (*value, value[-1])
            if name not in ("keys", "votes"):  # whom the relay introduces is its choice, and enough votes are enough
                yield value[:-1]
        if len(value) > 1:
            yield value[::-1]
    elif isinstance(value, int) and name in ("owner", "party", "round", "number"):
        yield from (value + 1, value + 100)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            if field == "attempt" and isinstance(value, DrawNoise | AddVector):
                continue  # which attempt is asked for is the relay's choice; that it is new and of this round is not
            for changed in tampered(getattr(value, field), field):
                yield msgspec.structs.replace(value, **{field: changed})


class Suspicious(Recorder):
    """A party that is shown every change of each request first, and all older requests after it."""

    refused = 0

    def handle(self, request):
        for changed in tampered(request):
            self.refuse(changed)
        reply = super().handle(request)
        if not self.party.finished:
            for old, _ in self.log:
                self.refuse(old)
        return reply

    def refuse(self, request):
        with pytest.raises(RemoteProtocolError):
            self.party.handle(request)
        Suspicious.refused += 1


@pytest.mark.parametrize("faults", [[], [Fault(FaultKind.DELAY_REPLY, 4, 7)], [Fault(FaultKind.CRASH_AFTER, 2, 8)]])
def test_every_change_and_every_repetition_is_refused_and_changes_nothing(faults):
    session = SumSession(random_vectors(4, rounds=2, length=5), recorder_class=Suspicious)
    before = Suspicious.refused
    run, roles = session.run(faults=faults)
    assert Suspicious.refused > before + 500
    for role in roles:
        if role.party.finished:
            for round_, members in enumerate(run.result.members, start=1):
                assert np.array_equal(role.contributor.totals[round_], session.sum_of(round_, members))


def test_every_change_of_openings_and_dealt_randomness_is_refused():
    vectors = random_vectors(3, rounds=1, length=2, bits=16)
    clean, _ = SumSession(vectors, bits=64, scale=2.0).run()
    session = SumSession(vectors, bits=64, scale=2.0, recorder_class=Suspicious)
    run, roles = session.run()
    assert run.result == clean.result
    noise = [role.contributor.totals[1] - session.sum_of(1, (1, 2, 3)) for role in roles]
    assert all(np.array_equal(one, noise[0]) for one in noise)
    assert (np.abs(noise[0]) < 200).all()


# --- requests out of turn ---------------------------------------------------------------------------------------------


def drive(session, until):
    """Run a session by hand until a party would be sent a request of this kind; returns the parties and that step."""
    roles = {number + 1: session.party(number + 1) for number in range(len(session.vectors))}
    generator = session.relay()
    ask = next(generator)
    while not any(isinstance(request, until) for request in ask.requests.values()):
        ask = generator.send({number: roles[number].handle(request) for number, request in ask.requests.items()})
    return roles, ask, generator


EVERYONE = b"\x07"


@pytest.mark.parametrize(
    ("until", "requests"),
    [
        (MeetPeers, [BeginRound(1, ()), Settle(()), Conclude((), ()), MeetPeers(()), OpenSession(b"the same job")]),
        (
            BeginRound,
            [
                BeginRound(2, ()),
                BeginRound(3, ()),
                Settle(()),
                Conclude((), ()),
                AddVector(Attempt(1, 1, EVERYONE), None),
                OpenTotal(Attempt(1, 1, EVERYONE), bytes(32)),
                MeetPeers(()),
            ],
        ),
        (
            AddVector,
            [
                BeginRound(1, ()),
                AddVector(Attempt(2, 1, EVERYONE), None),
                AddVector(Attempt(1, 1, b"\x01"), None),  # alone
                AddVector(Attempt(1, 1, b"\x06"), None),  # without us
                AddVector(Attempt(1, 1, b"\x0f"), None),  # with a stranger
                AddVector(Attempt(1, 1, b"\x07\x00"), None),
                AddVector(Attempt(1, 1, EVERYONE), bytes(28)),  # a sum so far for the first
                AddVector(Attempt(1, 1, EVERYONE), None, (PartyBox(2, bytes(16)),)),
                DrawNoise(Attempt(1, 1, EVERYONE), bytes(32)),
                TakeOpenings(Attempt(1, 1, EVERYONE), ()),
                OpenTotal(Attempt(1, 1, EVERYONE), bytes(32)),
                RestoreMasks(Attempt(1, 1, EVERYONE), b"\x02", (), ()),
            ],
        ),
        (
            OpenTotal,
            [
                AddVector(Attempt(1, 1, EVERYONE), None),
                AddVector(Attempt(1, 1, b"\x03"), None),
                OpenTotal(Attempt(1, 2, EVERYONE), bytes(32)),
                OpenTotal(Attempt(1, 1, b"\x03"), bytes(32)),
                RestoreMasks(Attempt(1, 1, EVERYONE), b"\x02", (), ()),
            ],
        ),
    ],
)
def test_requests_out_of_turn_are_refused(until, requests):
    roles, ask, _ = drive(SumSession(random_vectors(3, rounds=2)), until)
    for request in requests:
        with pytest.raises(RemoteProtocolError):
            roles[1].handle(request)
    roles[1].handle(ask.requests[1])


def test_once_a_sum_is_opened_no_other_attempt_of_the_round_is_answered():
    roles, ask, _ = drive(SumSession(random_vectors(4, rounds=1)), OpenTotal)
    roles[1].handle(ask.requests[1])
    for members in (b"\x0f", b"\x07", b"\x0d"):
        with pytest.raises(RemoteProtocolError, match="before one of its round was opened"):
            roles[1].handle(AddVector(Attempt(1, 2, members), None))
    with pytest.raises(RemoteProtocolError, match="out of turn"):
        roles[1].handle(ask.requests[1])


def test_an_unfinished_draw_cannot_be_mixed_with_an_older_attempt():
    """Joint noise: after the next attempt has begun, the last one can be neither opened nor added to."""
    roles, ask, _ = drive(SumSession(random_vectors(3, 1, bits=16), bits=64, scale=1.0), OpenTotal)
    opened = ask.requests[1].attempt
    with pytest.raises(RemoteProtocolError, match="out of turn"):
        roles[1].handle(AddVector(opened, None))
    roles[1].handle(DrawNoise(Attempt(1, 2, EVERYONE), bytes(32)))
    with pytest.raises(RemoteProtocolError, match="out of turn"):
        roles[1].handle(ask.requests[1])
    with pytest.raises(RemoteProtocolError, match="the last openings"):
        roles[1].handle(AddVector(Attempt(1, 2, EVERYONE), None))


def test_a_sum_of_another_attempt_than_we_opened_is_refused():
    session = SumSession(random_vectors(3, rounds=2))
    roles, ask, generator = drive(session, OpenTotal)
    ask = generator.send({number: roles[number].handle(request) for number, request in ask.requests.items()})
    begin = ask.requests[1]
    other = msgspec.structs.replace(begin.news[0], attempt=Attempt(1, 2, EVERYONE))
    with pytest.raises(RemoteProtocolError, match="the one that we opened"):
        roles[1].handle(BeginRound(2, (other,)))
    assert isinstance(roles[1].handle(begin), Ready)


def test_a_result_that_too_few_have_voted_for_is_none():
    session = SumSession(random_vectors(4, rounds=1))
    roles, ask, generator = drive(session, Settle)
    ask = generator.send({number: roles[number].handle(request) for number, request in ask.requests.items()})
    conclude = ask.requests[1]
    few = msgspec.structs.replace(conclude, votes=conclude.votes[:2])
    with pytest.raises(RemoteProtocolError, match="the votes of at least 3 parties; got 2"):
        roles[1].handle(few)
    forged = tuple(PartyBox(n, roles[1].masks.seal(bytes(64), "x", Attempt(1, 1, b""), sender=1)) for n in (1, 2, 3))
    with pytest.raises(RemoteProtocolError):
        roles[1].handle(msgspec.structs.replace(conclude, votes=forged))
    assert not roles[1].party.finished
    roles[1].handle(conclude)
    assert roles[1].party.finished


def test_a_result_that_others_have_not_found_is_none():
    session = SumSession(random_vectors(3, rounds=1))
    roles, ask, generator = drive(session, Settle)
    votes = {number: roles[number].handle(request) for number, request in ask.requests.items()}
    conclude = generator.send(votes).requests[1]
    roles[1].contributor.totals[1] = roles[1].contributor.totals[1] + 1  # a bit that flipped in memory
    with pytest.raises(DivergedError, match="ours is that of 0 of 3"):
        roles[1].handle(conclude)


# --- what the relay refuses -------------------------------------------------------------------------------------------

SHARES = (PartyBox(2, bytes(49)), PartyBox(3, bytes(49)))


@pytest.mark.parametrize(
    ("until", "replies"),
    [
        (MeetPeers, [Passed(b"")]),
        (BeginRound, [Passed(b"")]),
        (AddVector, [Ready(), Passed(bytes(43), SHARES), Passed(bytes(44)), Opening(bytes(44))]),
        (OpenTotal, [Ready(), Passed(bytes(48))]),
    ],
)
def test_replies_of_a_wrong_kind_or_length_do_not_count(until, replies):
    _, ask, _ = drive(SumSession(random_vectors(3)), until)
    for reply in replies:
        with pytest.raises(RemoteProtocolError, match="party 1 must"):
            ask.check(1, reply)


def test_who_never_answers_properly_is_left_out():
    session = SumSession(random_vectors(3, rounds=1))
    roles, ask, generator = drive(session, AddVector)
    ask = generator.send({1: Dropped()})
    assert ask.requests[2].attempt == Attempt(1, 2, b"\x06")
    assert roles[2].handle(ask.requests[2])


def test_a_contribution_of_another_length_is_our_own_mistake():
    roles, ask, _ = drive(SumSession(random_vectors(3)), BeginRound)
    roles[1].contributor.vectors = np.zeros((2, 9), dtype=np.int64)
    with pytest.raises(LocalProtocolError, match="a contribution must be 3 integers"):
        roles[1].handle(ask.requests[1])
    with pytest.raises(RemoteProtocolError):  # there is no vector to add
        roles[1].handle(AddVector(Attempt(1, 1, EVERYONE), None))


def test_who_is_not_the_first_needs_the_sum_so_far_and_who_is_needs_none():
    roles, ask, generator = drive(SumSession(random_vectors(3, rounds=2)), AddVector)
    first = ask.requests[1]
    passed = roles[1].handle(first)
    second = generator.send({1: passed}).requests[2]
    for wrong in (None, b"", second.partial[1:]):
        with pytest.raises(RemoteProtocolError, match=r"must come to every member but the first|a box must"):
            roles[2].handle(msgspec.structs.replace(second, partial=wrong))
    with pytest.raises(RemoteProtocolError, match="must come to every member but the first"):
        SumSession.party(SumSession(random_vectors(3, rounds=2)), 1).party._read_partial(
            second.partial, second.attempt, (1, 2, 3), roles[1].masks
        )
    roles[2].handle(second)


def test_joint_noise_is_drawn_for_the_round_begun_and_by_who_has_begun_to():
    session = SumSession(random_vectors(3, rounds=2, length=2, bits=16), bits=64, scale=2.0)
    roles, ask, _ = drive(session, DrawNoise)
    true = ask.requests[1]
    later = msgspec.structs.replace(true, attempt=Attempt(2, 1, EVERYONE))
    for wrong in (later, TakeOpenings(true.attempt, ()), AddVector(true.attempt, None)):
        with pytest.raises(RemoteProtocolError):
            roles[1].handle(wrong)
    assert roles[1].masks._entered is None
    roles[1].handle(true)


def test_a_vote_ends_the_rounds_also_where_more_are_left():
    """A relay that has forged the sums of all rounds could otherwise go on to the true ones."""
    session = SumSession(random_vectors(3, rounds=1))
    roles, ask, generator = drive(session, Settle)
    roles[1].handle(ask.requests[1])
    roles[1].party._round = 0  # as if it had been away
    with pytest.raises(RemoteProtocolError, match="the round must be from 1 to 1"):
        roles[1].handle(BeginRound(1, ()))
    replies = {number: roles[number].handle(ask.requests[number]) for number in (2, 3)}
    last = generator.send({1: Dropped(), **replies})
    assert isinstance(last.requests[2], Conclude)
    roles[2].handle(last.requests[2])
    for request in (last.requests[2], Settle(()), BeginRound(1, ())):
        with pytest.raises(RemoteProtocolError, match="a finished session takes no more requests"):
            roles[2].handle(request)


def test_openings_of_a_wrong_kind_or_length_do_not_count():
    session = SumSession(random_vectors(3, rounds=1, length=2, bits=16), bits=64, scale=2.0)
    _, ask, _ = drive(session, DrawNoise)
    size = session.terms.plan_noise(3).opening_bytes[0] + 16
    ask.check(1, Opening(bytes(size)))
    for wrong in (Opening(bytes(size - 1)), Opening(b""), Ready()):
        with pytest.raises(RemoteProtocolError, match="party 1 must"):
            ask.check(1, wrong)
