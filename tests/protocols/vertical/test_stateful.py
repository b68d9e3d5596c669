"""A state machine: Hypothesis simulates the network between a vertical session's relay and its parties.

Whatever it delivers, loses, repeats, reorders, damages, crashes or restarts: endpoints raise nothing but
RemoteProtocolError, the relay ends with a result or TooFewPartiesError within its steps, every result is the exact
one, and a turn has one answer.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from cloister.errors import RemoteProtocolError
from cloister.protocols.vertical.messages import CODEC, Done
from tests.network_machine import PARTIES, NetworkMachine
from tests.protocols.vertical.sessions import TINY, Session
from tests.protocols.vertical.tables import mixture
from tests.sessions import SESSION

TABLE = mixture(40, 2, 2, seed=5)
COLUMNS = ((0,), (1,), ())


def make(budget=None):
    options = {**TINY, "rounds": 1}
    return Session(TABLE, COLUMNS, model="collective", threshold=2, budget=budget, **options)


ENDED = []
EXPECTED = make().run().alice.centres.tobytes()


class Network(NetworkMachine):
    """A session with a threshold: key holders may miss the step that asks who is there."""

    codec = CODEC

    def make_session(self):
        self.answers = {}
        return make()

    def make_coordinator(self):
        return self.session.coordinator()

    @initialize(steps=st.sampled_from([0, 5, 8, 10, 11, 12]))
    def play_on(self, steps):
        """Most trouble is worth having late: in a session of thirteen steps, the last of which decrypt and end it."""
        for _ in range(steps):
            self.exchange_all([1, 2, 3])
            self.close_step()

    @precondition(NetworkMachine.running)
    @rule(number=PARTIES, place=PARTIES)
    def deliver_damaged(self, number, place):
        """One byte is another: refused, and nothing has changed."""
        if number in self.parties and self.to_party[number]:
            frame = bytearray(self.to_party[number][-1])
            frame[-place * 7 % len(frame)] ^= 0x10
            try:
                reply = self.parties[number].receive(bytes(frame))
            except RemoteProtocolError:
                return
            self.to_coordinator[number].append(reply)

    @invariant()
    def a_turn_has_one_answer(self):
        """Two contents in one box's context would share a keystream."""
        for number, frames in self.to_coordinator.items():
            for frame in frames:
                envelope = self.codec.open(frame, session=SESSION, sender=number)
                message = self.codec.reply(envelope.body)
                if isinstance(message, Done):
                    assert self.answers.setdefault((number, envelope.step), message) == message

    def teardown(self):
        if self.aborted or not self.coordinator.finished:
            return
        ENDED.append(len(self.answers))
        assert self.coordinator.result.decryptors == ((2, 3),)
        for party in self.objects.values():
            if party.finished:
                assert party.centres.tobytes() == EXPECTED


TestNetwork = Network.TestCase
TestNetwork.settings = settings(max_examples=60, stateful_step_count=25, deadline=None, derandomize=True)


def test_some_of_these_sessions_had_a_result():
    assert len(ENDED) >= 3
