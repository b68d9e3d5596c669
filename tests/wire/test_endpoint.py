"""Session, step, sender and replay rules at both ends, and fuzzing of real sessions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.errors import DivergedError, LocalProtocolError, RemoteProtocolError
from cloister.protocols.multiparty_lloyd.messages import CODEC
from cloister.roles import Ask
from cloister.wire import CoordinatorEndpoint, PartyEndpoint
from tests.protocols.multiparty_lloyd.sessions import make_session, split
from tests.sessions import SESSION, blobs

VARIANTS = ["naive", "masked-sum-count", "masked-centroid"]


def open_ends(variant="masked-sum-count"):
    session = make_session(variant, records=split(blobs(60, 2, 3, 1), 3), iterations=3)
    ends = {n: PartyEndpoint(session.party(n), number=n, codec=CODEC, session=SESSION) for n in (1, 2, 3)}
    return CoordinatorEndpoint(session.coordinator(), codec=CODEC, session=SESSION), ends


def play(coordinator, ends, steps=None):
    """Run steps faithfully; returns every frame that was exchanged."""
    frames = []
    while not coordinator.finished and steps != 0:
        for number, request in coordinator.frames().items():
            reply = ends[number].receive(request)
            coordinator.receive(number, reply)
            frames += [request, reply]
        coordinator.close_step()
        steps = None if steps is None else steps - 1
    return frames


def test_a_repeated_request_gets_the_first_answer_byte_for_byte():
    coordinator, ends = open_ends()
    play(coordinator, ends, steps=3)
    request = coordinator.frames()[1]
    assert ends[1].receive(request) == ends[1].receive(request)


def test_each_party_gets_the_bytes_of_its_own_request_and_equal_ones_share_them():
    one, other = OpenSession(b"one"), OpenSession(b"other")
    requests = {1: one, 2: OpenSession(b"one"), 3: other, 5: one, 9: Ready()}

    def asking():
        yield Ask(label="", requests=requests, check=lambda party, reply: None, steps=1)

    frames = CoordinatorEndpoint(asking(), codec=CODEC, session=SESSION).frames()
    assert frames == {p: CODEC.encode(r, session=SESSION, step=0, sender=0) for p, r in requests.items()}
    assert frames[1] is frames[2]


def test_replays_and_second_requests_for_a_step_are_refused():
    coordinator, ends = open_ends()
    old = [coordinator.frames()[1]]
    play(coordinator, ends, steps=3)
    request = coordinator.frames()[1]
    answer = ends[1].receive(request)
    with pytest.raises(RemoteProtocolError, match="step must be greater"):
        ends[1].receive(old[0])
    other = CODEC.encode(coordinator.ask.requests[2], session=SESSION, step=coordinator.step, sender=0)
    assert other == request  # the same question: the same answer again
    changed = CODEC.encode(
        type(coordinator.ask.requests[1])(2, (), None), session=SESSION, step=coordinator.step, sender=0
    )
    with pytest.raises(RemoteProtocolError, match="step must be greater"):
        ends[1].receive(changed)
    assert ends[1].receive(request) == answer


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_round_is_answered_once_even_in_a_later_step(variant):
    """A second answer to one round would reuse its mask, or hand out sums for centres nobody agreed on."""
    coordinator, ends = open_ends(variant)
    play(coordinator, ends, steps=3 if variant != "naive" else 1)
    request = coordinator.ask.requests[1]
    ends[1].receive(coordinator.frames()[1])
    again = CODEC.encode(request, session=SESSION, step=coordinator.step + 1, sender=0)
    with pytest.raises(RemoteProtocolError, match=r"round (must be from 2|after 1)"):
        ends[1].receive(again)


def test_wrong_session_wrong_sender_wrong_step_and_second_answers_are_refused():
    coordinator, ends = open_ends()
    requests = coordinator.frames()
    replies = {number: ends[number].receive(request) for number, request in requests.items()}
    message = CODEC.reply(CODEC.open(replies[1], session=SESSION, sender=1).body)
    with pytest.raises(RemoteProtocolError, match="session"):
        coordinator.receive(1, CODEC.encode(message, session=bytes(16), step=0, sender=1))
    with pytest.raises(RemoteProtocolError, match="sender"):
        coordinator.receive(2, replies[1])
    with pytest.raises(RemoteProtocolError, match="step 0; got step 1"):
        coordinator.receive(1, CODEC.encode(message, session=SESSION, step=1, sender=1))
    with pytest.raises(RemoteProtocolError, match="must be asked"):
        coordinator.receive(9, CODEC.encode(message, session=SESSION, step=0, sender=9))
    coordinator.receive(1, replies[1])
    coordinator.receive(1, replies[1])  # a duplicate is ignored
    other = CODEC.reply(CODEC.open(replies[2], session=SESSION, sender=2).body)
    with pytest.raises(RemoteProtocolError, match="second, different"):
        coordinator.receive(1, CODEC.encode(other, session=SESSION, step=0, sender=1))
    assert coordinator.waiting_for() == (2, 3)
    with pytest.raises(RemoteProtocolError, match="sender"):
        ends[1].receive(CODEC.encode(coordinator.ask.requests[1], session=SESSION, step=1, sender=2))


def test_finished_sessions_have_a_result_and_ask_nothing():
    coordinator, ends = open_ends()
    with pytest.raises(LocalProtocolError, match="must be finished"):
        _ = coordinator.result
    play(coordinator, ends)
    assert coordinator.result.rounds == 3
    with pytest.raises(LocalProtocolError, match="must be open to have a step"):
        _ = coordinator.ask


def reference_frames(variant):
    coordinator, ends = open_ends(variant)
    return play(coordinator, ends)


REFERENCE = {}


@st.composite
def mutations(draw):
    """Cut, extend, splice and flip; the place is relative so that it fits any frame."""
    return [
        (
            draw(st.sampled_from(["flip", "cut", "insert", "set", "double"])),
            draw(st.floats(0, 1)),
            draw(st.binary(max_size=6)),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]


def mutate(frame, changes):
    for kind, place, extra in changes:
        at = int(place * (len(frame) - 1)) if frame else 0
        if kind == "flip" and frame:
            frame = frame[:at] + bytes([frame[at] ^ (1 << (len(extra) % 8))]) + frame[at + 1 :]
        elif kind == "cut":
            frame = frame[:at]
        elif kind == "insert":
            frame = frame[:at] + extra + frame[at:]
        elif kind == "set":
            frame = frame[:at] + extra + frame[at + len(extra) :]
        elif kind == "double":
            frame = frame + frame[at:]
    return frame


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(VARIANTS), st.integers(0, 6), st.integers(1, 3), mutations(), st.booleans())
def test_hostile_frames_are_accepted_or_refused_and_a_refusal_changes_nothing(variant, step, number, changes, upward):
    """Mutate one frame of a real session. If it is refused, the session goes on to the very same bytes as without
    it."""
    if variant not in REFERENCE:
        REFERENCE[variant] = reference_frames(variant)
    coordinator, ends = open_ends(variant)
    frames = play(coordinator, ends, steps=step)
    if coordinator.finished or number not in coordinator.frames():
        return
    try:
        if upward:
            hostile = mutate(ends[number].receive(coordinator.frames()[number]), changes)
            coordinator.receive(number, hostile)
        else:
            ends[number].receive(mutate(coordinator.frames()[number], changes))
    except (RemoteProtocolError, DivergedError):
        assert frames + play(coordinator, ends) == REFERENCE[variant]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_frames_of_one_role_step_or_variant_thrown_at_another_change_nothing(data):
    coordinator, ends = open_ends()
    if "masked-sum-count" not in REFERENCE:
        REFERENCE["masked-sum-count"] = reference_frames("masked-sum-count")
    if "naive" not in REFERENCE:
        REFERENCE["naive"] = reference_frames("naive")
    frames = play(coordinator, ends, steps=data.draw(st.integers(0, 5)))
    expected = coordinator.frames()
    number = data.draw(st.sampled_from(sorted(expected)))
    stray = data.draw(st.sampled_from(REFERENCE["masked-sum-count"] + REFERENCE["naive"]))
    if stray == expected[number]:
        return
    try:
        if data.draw(st.booleans()):
            ends[number].receive(stray)
        else:
            coordinator.receive(number, stray)
    except RemoteProtocolError:
        assert frames + play(coordinator, ends) == REFERENCE["masked-sum-count"]


def test_a_party_that_answers_nonsense_is_dropped_and_the_rest_go_on():
    coordinator, ends = open_ends()
    play(coordinator, ends, steps=3)
    requests = coordinator.frames()
    for number in (1, 2):
        coordinator.receive(number, ends[number].receive(requests[number]))
    with pytest.raises(RemoteProtocolError):
        coordinator.receive(3, b"nonsense")
    assert coordinator.waiting_for() == (3,)
    coordinator.close_step()
    play(coordinator, ends)
    assert coordinator.result.members[0] == (1, 2)
    assert np.array_equal(ends[1]._party.centres, ends[3]._party.centres)
