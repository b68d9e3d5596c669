"""A state machine: Hypothesis simulates the network between a synopsis's coordinator and its parties.

Whatever it delivers, loses, repeats, reorders, crashes or restarts: endpoints raise nothing but RemoteProtocolError,
the coordinator ends with a result or a typed error within its steps, every total counts exactly the parties that
the outcome names, and no party is charged twice for a round.
"""

from hypothesis import settings
from hypothesis.stateful import invariant

from cloister.protocols.guided_sums.messages import make_codec
from cloister.protocols.synopsis.settings import Knobs
from tests.network_machine import NetworkMachine
from tests.protocols.guided_sums.sessions import COUNTED, count_thrice, counted_names, counting_rounds
from tests.protocols.synopsis.sessions import Session

FEW = Knobs(cells_max=16, rounds_min=1, rounds_max=1, restarts=1)  # four slots


class Network(NetworkMachine):
    """A session of the synopsis; a party that restarts has its books, but no seed, and cannot answer a round again."""

    codec = make_codec("synopsis")
    masks = "common"

    def make_session(self):
        return Session(COUNTED[:3], algorithm=count_thrice, silent=True, knobs=FEW, masks=self.masks)

    def make_coordinator(self):
        return self.session.coordinator()

    @invariant()
    def no_round_is_charged_twice(self):
        for spent in self.session.spent():
            names = [release.name for release in spent.releases]
            assert set(names) <= set(counted_names(self.session.settings))
            assert len(set(names)) == len(names)

    def teardown(self):
        if self.aborted or not self.coordinator.finished:
            return
        history = self.coordinator.result.members
        assert all(len(members) >= 2 for members in history)
        rounds = counting_rounds(self.session.settings)
        expected = [float(sum(10 ** (member - 1) for member in history[number])) for number in rounds]
        for party in self.objects.values():
            if party.finished:
                assert list(party.finding.sizes.clusters) == expected


TestNetwork = Network.TestCase
TestNetwork.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)


class DoubleNetwork(Network):
    """The same under double masks: attempts, openings, and masks that are restored."""

    masks = "double"
    steps_more = 3 + 2 * 4


TestDoubleNetwork = DoubleNetwork.TestCase
TestDoubleNetwork.settings = TestNetwork.settings
