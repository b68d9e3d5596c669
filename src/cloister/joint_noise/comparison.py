"""[U < theta] on XOR shares, for uniform shared bits and a public theta, in logarithmic depth.

Bits lie in planes, one bit for each lane and 64 lanes in a word, so that one word operation works on 64 gates at once.
Everything here is local and linear in shares. Constants go to one party, the one that ``leads``.

*Leaves.* A block of four shared uniform bits is compared with public ones without opening a bit. It is described by
e_j = [u_j = t_j], which is as uniform as u_j; the parties share e_j and never u_j. With the products
P_j = e_3 e_2 ... e_j of the highest bits, P_4 = 1, a block is equal to its part of theta if P_0 = 1, and

    less = XOR over j of t_j (P_{j+1} ^ P_j):        bit j is the highest that differs, and theta has the 1 there.

The dealt masks a_j come with shares of the products a_S over all subsets S. If Z_j = e_j ^ a_j is public, a product of
e_j = a_j ^ Z_j is linear in the a_S: for one j after the other, a_S with j in S becomes a_S ^ Z_j a_{S without j}.

*Tree.* A block of bits carries two shared bits: *less* (its bits of U are below those of theta) and *equal*. A higher
block h and the next lower one l merge as

    less = less_h ^ equal_h less_l,        equal = equal_h equal_l,

and the lowest block never needs *equal*. An AND is Beaver's: with dealt shares of masks a, b and of a b, the parties
open X = x ^ a and Y = y ^ b, and x y = X Y ^ X b ^ Y a ^ a b. Both ANDs of a node have the operand equal_h; it is
masked and opened once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""Planes of bits, shape (planes, words): lane j is bit j mod 64 of word j // 64."""

WORD_BITS = 64
WORD_BYTES = 8


def pack_bits(bits: NDArray[Any]) -> Words:
    """Pack zeros and ones along the last axis, whose length is a multiple of 64."""
    return np.packbits(bits.astype(np.uint8, copy=False), axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def unpack_bits(words: Words) -> NDArray[np.uint8]:
    """Return the bits along the last axis, as zeros and ones."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), axis=-1, bitorder="little")


def write_words(words: Words) -> bytes:
    """Write planes one after the other, little-endian."""
    return words.astype("<u8", copy=False).tobytes()


def read_words(raw: bytes | memoryview, planes: int) -> Words:
    """Read ``planes`` planes of equal length."""
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64, copy=False).reshape(planes, -1)


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of the tree, for each lane: every node has two ANDs on three operands, the lowest one AND on two."""

    nodes: int

    @property
    def operands(self) -> int:
        """How many bits are opened."""
        return 3 * self.nodes - 1

    @property
    def products(self) -> int:
        """How many ANDs are computed."""
        return 2 * self.nodes - 1


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """One party's shares of *less* for blocks 0, 1, ... (0 is the lowest) and of *equal* for blocks 1, 2, ..."""

    less: Words
    equal: Words


def shape_tree(blocks: int) -> tuple[Layer, ...]:
    """Return the layers that merge blocks into one; an odd block is left over at the top and waits."""
    layers = []
    while blocks > 1:
        layers.append(Layer(nodes=blocks // 2))
        blocks -= blocks // 2
    return tuple(layers)


def stack_operands(blocks: Blocks, layer: Layer) -> Words:
    """Return the shares that a layer opens: equal_h and less_l of every node, equal_l of every node but the lowest."""
    used = 2 * layer.nodes
    return np.concatenate([blocks.equal[0:used:2], blocks.less[0:used:2], blocks.equal[1 : used - 2 : 2]])


def pair_operands(rows: Words, layer: Layer) -> tuple[Words, Words]:
    """Return the left and the right operand of each product: equal_h with less_l, then equal_h with equal_l."""
    higher = rows[: layer.nodes]
    return np.concatenate([higher, higher[1:]]), rows[layer.nodes :]


def multiply_opened(opened: Words, masks: Words, mask_products: Words, layer: Layer, *, leads: bool) -> Words:
    """Return a share of every product of a layer from the opened operands and the dealt shares."""
    opened_left, opened_right = pair_operands(opened, layer)
    mask_left, mask_right = pair_operands(masks, layer)
    products: Words = mask_products ^ (opened_left & mask_right) ^ (opened_right & mask_left)
    return products ^ (opened_left & opened_right) if leads else products


def merge_blocks(blocks: Blocks, products: Words, layer: Layer) -> Blocks:
    """Return the next layer's blocks from the products of this one."""
    used = 2 * layer.nodes
    less = blocks.less[1:used:2] ^ products[: layer.nodes]
    return Blocks(
        less=np.concatenate([less, blocks.less[used:]]),
        equal=np.concatenate([products[layer.nodes :], blocks.equal[used - 1 :]]),
    )


BLOCK_BITS = 4
SUBSETS = tuple(subset for subset in range(1 << BLOCK_BITS) if subset.bit_count() > 1)
"""Sets of bits, as numbers, whose products must be dealt: a_S of one bit is its mask."""

BLOCK_PRODUCTS = len(SUBSETS)
BLOCK_GATES = BLOCK_BITS - 1
"""ANDs that the products P_j would take one after the other."""

_SINGLES = [1 << bit for bit in range(BLOCK_BITS)]
_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def multiply_subsets(masks: Words) -> Words:
    """Return a_S of every subset in `SUBSETS`, from the masks themselves; this is the dealer's.

    Parameters
    ----------
    masks
        Bit 0 of every block, then bit 1 of every block, and so on.
    """
    by_bit = masks.reshape(BLOCK_BITS, -1, masks.shape[1])
    table = np.full((1 << BLOCK_BITS, *by_bit.shape[1:]), _ALL)
    for bit in range(BLOCK_BITS):
        with_bit = _split(table, bit)[:, 1]
        with_bit &= by_bit[bit]
    return table[list(SUBSETS)].reshape(-1, masks.shape[1])


def start_blocks(opened: Words, masks: Words, mask_products: Words, thresholds: Words, *, leads: bool) -> Blocks:
    """Return one party's shares of *less* and *equal* of every block.

    Parameters
    ----------
    opened
        Z, public, in the order of the masks.
    masks, mask_products
        This party's dealt shares.
    thresholds
        The bits of theta, public, lowest plane first.
    leads
        Whether this party takes the constants.
    """
    words = masks.shape[1]
    by_bit = opened.reshape(BLOCK_BITS, -1, words)
    table = np.zeros((1 << BLOCK_BITS, *by_bit.shape[1:]), dtype=np.uint64)
    table[0] = _ALL if leads else 0
    table[_SINGLES] = masks.reshape(by_bit.shape)
    table[list(SUBSETS)] = mask_products.reshape(BLOCK_PRODUCTS, -1, words)
    for bit in range(BLOCK_BITS):
        halves = _split(table, bit)
        with_bit = halves[:, 1]
        with_bit ^= halves[:, 0] & by_bit[bit]
    prefixes = [table[(1 << BLOCK_BITS) - (1 << bit)] for bit in range(BLOCK_BITS + 1)]
    less = np.zeros(by_bit.shape[1:], dtype=np.uint64)
    for bit in range(BLOCK_BITS):
        less ^= thresholds[bit::BLOCK_BITS] & (prefixes[bit + 1] ^ prefixes[bit])
    return Blocks(less=less, equal=prefixes[0][1:])


def _split(table: Words, bit: int) -> Words:
    """View a table over all subsets with the second axis telling whether a bit is in the subset."""
    return table.reshape(-1, 2, 1 << bit, *table.shape[1:])
