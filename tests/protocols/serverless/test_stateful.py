"""Hypothesis simulates the network around a serverless sum. A party never answers one attempt in two ways."""

import numpy as np
from hypothesis import settings
from hypothesis.stateful import invariant, precondition, rule

from cloister.aggregation.messages import OpenTotal
from cloister.protocols.serverless.messages import CODEC, AddVector, Passed
from tests.network_machine import NetworkMachine
from tests.protocols.serverless.sessions import SumSession

# Party l adds 10^(l-1): in a total, a digit 2 would be a party counted twice.
VECTORS = 10 ** np.arange(3)[:, None, None] * np.ones((3, 2, 2), dtype=np.int64)


class Network(NetworkMachine):
    """A session of three parties and two rounds."""

    codec = CODEC

    def make_session(self):
        self.recorders = []
        return SumSession(VECTORS)

    def make_coordinator(self):
        return self.session.relay()

    def make_party(self, number):
        endpoint = super().make_party(number)
        self.recorders.append((number, self.objects[number]))
        return endpoint

    @precondition(NetworkMachine.running)
    @rule()
    def three_good_steps(self):
        """A round takes many steps: go on without faults for a while."""
        for _ in range(3):
            if self.running():
                self.exchange_all([1, 2, 3])
                self.close_step()

    @invariant()
    def steps_are_bounded(self):
        assert self.coordinator.step <= 2 * self.session.terms.steps

    @invariant()
    def one_vector_a_party_and_round(self):
        """No two sums for one attempt, however often it is asked for; and none after a sum of the round was opened."""
        for _, recorder in self.recorders:
            answered, opened = {}, set()
            for request, reply in recorder.log:
                if isinstance(reply, Passed):
                    assert isinstance(request, AddVector)
                    place = (request.attempt.round, request.attempt.number)
                    assert place not in answered
                    assert request.attempt.round not in opened
                    answered[place] = reply.box
                if isinstance(request, OpenTotal):
                    assert request.attempt.round not in opened
                    opened.add(request.attempt.round)

    def teardown(self):
        if self.aborted or not self.coordinator.finished:
            return
        members = self.coordinator.result.members
        for _, recorder in self.recorders:
            if recorder.party.finished:
                for round_ in (1, 2):
                    expected = self.session.sum_of(round_, members[round_ - 1])
                    assert np.array_equal(recorder.contributor.totals[round_], expected)


TestNetwork = Network.TestCase
TestNetwork.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


def test_a_session_without_faults_ends_in_the_machine():
    """The machine reaches the end, so that what it checks there is checked."""
    machine = Network()
    for _ in range(8):
        if machine.running():
            machine.three_good_steps()
    assert machine.coordinator.finished
    assert machine.coordinator.result.members == ((1, 2, 3),) * 2
    machine.teardown()
