"""Who sees what: openings and the shares of all but one party tell nothing; the dealer with openings sees all."""

import numpy as np
import pytest

from cloister.joint_noise import JointLaplace, dealing
from cloister.joint_noise.dealing import DealtShares
from cloister.joint_noise.plan import compute_threshold
from cloister.numeric import RING32, RING64
from tests.joint_noise.joint_runs import Run, compute_in_the_clear

ALPHA = 1e-6
PLAN = JointLaplace(scale=1.5, entries=3000, parties=3, ring=RING32)


def signs_of(bits):
    return 1.0 - 2.0 * bits.astype(np.float64)


def digits_of(run):
    """The shared digits themselves, of every lane: what was opened last, with the random bits taken off."""
    bits = np.bitwise_xor.reduce([take_lowest_bits(run, place) for place in range(run.plan.parties)])
    return run.opened_planes[-1] ^ bits


def take_lowest_bits(run, place):
    """One party's XOR shares of the random bits of the conversion."""
    shares = DealtShares(run.plan, place=place, raw=run.dealt[place])
    shares.take_masks(run.plan.precision_bits)
    shares.take_products(11 * run.plan.blocks)
    for layer in run.plan.layers:
        shares.take_masks(layer.operands)
        shares.take_products(layer.products)
    return (shares.take_bits() & 1).astype(np.uint8)[: run.plan.lanes]


def sees_something(run):
    """Whether any bit of the public view is biased, tells of another, or tells of the digit in its lane.

    Under "all uniform and independent" each of the sums over N lanes has a sub-Gaussian tail 2 exp(-s^2 / 2 N).
    """
    view = signs_of(run.opened_planes)
    secret = signs_of(digits_of(run))
    lanes = view.shape[1]
    gram = view @ view.T
    np.fill_diagonal(gram, 0.0)
    biases = np.concatenate([view.sum(axis=1), view @ secret])
    tests = view.shape[0] * (view.shape[0] + 3) / 2
    limit = np.sqrt(2 * lanes * np.log(2 * tests / ALPHA))
    return bool(max(np.abs(gram).max(), np.abs(biases).max()) > limit)


def test_what_is_opened_is_uniform_and_tells_nothing_of_the_digits():
    assert not sees_something(Run(PLAN))


def test_without_masks_it_would_be_seen(monkeypatch):
    draw = dealing._draw_planes
    monkeypatch.setattr(dealing, "_draw_planes", lambda stream, plan, planes: draw(stream, plan, planes) & np.uint64(0))
    assert sees_something(Run(PLAN))


def test_a_triple_used_in_two_layers_would_be_seen(monkeypatch):
    def draw_the_same(stream, plan, planes):
        return stream.child("same").words(planes * plan.words, np.uint64).reshape(planes, plan.words)

    monkeypatch.setattr(dealing, "_draw_planes", draw_the_same)
    assert sees_something(Run(PLAN))


def test_a_hand_used_twice_would_be_seen():
    """Two samples from the same dealt shares: what is opened differs by the operands, and these are not uniform."""
    first = Run(PLAN)
    second = Run(PLAN, dealt=first.dealt, changed_place=0)
    difference = signs_of(first.opened_planes ^ second.opened_planes)[PLAN.precision_bits :].sum(axis=1)
    assert np.abs(difference).max() > np.sqrt(2 * PLAN.lanes * np.log(2 * len(difference) / ALPHA))


def shares_tell(run, left_out):
    """Whether a bit of the others' shares, of their sum or difference is biased or tells of the noise."""
    ring, noise = run.plan.ring, run.noise
    others = [party.shares for place, party in enumerate(run.parties) if place != left_out]
    known = np.stack([np.ones(noise.size), signs_of(noise & 1), signs_of(noise >> 1 & 1), signs_of(noise < 0)])
    shifts = np.arange(ring.bits, dtype=ring.dtype)[:, None]
    sums = [signs_of(x >> shifts & 1) @ known.T for x in (*others, others[0] + others[1], others[0] - others[1])]
    tests = 4 * 4 * ring.bits
    return bool(np.abs(sums).max() > np.sqrt(2 * noise.size * np.log(2 * tests / ALPHA)))


@pytest.mark.parametrize("ring", [RING32, RING64], ids=str)
@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_the_shares_of_all_but_one_are_uniform_and_tell_nothing_of_the_noise(left_out, ring):
    assert not shares_tell(Run(JointLaplace(scale=1.5, entries=20_000, parties=3, ring=ring)), left_out)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_shares_of_random_bits_that_are_bits_themselves_would_tell(left_out, monkeypatch):
    take_bits = DealtShares.take_bits
    run = Run(PLAN)
    monkeypatch.setattr(DealtShares, "take_bits", lambda shares: take_bits(shares) & 1)
    mutant = Run(PLAN, dealt=run.dealt)
    assert not shares_tell(run, left_out)
    assert shares_tell(mutant, left_out)


def test_the_dealer_with_one_partys_transcript_knows_the_noise():
    """Not a promise but its limit: what was dealt and the keys of step 0, which every party sees, are enough."""
    plan = JointLaplace(scale=4.0, entries=30, parties=3, ring=RING32)
    run = Run(plan)
    thresholds = [compute_threshold(plan.scale, digit, plan.precision_bits) for digit in range(plan.digits)]
    assert (compute_in_the_clear(plan, run.dealt, run.openings[0], thresholds) == run.noise).all()
