"""Dealt shares: they correlate as they must, all but one are a key, and malformed ones are refused."""

import numpy as np
import pytest

from cloister.crypto import SeededEntropy
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
