"""The leaves of a comparison: blocks of four shared uniform bits against public ones, without opening a bit.

A block is told by e_j = [u_j = t_j], which is as uniform as u_j; the parties share e_j and never u_j. With the products
P_j = e_3 e_2 ... e_j of the highest bits, P_4 = 1, a block is equal to its part of theta if P_0 = 1, and

    less = XOR over j of t_j (P_{j+1} ^ P_j):        bit j is the highest that differs, and theta has the 1 there.

The dealt masks a_j come with shares of the products a_S over all subsets S. If Z_j = e_j ^ a_j is public, a product of
e_j = a_j ^ Z_j is linear in the a_S: for one j after the other, a_S with j in S becomes a_S ^ Z_j a_{S without j}.
"""

from __future__ import annotations

import numpy as np

from cloister.joint_noise.tree import Blocks
from cloister.joint_noise.words import Words

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
