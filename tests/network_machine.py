"""Hypothesis simulates the network between a coordinator and three parties, whatever their protocol.

Frames are delivered, lost, repeated, delayed and reordered, parties crash and restart. Endpoints raise nothing but
RemoteProtocolError, and the coordinator ends with a result or TooFewPartiesError within its steps.
"""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cloister.aggregation.messages import Answered
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.wire import CoordinatorEndpoint, PartyEndpoint
from tests.sessions import SESSION

PARTIES = st.integers(1, 3)


class NetworkMachine(RuleBasedStateMachine):
    """Everything that can happen to a masked session of three parties; a protocol's test adds what must hold."""

    codec = None
    steps_more = 3
    """At most one more leader a party; with double masks another attempt in a round, or restoring, besides."""

    def __init__(self):
        super().__init__()
        self.session = self.make_session()
        self.coordinator = CoordinatorEndpoint(self.make_coordinator(), codec=self.codec, session=SESSION)
        self.objects = {}
        self.parties = {number: self.make_party(number) for number in (1, 2, 3)}
        self.to_party = {number: [] for number in self.parties}  # every frame ever sent, old ones too
        self.to_coordinator = {number: [] for number in self.parties}
        self.masked = {}
        self.aborted = False
        self.send_requests()

    def make_party(self, number):
        self.objects[number] = self.session.party(number)
        return PartyEndpoint(self.objects[number], number=number, codec=self.codec, session=SESSION)

    def send_requests(self):
        if not self.coordinator.finished:
            for number, frame in self.coordinator.frames().items():
                self.to_party[number].append(frame)

    def running(self):
        return not self.aborted and not self.coordinator.finished

    @precondition(running)
    @rule(number=PARTIES, back=st.integers(0, 3))
    def deliver_request(self, number, back):
        """Mostly the newest frame; sometimes an old one again."""
        if number in self.parties and len(self.to_party[number]) > back:
            try:
                reply = self.parties[number].receive(self.to_party[number][-1 - back])
            except RemoteProtocolError:
                return
            self.to_coordinator[number].append(reply)

    @precondition(running)
    @rule(number=PARTIES, back=st.integers(0, 2), claimed=PARTIES)
    def deliver_reply(self, number, back, claimed):
        """Mostly from its sender; sometimes under another's name."""
        sender = number if back == 0 else claimed
        if len(self.to_coordinator[number]) > back:
            try:
                self.coordinator.receive(sender, self.to_coordinator[number][-1 - back])
            except RemoteProtocolError:
                return

    @precondition(running)
    @rule(numbers=st.permutations([1, 2, 3]))
    def exchange_all(self, numbers):
        """A step in which nothing goes wrong, so that sessions get somewhere."""
        for number in numbers:
            self.deliver_request(number, 0)
            self.deliver_reply(number, 0, number)

    @precondition(running)
    @rule()
    def close_step(self):
        try:
            self.coordinator.close_step()
        except TooFewPartiesError:
            self.aborted = True
            return
        self.send_requests()

    @precondition(running)
    @rule(number=PARTIES)
    def crash(self, number):
        self.parties.pop(number, None)

    @precondition(running)
    @rule(number=PARTIES)
    def restart(self, number):
        """Back without its memory; what it knew is gone."""
        self.parties[number] = self.make_party(number)

    @precondition(lambda self: not self.running())
    @rule(number=PARTIES, back=st.integers(0, 5))
    def deliver_after_the_end(self, number, back):
        """Frames that come when all is over do no harm."""
        if number in self.parties and len(self.to_party[number]) > back:
            try:
                self.parties[number].receive(self.to_party[number][-1 - back])
            except RemoteProtocolError:
                return

    @invariant()
    def steps_are_bounded(self):
        assert self.coordinator.step <= self.session.agreement.steps + self.steps_more

    @invariant()
    def one_vector_a_party_and_round(self):
        """Two different vectors under one mask would cancel it."""
        for number, frames in self.to_coordinator.items():
            for frame in frames:
                envelope = self.codec.open(frame, session=SESSION, sender=number)
                message = self.codec.reply(envelope.body)
                if isinstance(message, Answered):
                    key = (number, envelope.step)
                    assert self.masked.setdefault(key, message.vector) == message.vector
