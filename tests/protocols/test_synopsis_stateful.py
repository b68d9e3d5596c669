"""A10 as a state machine: Hypothesis plays the network between a synopsis's coordinator and its parties.

Whatever it delivers, loses, repeats, reorders, crashes or restarts: endpoints raise nothing but RemoteProtocolError,
the coordinator ends with a result or TooFewPartiesError within its steps, every total counts exactly the parties that
the outcome names, and no party is charged twice for a round.
"""

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.protocols.synopsis import CODEC, Knobs
from cloister.wire import CoordinatorEndpoint, PartyEndpoint
from tests.harness import SESSION
from tests.protocols.synopsis_session import COUNTED, Session, count_thrice, counting_rounds

PARTIES = st.integers(1, 3)
FEW = Knobs(cells_max=16, rounds_min=1, rounds_max=1, restarts=1)  # four slots


class Network(RuleBasedStateMachine):
    """Everything that can happen to a session of three parties."""

    def __init__(self):
        super().__init__()
        self.session = Session(COUNTED[:3], pipeline=count_thrice, silent=True, knobs=FEW)
        self.coordinator = CoordinatorEndpoint(self.session.coordinator(), codec=CODEC, session=SESSION)
        self.objects = {}
        self.parties = {number: self.make_party(number) for number in (1, 2, 3)}
        self.to_party = {number: [] for number in self.parties}  # every frame ever sent, old ones too
        self.to_coordinator = {number: [] for number in self.parties}
        self.masked = {}
        self.aborted = False
        self.send_requests()

    def make_party(self, number):
        self.objects[number] = self.session.party(number)
        return PartyEndpoint(self.objects[number], number=number, codec=CODEC, session=SESSION)

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
        """Back without its memory, but with its books; it has no seed and cannot answer a round again."""
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

    @invariant()
    def no_round_is_charged_twice(self):
        allowed = [f"count {number}" for number in counting_rounds(self.session.settings)]
        for spent in self.session.spent():
            names = [release.name for release in spent.releases]
            assert names == allowed[: len(names)]

    def teardown(self):
        if self.aborted or not self.coordinator.finished:
            return
        history = self.coordinator.result.members
        assert all(len(members) >= 2 for members in history)
        assert all(set(later) <= set(earlier) for earlier, later in itertools.pairwise(history))
        rounds = counting_rounds(self.session.settings)
        expected = [float(sum(10 ** (member - 1) for member in history[number])) for number in rounds]
        for party in self.objects.values():
            if party.finished:
                assert party.finding.weights.tolist() == expected


TestNetwork = Network.TestCase
TestNetwork.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
