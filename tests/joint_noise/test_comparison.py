"""The comparison on shares: right for every input, and what it opens is a one-time pad."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.joint_noise.comparison import (
    BLOCK_BITS,
    merge_blocks,
    multiply_opened,
    multiply_subsets,
    pack_bits,
    pair_operands,
    shape_tree,
    stack_operands,
    start_blocks,
    unpack_bits,
)

PARTIES = [2, 3, 4, 5]


def share_out(planes, parties, rng):
    """Uniform XOR shares of planes."""
    shares = [rng.integers(0, 2**64, planes.shape, dtype=np.uint64) for _ in range(parties - 1)]
    return [*shares, np.bitwise_xor.reduce([planes, *shares])]


def compare(is_equal, thresholds, parties, rng, *, leaf_masks=None, layer_masks=None):
    """Run the circuit with this test as the dealer; returns *less* and everything that was opened, as planes.

    ``is_equal`` has bit 0 of every block of four, then bit 1 of every block, as the leaves have; ``thresholds`` is
    lowest plane first.
    """

    def draw(planes):
        return rng.integers(0, 2**64, (planes, is_equal.shape[1]), dtype=np.uint64)

    masks = draw(len(is_equal)) if leaf_masks is None else leaf_masks
    opened = is_equal ^ masks
    dealt = zip(share_out(masks, parties, rng), share_out(multiply_subsets(masks), parties, rng), strict=True)
    blocks = [start_blocks(opened, a, p, thresholds, leads=i == 0) for i, (a, p) in enumerate(dealt)]
    transcript = [opened]
    for layer in shape_tree(len(is_equal) // BLOCK_BITS):
        masks = draw(layer.operands) if layer_masks is None else layer_masks.pop(0)
        left, right = pair_operands(masks, layer)
        mask_shares = share_out(masks, parties, rng)
        product_shares = share_out(left & right, parties, rng)
        opened = np.bitwise_xor.reduce([stack_operands(b, layer) ^ a for b, a in zip(blocks, mask_shares, strict=True)])
        transcript.append(opened)
        blocks = [
            merge_blocks(b, multiply_opened(opened, a, p, layer, leads=i == 0), layer)
            for i, (b, a, p) in enumerate(zip(blocks, mask_shares, product_shares, strict=True))
        ]
    assert all(b.less.shape[0] == 1 and b.equal.shape[0] == 0 for b in blocks)
    return np.bitwise_xor.reduce([b.less for b in blocks]), np.concatenate(transcript)


def planes_of(numbers, bits):
    """Bit planes of a list of whole numbers, lowest first; the number of lanes is filled up to words."""
    rows = np.array([[number >> bit & 1 for number in numbers] for bit in range(bits)], dtype=np.uint8)
    return pack_bits(np.pad(rows, [(0, 0), (0, -len(numbers) % 64)]))


def in_leaf_order(planes):
    """Planes from lowest to highest, rearranged as the leaves have them."""
    return planes.reshape(-1, BLOCK_BITS, planes.shape[1]).swapaxes(0, 1).reshape(planes.shape)


def is_less(uniforms, thetas, bits, parties, rng):
    u, t = planes_of(uniforms, bits), planes_of(thetas, bits)
    less, _ = compare(in_leaf_order(~(u ^ t)), t, parties, rng)
    return unpack_bits(less)[0, : len(uniforms)].astype(bool).tolist()


@pytest.mark.parametrize("parties", PARTIES)
def test_every_number_of_eight_bits_against_every_other(parties):
    numbers = range(256)
    uniforms = [u for u in numbers for _ in numbers]
    thetas = [t for _ in numbers for t in numbers]
    found = is_less(uniforms, thetas, 8, parties, np.random.default_rng(parties))
    assert found == [u < t for u, t in zip(uniforms, thetas, strict=True)]


@settings(max_examples=60, deadline=None)
@given(
    blocks=st.integers(1, 33),
    parties=st.sampled_from(PARTIES),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_any_numbers_and_their_neighbours(blocks, parties, seed, data):
    bits = BLOCK_BITS * blocks
    top = (1 << bits) - 1
    thetas, uniforms = [], []
    for theta in [0, 1, top, 1 << (bits - 1), data.draw(st.integers(0, top)), data.draw(st.integers(0, top))]:
        others = [0, 1, top, theta, max(theta - 1, 0), min(theta + 1, top), theta ^ 1 << (bits - 1)]
        others += data.draw(st.lists(st.integers(0, top), max_size=4))
        uniforms += others
        thetas += [theta] * len(others)
    found = is_less(uniforms, thetas, bits, parties, np.random.default_rng(seed))
    assert found == [u < t for u, t in zip(uniforms, thetas, strict=True)]


def count_openings(node_mask_planes):
    """How often each opening occurs with each secret of eight bits, over all secrets, leaf masks and node masks."""
    lanes = np.arange(1 << 18)
    secret, leaf, node = lanes & 255, lanes >> 8 & 255, lanes >> 16

    def planes(numbers, bits):
        return pack_bits(np.array([numbers >> bit & 1 for bit in range(bits)], dtype=np.uint8))

    theta = np.full(lanes.size, 0b0110_1001)
    less, transcript = compare(
        in_leaf_order(planes(secret, 8)),
        planes(theta, 8),
        2,
        np.random.default_rng(5),
        leaf_masks=planes(leaf, 8),
        layer_masks=[planes(node, 2)[node_mask_planes]],
    )
    assert (unpack_bits(less)[0] == (~(secret ^ theta) & 255 < theta)).all()
    seen = (unpack_bits(transcript).astype(np.int64) << np.arange(10)[:, None]).sum(axis=0)
    return np.bincount(secret * 1024 + seen, minlength=1 << 18)


def test_whatever_the_bits_are_every_opening_occurs_equally_often():
    assert (count_openings([0, 1]) == 1).all()


def test_not_so_if_one_mask_serves_two_operands():
    assert (count_openings([0, 0]) != 1).any()


@pytest.mark.parametrize("blocks", range(1, 70))
def test_layers_merge_all_blocks_in_logarithmic_depth(blocks):
    layers = shape_tree(blocks)
    assert sum(layer.nodes for layer in layers) == blocks - 1
    assert len(layers) == (blocks - 1).bit_length()
    assert sum(layer.products for layer in layers) == 2 * (blocks - 1) - len(layers)
    assert sum(layer.operands for layer in layers) == 3 * (blocks - 1) - len(layers)
