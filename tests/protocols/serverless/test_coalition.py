"""Parties that stop on purpose: how many draws of joint noise on one vector can they see for one payment?

All but party 1 collude, without the relay. In each attempt the last of them does its part and then falls silent, so
that the attempt is given up and begun again with the same vectors and fresh noise. If their shares restore party 1's
mask, every attempt shows them its vector with another draw.
"""

import numpy as np
import pytest

from cloister.aggregation import unpack_members
from cloister.aggregation.pairwise_pads import expand_mask
from cloister.crypto import combine_shares
from cloister.errors import RemoteProtocolError
from cloister.joint_noise import JointSampler
from cloister.protocols.serverless import party as party_module
from cloister.protocols.serverless.keyring import read_vector
from cloister.protocols.serverless.messages import AddVector
from tests.protocols.serverless.sessions import Recorder, SumSession

PARTIES, MEMBERS_MIN, LENGTH, SCALE, SECRET = 6, 3, 400, 100.0, 777


class Stopper(Recorder):
    """Does its part as the last of the ring, and stops: the answer never leaves."""

    def handle(self, request):
        reply = super().handle(request)
        if isinstance(request, AddVector):
            members = unpack_members(request.attempt.members, PARTIES)
            if self.party._number == members[-1] and len(members) > MEMBERS_MIN:
                raise RemoteProtocolError("gone.")
        return reply


def attack(monkeypatch, restorers_min):
    """What the coalition computes as party 1's vector from each attempt, and how often party 1 paid."""
    samplers = []

    class Spy(JointSampler):
        def __init__(self, plan, **options):
            super().__init__(plan, **options)
            samplers.append((plan.parties, options["place"], self))

    monkeypatch.setattr(party_module, "JointSampler", Spy)
    vectors = np.zeros((PARTIES, 1, LENGTH), dtype=np.int64)
    vectors[0] = SECRET
    session = SumSession(
        vectors, bits=64, members_min=MEMBERS_MIN, restorers_min=restorers_min, scale=SCALE, recorder_class=Stopper
    )
    _, roles = session.run()
    ring, colluders = session.terms.ring, range(2, PARTIES + 1)
    seen = []
    for request, _ in roles[1].log:
        if not isinstance(request, AddVector):
            continue
        attempt, members = request.attempt, unpack_members(request.attempt.members, PARTIES)
        passed = read_vector(roles[1].keyring.open(request.partial, "sum", attempt, sender=1), session.terms)
        pads = sum(
            roles[j - 1].keyring._pads.pad(members, LENGTH, attempt.round, attempt.number) for j in members if j != 1
        )
        restored = combine_shares({j: roles[j - 1].keyring._kept_shares[1] for j in colluders})
        mask = expand_mask(roles[1].keyring.mask_key_of(1, restored, attempt), LENGTH, ring)
        shares = sum(sampler.shares for parties, place, sampler in samplers if parties == len(members) and place != 0)
        seen.append(ring.decode(passed + pads - mask + shares))
    return np.array(seen), roles[0].contributor.contributed


def test_with_all_as_restorers_stopping_shows_nothing(monkeypatch):
    seen, paid = attack(monkeypatch, restorers_min=PARTIES)
    assert len(paid) == 1
    assert (np.abs(seen - SECRET) > 2**40).mean() > 0.99


@pytest.mark.parametrize("restorers_min", [0, PARTIES - 1])
def test_with_fewer_restorers_the_coalition_sees_a_draw_for_each_attempt(monkeypatch, restorers_min):
    """The mutant: what a job must not agree to."""
    seen, paid = attack(monkeypatch, restorers_min)
    assert len(paid) == 1
    assert len(seen) == PARTIES - MEMBERS_MIN + 1
    assert np.abs(seen.mean(axis=1) - SECRET).max() < 60
    assert seen.mean(axis=0).std() < 0.65 * seen.std()
