"""Faults as a state machine: frames are delivered, lost, repeated, delayed and reordered, parties crash and restart.

Hypothesis simulates the network. Whatever it does, endpoints raise nothing but RemoteProtocolError, the coordinator
ends with a result or TooFewPartiesError within its steps, and the result is Lloyd's over exactly the parties it says.
"""

import numpy as np
from hypothesis import settings

from cloister.protocols.multiparty_lloyd.messages import CODEC
from tests.network_machine import NetworkMachine
from tests.protocols.multiparty_lloyd.oracle import plain_lloyd
from tests.protocols.multiparty_lloyd.sessions import make_session

START = ((-0.5,), (0.5,))
# Party l has 10^(l-1) records a cluster: in a total, a digit 2 would be a party counted twice.
RECORDS = [np.repeat([[-0.25], [0.75]], 10**power, axis=0) for power in range(3)]


class Network(NetworkMachine):
    """A masked session of multiparty Lloyd."""

    codec = CODEC
    masks, members_min = "common", 2

    def make_session(self):
        return make_session(
            records=RECORDS,
            clusters=2,
            iterations=3,
            initialisation="given",
            start=START,
            masks=self.masks,
            members_min=self.members_min,
        )

    def make_coordinator(self):
        return self.session.coordinator()

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


class DoubleNetwork(Network):
    """The same under double masks: attempts, openings, and masks that are restored."""

    masks = "double"
    steps_more = 3 + 2 * 3


TestDoubleNetwork = DoubleNetwork.TestCase
TestDoubleNetwork.settings = TestNetwork.settings
