"""Dealt shares: they correlate as they must, all but one are a key, and malformed ones are refused."""

import itertools

import numpy as np
import pytest

from cloister.crypto import SeededEntropy, SystemEntropy
from cloister.errors import RemoteProtocolError
from cloister.joint_noise import JointLaplace, deal
from cloister.joint_noise.comparison import BLOCK_PRODUCTS, SUBSETS, pack_bits, pair_operands, unpack_bits
from cloister.joint_noise.dealing import DealtShares, lowest_bits
from tests.joint_noise.joint_runs import RINGS


def open_dealt(ring, parties, entries=200):
    plan = JointLaplace(scale=3.0, entries=entries, parties=parties, ring=ring)
    raws = deal(plan, SeededEntropy(3, "dealer"))
    return plan, raws, [DealtShares(plan, place=place, raw=raw) for place, raw in enumerate(raws)]


def total(shares):
    return np.bitwise_xor.reduce(list(shares))


@pytest.mark.parametrize("ring", RINGS, ids=str)
@pytest.mark.parametrize("parties", [2, 3, 5])
def test_shares_add_up_to_masks_their_products_and_bits(parties, ring):
    plan, raws, dealt = open_dealt(ring, parties)
    assert [len(raw) for raw in raws[:-1]] == [32] * (parties - 1)
    masks = total(shares.take_masks(plan.precision_bits) for shares in dealt).reshape(4, plan.blocks, plan.words)
    products = total(shares.take_products(BLOCK_PRODUCTS * plan.blocks) for shares in dealt)
    for subset, product in zip(SUBSETS, products.reshape(BLOCK_PRODUCTS, plan.blocks, plan.words), strict=True):
        members = [masks[bit] for bit in range(4) if subset >> bit & 1]
        assert (product == np.bitwise_and.reduce(members)).all()
    for layer in plan.layers:
        left, right = pair_operands(total(shares.take_masks(layer.operands) for shares in dealt), layer)
        assert (total(shares.take_products(layer.products) for shares in dealt) == left & right).all()
    bit_shares = [shares.take_bits() for shares in dealt]
    bits = ring.sum(bit_shares)
    assert set(np.unique(bits).tolist()) == {0, 1}
    assert abs(bits.mean() - 0.5) < 2.5 / np.sqrt(bits.size)
    assert (total(lowest_bits(share) for share in bit_shares) == pack_bits(bits)).all()


@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_the_corrections_look_uniform_to_the_party_that_gets_them(ring):
    plan, raws, _ = open_dealt(ring, 2, entries=2000)
    bits = np.unpackbits(np.frombuffer(raws[-1], np.uint8))
    assert abs(bits.mean() - 0.5) < 2.5 / np.sqrt(bits.size)
    ones_in_each_plane = unpack_bits(
        np.frombuffer(raws[-1][32:], "<u8")[: BLOCK_PRODUCTS * plan.blocks * plan.words].reshape(-1, plan.words)
    ).mean(axis=1)
    assert np.abs(ones_in_each_plane - 0.5).max() < 3.5 / np.sqrt(64 * plan.words)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("change", [lambda raw: raw[:-1], lambda raw: raw + b"\0", lambda raw: b""])
def test_a_hand_of_another_length_is_refused(place, change):
    plan, raws, _ = open_dealt(RINGS[0], 3)
    with pytest.raises(RemoteProtocolError, match=f"dealt to place {place} of 3 must have"):
        DealtShares(plan, place=place, raw=change(raws[place]))


def test_hands_of_two_deals_share_no_key():
    plan, raws, _ = open_dealt(RINGS[0], 3)
    others = deal(plan, SeededEntropy(4, "dealer"))
    keys = [raw[:32] for raw in (*raws, *others)]
    assert len(set(keys)) == 6


class Pinned:
    """Entropy whose draw number ``pinned`` is a constant; all others are the operating system's."""

    is_simulation = False

    def __init__(self, pinned):
        self._pinned, self._drawn = pinned, 0

    def bytes(self, count):
        self._drawn += 1
        return b"\x09" * count if self._drawn - 1 == self._pinned else SystemEntropy().bytes(count)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_one_party_is_dealt_says_nothing_about_masks_and_bits(place):
    """Two deals in which one party's key is the same differ in every mask and bit, as two independent ones do."""
    plan = JointLaplace(scale=3.0, entries=400, parties=3, ring=RINGS[0])
    seen = []
    for _ in range(2):
        raws = deal(plan, Pinned(place))
        assert raws[place][:32] == b"\x09" * 32
        dealt = [DealtShares(plan, place=other, raw=raw) for other, raw in enumerate(raws)]
        masks = total(shares.take_masks(plan.precision_bits) for shares in dealt)
        for shares in dealt:
            shares.take_products(BLOCK_PRODUCTS * plan.blocks)
        for layer in plan.layers:
            for shares in dealt:
                shares.take_masks(layer.operands)
                shares.take_products(layer.products)
        bits = plan.ring.sum([shares.take_bits() for shares in dealt])
        seen.append((unpack_bits(masks).ravel(), bits))
    for one, other in zip(*seen, strict=True):
        assert abs((one == other).mean() - 0.5) < 3 / np.sqrt(one.size)


def test_the_last_partys_shares_are_not_those_of_another():
    plan, _, dealt = open_dealt(RINGS[0], 3)
    masks = [shares.take_masks(plan.precision_bits) for shares in dealt]
    for one, other in itertools.combinations(masks, 2):
        assert abs(unpack_bits(one ^ other).mean() - 0.5) < 0.05


def test_nothing_is_dealt_twice():
    """Keys, corrections and random bits of two deals from the operating system's entropy."""
    plan = JointLaplace(scale=3.0, entries=200, parties=3, ring=RINGS[0])
    first, second = (deal(plan, SystemEntropy()) for _ in range(2))
    assert len({raw[:32] for raw in (*first, *second)}) == 6
    ones = [np.unpackbits(np.frombuffer(raws[-1][32:], np.uint8)) for raws in (first, second)]
    assert abs((ones[0] == ones[1]).mean() - 0.5) < 3 / np.sqrt(ones[0].size)
