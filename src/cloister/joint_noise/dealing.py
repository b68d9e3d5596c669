"""The dealer's part: correlated randomness that knows no inputs, 32 bytes each for all parties but one.

Every party expands its key to shares of the masks. All but the last expand it to shares of the masks' products and of
random bits too; the last is dealt what makes these come out right. A random bit is shared additively in the ring only:
the lowest bit of a sum modulo 2^w is the XOR of the lowest bits of its terms, so these are its XOR shares.

The dealer receives nothing. What the parties open hides their bits from whoever does not know the masks, and the dealer
does: **openings must not reach the dealer**. What is dealt is for one sample; used twice, its masks are a two-time pad.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import KEY_BYTES, Entropy, Stream
from cloister.errors import RemoteProtocolError
from cloister.joint_noise import comparison
from cloister.joint_noise.comparison import Words
from cloister.joint_noise.plan import JointLaplace
from cloister.numeric import Ring


def deal(plan: JointLaplace, entropy: Entropy) -> tuple[bytes, ...]:
    """Return what each party is dealt, in order.

    Parameters
    ----------
    plan
        What the parties are going to sample.
    entropy
        The dealer's own.
    """
    keys = [entropy.bytes(KEY_BYTES) for _ in range(plan.parties)]
    coins = Stream.from_seed(entropy.bytes(KEY_BYTES), "gmw", "coins")
    last_key = keys.pop()
    last_stream = _open_key(last_key)
    dealt = [DealtShares(plan, place=place, raw=key) for place, key in enumerate(keys)]

    def sum_masks(planes: int) -> Words:
        return _sum_shares(_draw_planes(last_stream, plan, planes), (party.take_masks(planes) for party in dealt))

    def correct_products(products: Words) -> bytes:
        return comparison.write_words(_sum_shares(products, (party.take_products(len(products)) for party in dealt)))

    corrections = [correct_products(comparison.multiply_subsets(sum_masks(plan.precision_bits)))]
    for layer in plan.layers:
        left, right = comparison.pair_operands(sum_masks(layer.operands), layer)
        corrections.append(correct_products(left & right))
    bits: NDArray[Any] = comparison.unpack_bits(coins.words(plan.words, np.uint64)).astype(plan.ring.dtype)
    for party in dealt:
        bits = bits - party.take_bits()
    corrections.append(bits.astype(_element_of(plan.ring), copy=False).tobytes())
    return (*keys, b"".join([last_key, *corrections]))


class DealtShares:
    """What one party was dealt, expanded as it is needed, in the order in which the dealer made it."""

    __slots__ = ("_corrections", "_plan", "_stream")

    def __init__(self, plan: JointLaplace, *, place: int, raw: bytes) -> None:
        is_last = place == plan.parties - 1
        expected = plan.dealt_bytes if is_last else KEY_BYTES
        if len(raw) != expected:
            raise RemoteProtocolError(
                f"what is dealt to place {place} of {plan.parties} must have {expected} bytes; got {len(raw)}. "
                "Deal with the same plan for every party."
            )
        self._plan = plan
        self._stream = _open_key(raw[:KEY_BYTES])
        self._corrections = memoryview(raw)[KEY_BYTES:] if is_last else None

    def take_masks(self, planes: int) -> Words:
        """Return shares of the next masks."""
        return _draw_planes(self._stream, self._plan, planes)

    def take_products(self, planes: int) -> Words:
        """Return shares of the products of the masks taken last."""
        if self._corrections is None:
            return _draw_planes(self._stream, self._plan, planes)
        size = planes * self._plan.words * comparison.WORD_BYTES
        taken, self._corrections = self._corrections[:size], self._corrections[size:]
        return comparison.read_words(taken, planes)

    def take_bits(self) -> NDArray[Any]:
        """Return additive shares of one random bit for each lane; their lowest bits are its XOR shares."""
        ring = self._plan.ring
        if self._corrections is None:
            return self._stream.words(self._plan.words * comparison.WORD_BITS, ring.dtype)
        return np.frombuffer(self._corrections, _element_of(ring)).astype(ring.dtype, copy=False)


def lowest_bits(elements: NDArray[Any]) -> Words:
    """Return the lowest bit of every ring element as one plane."""
    return comparison.pack_bits(elements & 1)


def _element_of(ring: Ring) -> np.dtype[Any]:
    """Return how a ring element is written: little-endian."""
    return np.dtype(ring.dtype).newbyteorder("<")


def _open_key(key: bytes) -> Stream:
    return Stream.from_seed(key, "gmw", "hand")


def _draw_planes(stream: Stream, plan: JointLaplace, planes: int) -> Words:
    return stream.words(planes * plan.words, np.uint64).reshape(planes, plan.words)


def _sum_shares(first: Words, others: Iterable[Words]) -> Words:
    total = first.copy()
    for share in others:
        total ^= share
    return total
