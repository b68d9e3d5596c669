"""Parties that stop on purpose: how many draws of joint noise on one vector can they see for one payment?

All but party 1 collude, without the relay. In each attempt the last of them does its part and then falls silent, so
that the attempt is given up and begun again with the same vectors and fresh noise. If their shares restore party 1's
mask, every attempt shows them its vector with another draw.
"""

import numpy as np

from cloister.aggregation import SumTerms, double_masks, unpack_members
from cloister.aggregation.messages import PartyBox
from cloister.aggregation.own_masks import derive_mask_key, expand_mask
from cloister.aggregation.statements import read_words
from cloister.crypto.secret_sharing import combine_shares
from cloister.errors import RemoteProtocolError
from cloister.joint_noise import JointSampler
from cloister.protocols.serverless import party as party_module
from cloister.protocols.serverless.messages import AddVector
from tests.protocols.serverless.sessions import Recorder, SumSession

PARTIES, MEMBERS_MIN, LENGTH, SCALE, SECRET = 6, 4, 400, 100.0, 777


class Stopper(Recorder):
    """Does its part as the last of the ring, and stops: the answer never leaves."""

    def handle(self, request):
        reply = super().handle(request)
        if isinstance(request, AddVector):
            members = unpack_members(request.attempt.members, PARTIES)
            if self.party._number == members[-1] and len(members) > MEMBERS_MIN:
                raise RemoteProtocolError("gone.")
        return reply


def attack(monkeypatch):
    """What the coalition computes as party 1's vector from each attempt, and how often party 1 paid."""
    samplers, statements = [], {}

    class Spy(JointSampler):
        def __init__(self, plan, **options):
            super().__init__(plan, **options)
            samplers.append((plan.parties, options["place"], self))

    real = double_masks.DoubleMasks.blind

    def blind(self, vector):
        reply = real(self, vector)
        statements[self._entered.attempt] = self._entered.statement
        return reply

    monkeypatch.setattr(party_module, "JointSampler", Spy)
    monkeypatch.setattr(double_masks.DoubleMasks, "blind", blind)
    vectors = np.zeros((PARTIES, 1, LENGTH), dtype=np.int64)
    vectors[0] = SECRET
    session = SumSession(vectors, bits=64, members_min=MEMBERS_MIN, scale=SCALE, recorder_class=Stopper)
    _, roles = session.run()
    ring, words = session.terms.ring, session.terms.words
    seen = []
    for request, passed in roles[0].log:
        if not isinstance(request, AddVector):
            continue
        attempt, members = request.attempt, unpack_members(request.attempt.members, PARTIES)
        statement = statements[attempt]
        added = read_words(roles[1].masks.open(passed.box, "sum", attempt, sender=1), ring, words)
        pads = sum(roles[j - 1].masks._pads.pad(members, words, statement) for j in members if j != 1)
        left = (added + pads)[:LENGTH]
        shares = {
            dealt.party: roles[dealt.party - 1].masks._shares.open(PartyBox(1, dealt.box), attempt)
            for dealt in passed.shares[: session.terms.sums.restorers]
        }
        if shares:
            left = left - expand_mask(derive_mask_key(combine_shares(shares), statement), words, ring)[:LENGTH]
        drawn = sum(sampler.shares for parties, place, sampler in samplers if parties == len(members) and place != 0)
        seen.append(ring.decode(left + drawn))
    return np.array(seen), roles[0].contributor.contributed


def test_where_nothing_is_restored_stopping_shows_nothing(monkeypatch):
    seen, paid = attack(monkeypatch)
    assert len(paid) == 1
    assert (np.abs(seen - SECRET) > 2**40).mean() > 0.99


def test_with_shares_the_coalition_sees_a_draw_for_each_attempt(monkeypatch):
    """The mutant: masks that can be restored where noise is joint."""
    restoring = property(lambda terms: terms.members_min < terms.parties)
    monkeypatch.setattr(SumTerms, "shares_masks", restoring)
    seen, paid = attack(monkeypatch)
    assert len(paid) == 1
    assert len(seen) == PARTIES - MEMBERS_MIN + 1
    assert np.abs(seen.mean(axis=1) - SECRET).max() < 60
    assert seen.mean(axis=0).std() < 0.65 * seen.std()
