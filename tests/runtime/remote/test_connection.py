"""The state machine of a connection: every message in every state, numbers of requests, lengths."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.runtime.remote import messages
from cloister.runtime.remote.connection import COORDINATOR_SAYS, PARTY_SAYS, Connection, State
from cloister.runtime.remote.messages import Ending, Facts, Refusal, pack

RUN, KEY, SIGNATURE = bytes(16), bytes(32), bytes(64)
EXAMPLES = {
    messages.Challenge: messages.Challenge(1, 0, bytes(32)),
    messages.Hello: messages.Hello(1, 0, "0.1.0", KEY, "north", KEY, SIGNATURE, bytes(32), b"", SIGNATURE),
    messages.Refused: messages.Refused(Refusal.JOB),
    messages.Rejected: messages.Rejected(Refusal.VERSION),
    messages.Welcome: messages.Welcome("0.1.0", RUN, KEY, SIGNATURE, SIGNATURE),
    messages.Consent: messages.Consent(SIGNATURE, Facts()),
    messages.Status: messages.Status(1, 2, "round 1", ("north",)),
    messages.Start: messages.Start("clustering", RUN, Facts(), ()),
    messages.Seated: messages.Seated(),
    messages.Request: messages.Request(0, b"frame"),
    messages.Reply: messages.Reply(0, b"frame"),
    messages.Declined: messages.Declined(0),
    messages.Finish: messages.Finish(RUN, b"", 0, ()),
    messages.Done: messages.Done(RUN, SIGNATURE, Facts()),
    messages.Over: messages.Over(),
    messages.Abandon: messages.Abandon(Ending.TOO_FEW),
    messages.Withdraw: messages.Withdraw(),
}
PATH = {  # what is said, in turn, until a state is reached
    State.OPEN: (),
    State.CHALLENGED: (messages.Challenge,),
    State.GREETED: (messages.Challenge, messages.Hello),
    State.WELCOMED: (messages.Challenge, messages.Hello, messages.Welcome),
    State.IDLE: (messages.Challenge, messages.Hello, messages.Welcome, messages.Consent),
}
PATH[State.STARTED] = (*PATH[State.IDLE], messages.Start)
PATH[State.RUNNING] = (*PATH[State.STARTED], messages.Seated)
PATH[State.FINISHED] = (*PATH[State.RUNNING], messages.Finish)
PATH[State.CLOSED] = (*PATH[State.IDLE], messages.Over)
OF_COORDINATOR = {kind for _, kind in COORDINATOR_SAYS}
OF_PARTY = {kind for _, kind in PARTY_SAYS}


class Pair:
    """Both ends of one connection; what one sends the other receives."""

    def __init__(self, state=State.OPEN):
        self.ends = {True: Connection(is_coordinator=True), False: Connection(is_coordinator=False)}
        for kind in PATH[state]:
            self.say(EXAMPLES[kind])

    def say(self, message):
        speaker = type(message) in OF_COORDINATOR
        assert self.ends[not speaker].receive(self.ends[speaker].send(message)) == message


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("state", State)
def test_every_message_in_every_state(state, kind):
    """What the tables allow arrives and moves both ends alike; all else is refused by both, and closes the receiver."""
    pair, message = Pair(state), EXAMPLES[kind]
    by_coordinator = kind in OF_COORDINATOR
    following = (COORDINATOR_SAYS if by_coordinator else PARTY_SAYS).get((state, kind))
    if kind in (messages.Reply, messages.Declined):
        following = None  # nothing was asked yet
    speaker, hearer = pair.ends[by_coordinator], pair.ends[not by_coordinator]
    if following is not None:
        pair.say(message)
        assert speaker.state is hearer.state is following
        return
    with pytest.raises(LocalProtocolError):
        speaker.send(message)
    assert speaker.state is state
    with pytest.raises(RemoteProtocolError):
        hearer.receive(pack(message))
    assert hearer.state is State.CLOSED


@pytest.mark.parametrize("kind", EXAMPLES)
def test_nobody_may_say_what_is_the_others_to_say(kind):
    by_coordinator = kind in OF_COORDINATOR
    for state in PATH:
        if state is State.CLOSED:
            continue
        pair = Pair(state)
        with pytest.raises(RemoteProtocolError):
            pair.ends[by_coordinator].receive(pack(EXAMPLES[kind]))


def test_a_whole_session_and_the_next():
    pair = Pair(State.RUNNING)
    for number in (0, 3, 4):
        pair.say(messages.Request(number, b"?"))
        pair.say(messages.Status(number, 5, "waiting", ("harbour",)))
        pair.say(messages.Reply(number, b"!") if number else messages.Declined(number))
    pair.say(EXAMPLES[messages.Finish])
    pair.say(EXAMPLES[messages.Done])
    pair.say(EXAMPLES[messages.Start])
    pair.say(messages.Seated())
    pair.say(messages.Request(0, b"numbers begin anew in a session"))
    pair.say(messages.Reply(0, b"!"))


def test_replies_that_were_on_their_way_still_arrive():
    pair = Pair(State.RUNNING)
    pair.say(messages.Request(0, b"?"))
    pair.say(messages.Request(1, b"?"))  # the step was closed without this party
    pair.say(messages.Reply(0, b"late"))
    pair.say(EXAMPLES[messages.Finish])
    pair.say(messages.Reply(1, b"late"))
    pair.say(EXAMPLES[messages.Done])


@pytest.mark.parametrize(
    ("asked", "answered"),
    [((0,), (1,)), ((0,), (0, 0)), ((0, 1), (1, 0)), ((), (0,))],
)
def test_replies_are_to_requests_each_once_and_in_order(asked, answered):
    pair = Pair(State.RUNNING)
    for number in asked:
        pair.say(messages.Request(number, b"?"))
    *good, bad = answered
    for number in good:
        pair.say(messages.Reply(number, b"!"))
    with pytest.raises(RemoteProtocolError):
        pair.ends[True].receive(pack(messages.Reply(bad, b"!")))


def test_requests_have_growing_numbers():
    pair = Pair(State.RUNNING)
    pair.say(messages.Request(5, b"?"))
    for number in (5, 4):
        pair.ends[False].state = State.RUNNING
        with pytest.raises(RemoteProtocolError):
            pair.ends[False].receive(pack(messages.Request(number, b"?")))


def test_a_stranger_cannot_send_much_and_a_frame_only_what_was_agreed():
    pair = Pair(State.CHALLENGED)
    long = msgspec.structs.replace(EXAMPLES[messages.Hello], certificate_signature=bytes(messages.GREETING_BYTES))
    with pytest.raises(RemoteProtocolError, match="at most"):
        pair.ends[True].receive(pack(long))
    pair = Pair(State.RUNNING)
    pair.say(messages.Request(0, b"?"))
    for end in pair.ends.values():
        end.allow_frames(3 * 2**20)
    pair.ends[True].receive(pair.ends[False].send(messages.Reply(0, bytes(3 * 2**20))))
    pair.say(messages.Request(1, b"?"))
    with pytest.raises(RemoteProtocolError, match="at most"):
        pair.ends[True].receive(pack(messages.Reply(1, bytes(3 * 2**20 + 2000))))
    with pytest.raises(LocalProtocolError, match="at most"):
        Pair(State.RUNNING).ends[True].send(messages.Request(0, bytes(2**21)))


@given(st.binary(max_size=300))
def test_garbage_is_refused_with_a_fixed_text(raw):
    for state in (State.CHALLENGED, State.RUNNING):
        end = Pair(state).ends[True]
        with pytest.raises(RemoteProtocolError) as caught:
            end.receive((b"\xc1" + raw, b""))
        assert str(caught.value) == "a message must be one that may come over a connection; it is not."
        assert end.state is State.CLOSED


@pytest.mark.parametrize(
    "packed",
    [
        (msgspec.msgpack.encode(messages.Withdraw()), b"frame"),
        (msgspec.msgpack.encode(messages.Reply(0, b"inside")), b""),
        (msgspec.msgpack.encode(messages.Reply(0, b"inside")), b"behind"),
    ],
)
def test_frames_are_behind_requests_and_replies_and_nowhere_else(packed):
    pair = Pair(State.RUNNING)
    pair.say(messages.Request(0, b"?"))
    with pytest.raises(RemoteProtocolError, match="carry a frame behind"):
        pair.ends[True].receive(packed)


def test_reasons_are_numbers_and_every_one_has_a_text():
    for reason in (*Refusal, *Ending):
        assert "; " in reason.text
        assert reason.text.isprintable()
    with pytest.raises(RemoteProtocolError):
        Pair(State.GREETED).ends[False].receive((msgspec.msgpack.encode([2, "the table has 7 rows"]), b""))
