"""A state machine: Hypothesis simulates the network between FastLloyd's coordinator and its parties.

Besides what holds of every protocol: no round is charged or noised twice, and whoever finishes has the centres that the
members of each round, as the outcome names them, and the noise that was drawn lead to.
"""

from hypothesis import settings
from hypothesis.stateful import invariant

from cloister.protocols.multiparty_lloyd.messages import CODEC
from tests.network_machine import NetworkMachine
from tests.protocols.fastlloyd.sessions import POINTS, FastLloydSession, deal
from tests.protocols.fastlloyd.test_session import walk

ROUNDS = 3


class Network(NetworkMachine):
    """A session of the default; a party that restarts has its books, but no seed, and cannot answer a round again."""

    codec = CODEC

    def make_session(self):
        return FastLloydSession(parts=deal(POINTS[:30]), members_min=2, options={"iterations": ROUNDS})

    def make_coordinator(self):
        return self.session.coordinator()

    @invariant()
    def no_round_is_charged_or_noised_twice(self):
        books = [self.session.duty.charger, *(duty.charger for duty in self.session.duties.values())]
        for book in books:
            names = [release.name for release in book.spent().releases]
            assert len(names) == len(set(names)) <= ROUNDS
        assert len(self.session.duty.sampler.drawn) == len(books[0].spent().releases)

    def teardown(self):
        if self.aborted or not self.coordinator.finished:
            return
        history = self.coordinator.result.members
        assert all(len(members) >= 2 for members in history)
        expected = walk(self.session, history).tobytes()
        for party in self.objects.values():
            if party.finished:
                assert party.centres.tobytes() == expected


TestNetwork = Network.TestCase
TestNetwork.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
