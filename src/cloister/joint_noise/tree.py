"""[U < theta] on XOR shares, for uniform shared bits and a public theta, in logarithmic depth.

A block of bits carries two shared bits: *less* (its bits of U are below those of theta) and *equal*. A higher block h
and the next lower one l merge as

    less = less_h ^ equal_h less_l,        equal = equal_h equal_l,

and the lowest block never needs *equal*. An AND is Beaver's: with dealt shares of masks a, b and of a b, the parties
open X = x ^ a and Y = y ^ b, and x y = X Y ^ X b ^ Y a ^ a b. Both ANDs of a node have the operand equal_h; it is
masked and opened once.

Everything here is local and linear in shares. Constants go to one party, the one that ``leads``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.joint_noise.words import Words


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
