"""Parties: together they find exactly the noise that the shared bits say, and nothing strange moves them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import SeededEntropy
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.joint_noise import JointLaplace, JointSampler, deal
from cloister.joint_noise.plan import compute_threshold
from cloister.numeric import RING32, RING64
from tests.joint_noise.joint_runs import RINGS, Run, compute_in_the_clear


def make_plan(scale=2.5, entries=7, parties=3, ring=RING32):
    return JointLaplace(scale=scale, entries=entries, parties=parties, ring=ring)


def start(plan, seed=1):
    dealt = deal(plan, SeededEntropy(seed, "dealer"))
    return [
        JointSampler(plan, place=place, dealt=shares, entropy=SeededEntropy(seed, f"party {place}"))
        for place, shares in enumerate(dealt)
    ]


def thresholds_of(plan):
    return [compute_threshold(plan.scale, digit, plan.precision_bits) for digit in range(plan.digits)]


@settings(max_examples=40, deadline=None)
@given(
    scale=st.one_of(st.floats(0.02, 50.0), st.floats(1e3, 2.0**25), st.sampled_from([5e-324, 0.05, 2.0**25])),
    entries=st.integers(1, 12),
    parties=st.integers(2, 5),
    ring=st.sampled_from(RINGS),
    seed=st.integers(0, 2**31),
)
def test_the_noise_is_what_a_plain_comparison_of_the_shared_bits_says(scale, entries, parties, ring, seed):
    plan = make_plan(scale, entries, parties, ring)
    run = Run(plan, seed)
    assert run.noise.tolist() == compute_in_the_clear(plan, run.dealt, run.openings[0], thresholds_of(plan)).tolist()
    assert all(party.shares.dtype == ring.dtype and party.shares.shape == (entries,) for party in run.parties)


def test_so_it_is_at_the_largest_scale():
    plan = make_plan(2.0**40, 5, 2, RING64)
    run = Run(plan)
    noise = run.noise
    assert noise.tolist() == compute_in_the_clear(plan, run.dealt, run.openings[0], thresholds_of(plan)).tolist()
    assert np.abs(noise).max() > 2**32


def test_the_ring_does_not_change_the_noise():
    assert (Run(make_plan(ring=RING32)).noise == Run(make_plan(ring=RING64)).noise).all()


def test_every_partys_entropy_changes_the_noise_and_nobody_can_repeat_it_with_the_same_hands():
    """One honest party is enough: with the same dealt and all other keys kept, the noise is independent."""
    plan = make_plan(scale=40.0, entries=4000)
    first = Run(plan)
    for place in range(3):
        other = Run(plan, dealt=first.dealt, changed_place=place)
        assert abs(np.corrcoef(first.noise, other.noise)[0, 1]) < 5 / np.sqrt(plan.entries)


def test_a_copied_key_does_not_cancel_the_copied_one():
    plan = make_plan(scale=40.0, entries=4000, parties=2)
    dealt = deal(plan, SeededEntropy(1, "dealer"))

    def play(label):
        parties = [JointSampler(plan, place=i, dealt=dealt[i], entropy=SeededEntropy(1, label)) for i in (0, 1)]
        while not parties[0].finished:
            opened = [party.open() for party in parties]
            for place, party in enumerate(parties):
                party.receive({1 - place: opened[1 - place]})
        return plan.ring.decode(plan.ring.sum([party.shares for party in parties]))

    assert abs(np.corrcoef(play("one"), play("two"))[0, 1]) < 5 / np.sqrt(plan.entries)


class TestOrder:
    def test_shares_are_there_at_the_end_only(self):
        parties = start(make_plan())
        for step in range(parties[0]._plan.steps):
            assert not parties[0].finished
            with pytest.raises(LocalProtocolError, match=f"got as far as {step}"):
                _ = parties[0].shares
            opened = [party.open() for party in parties]
            for place, party in enumerate(parties):
                party.receive({other: raw for other, raw in enumerate(opened) if other != place})
        assert all(party.finished for party in parties)
        for call in (parties[0].open, lambda: parties[0].receive({})):
            with pytest.raises(LocalProtocolError, match="all are done"):
                call()

    def test_an_opening_is_the_same_each_time_it_is_asked_for(self):
        party = start(make_plan())[0]
        assert party.open() == party.open()

    @pytest.mark.parametrize("place", [-1, 3])
    def test_a_place_must_be_one_of_the_plan(self, place):
        plan = make_plan()
        with pytest.raises(LocalProtocolError, match="from 0 to 2"):
            JointSampler(plan, place=place, dealt=bytes(32), entropy=SeededEntropy(1, "party"))

    def test_what_another_place_was_dealt_is_refused(self):
        plan = make_plan()
        dealt = deal(plan, SeededEntropy(1, "dealer"))
        with pytest.raises(RemoteProtocolError):
            JointSampler(plan, place=2, dealt=dealt[0], entropy=SeededEntropy(1, "party"))


BAD = {
    "nobody": lambda good: {},
    "one missing": lambda good: dict(list(good.items())[:1]),
    "itself": lambda good: {**good, 0: next(iter(good.values()))},
    "a stranger": lambda good: {**good, 3: next(iter(good.values()))},
    "a stranger instead": lambda good: {1: good[1], 7: good[2]},
    "empty": lambda good: {**good, 1: b""},
    "too short": lambda good: {**good, 2: good[2][:-1]},
    "too long": lambda good: {**good, 1: good[1] + b"\0"},
    "a word more": lambda good: {**good, 1: good[1] + bytes(8)},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_openings_are_refused_in_every_step_and_change_nothing(bad):
    plan = make_plan()
    expected = Run(plan).noise
    parties = start(plan)
    for _ in range(plan.steps):
        opened = dict(enumerate(party.open() for party in parties))
        good = {1: opened[1], 2: opened[2]}
        with pytest.raises(RemoteProtocolError):
            parties[0].receive(bad(good))
        assert parties[0].open() == opened[0]
        for place, party in enumerate(parties):
            party.receive({other: raw for other, raw in opened.items() if other != place})
    assert (plan.ring.decode(plan.ring.sum([party.shares for party in parties])) == expected).all()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_bytes_are_accepted_or_refused_and_nothing_else(data):
    party = start(make_plan(entries=2))[0]
    while not party.finished:
        size = party._plan.opening_bytes[party._step]
        lengths = st.sampled_from([size, size, size, size - 1, 0])
        raws = [bytes([data.draw(st.integers(0, 255))]) * data.draw(lengths) for _ in range(2)]
        try:
            party.receive({1: raws[0], 2: raws[1]})
        except RemoteProtocolError:
            return
    assert party.shares.shape == (2,)
