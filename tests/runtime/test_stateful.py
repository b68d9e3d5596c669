"""A10 as a state machine: frames are delivered, lost, repeated, delayed and reordered, parties crash and restart.

Hypothesis plays the network. Whatever it does, endpoints raise nothing but RemoteProtocolError, the coordinator ends
with a result or TooFewPartiesError within its steps, and the result is Lloyd's over exactly the parties it says.
"""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cloister.crypto import SeededEntropy
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.protocols.multiparty_lloyd import CODEC, coordinate
from cloister.wire import CoordinatorEndpoint, PartyEndpoint
from tests.harness import SESSION, make_session
from tests.protocols.oracle import plain_lloyd

START = ((-0.5,), (0.5,))
# Party l has 10^(l-1) records a cluster: in a total, a digit 2 would be a party counted twice.
RECORDS = [np.repeat([[-0.25], [0.75]], 10**power, axis=0) for power in range(3)]
PARTIES = st.integers(1, 3)


class Network(RuleBasedStateMachine):
    """Everything that can happen to a masked session of three parties."""

    def __init__(self):
        super().__init__()
        self.session = make_session(records=RECORDS, clusters=2, iterations=3, initialisation="given", start=START)
        generator = coordinate(self.session.agreement, entropy=SeededEntropy(7, "coordinator"), session=SESSION)
        self.coordinator = CoordinatorEndpoint(generator, codec=CODEC, session=SESSION)
        self.parties = {number: self.make_party(number) for number in (1, 2, 3)}
        self.objects = {number: end._party for number, end in self.parties.items()}
        self.to_party = {number: [] for number in self.parties}  # every frame ever sent, old ones too
        self.to_coordinator = {number: [] for number in self.parties}
        self.masked = {}
        self.aborted = False
        self.send_requests()

    def make_party(self, number):
        return PartyEndpoint(self.session.party(number), number=number, codec=CODEC, session=SESSION)

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
        self.objects[number] = self.parties[number]._party

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
        assert self.coordinator.step <= self.session.agreement.steps + 3  # at most one more leader a party

    @invariant()
    def one_vector_a_party_and_round(self):
        """Two different vectors under one mask would cancel it."""
        for number, frames in self.to_coordinator.items():
            for frame in frames:
                envelope = CODEC.open(frame, session=SESSION, sender=number)
                message = CODEC.reply(envelope.body)
                if hasattr(message, "masked"):
                    key = (number, envelope.step)
                    assert self.masked.setdefault(key, message.masked.data) == message.masked.data

    def teardown(self):
        if self.aborted or not self.coordinator.finished:
            return
        result = self.coordinator.result
        expected = plain_lloyd(self.session.records, np.array(START), result.members)[-1]
        assert all(len(members) >= 2 for members in result.members)
        for party in self.objects.values():
            if party.finished:
                assert np.allclose(party.centres, expected, rtol=0, atol=1e-12)


TestNetwork = Network.TestCase
TestNetwork.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
