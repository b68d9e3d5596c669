"""One party of the joint sample: a state machine that opens and receives, step by step, and ends with its shares.

::

    step 0                open a fresh key;  all keys together expand to the opened leaves Z;  e = a ^ Z
    steps 1..D            open equal_h ^ a, less_l ^ b, equal_l ^ b' of every node        one step for each layer
    step D + 1            open c = digit ^ r;  share of the digit = c + (1 - 2 c) [r]
    end                   share of the noise = sum_i 2^i ([digit i of G1] - [digit i of G2])

In step 0 each party would draw its share of e, mask it with its share of a, and open that. One is uniform as the other
is, so it draws what it opens, as a key: 32 bytes in place of the widest layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import KEY_BYTES, Entropy, Stream
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.joint_noise import comparison
from cloister.joint_noise.comparison import Words
from cloister.joint_noise.dealing import DealtShares, lowest_bits
from cloister.joint_noise.plan import JointLaplace

_NOTHING: Words = np.zeros((0, 0), dtype=np.uint64)
_NO_BLOCKS = comparison.Blocks(less=_NOTHING, equal=_NOTHING)


class JointSampler:
    """One party's side of a joint sample.

    Parameters
    ----------
    plan
        The same for all parties.
    place
        This party's number, from 0 to parties - 1.
    dealt
        What the dealer made for this place; used for one sampler only.
    entropy
        This party's own, which the dealer does not know.

    Privacy
    -------
    Draws noise and releases nothing. All parties but one together learn nothing about it from what they were dealt,
    their shares and all openings; nor does the dealer, which sees no opening. The dealer and one party together learn
    all of it (docs/proofs/joint-noise.md).
    """

    def __init__(self, plan: JointLaplace, *, place: int, dealt: bytes, entropy: Entropy) -> None:
        if not 0 <= place < plan.parties:
            raise LocalProtocolError(f"a place must be from 0 to {plan.parties - 1}; got {place}.")
        self._plan = plan
        self._place = place
        self._leads = place == 0
        self._dealt = DealtShares(plan, place=place, raw=dealt)
        self._step = 0
        self._opening = entropy.bytes(KEY_BYTES)
        self._blocks = _NO_BLOCKS
        self._masks = _NOTHING
        self._bits: NDArray[Any] = _NOTHING
        self._shares: NDArray[Any] | None = None

    @property
    def finished(self) -> bool:
        """Whether the shares are there."""
        return self._shares is not None

    @property
    def shares(self) -> NDArray[Any]:
        """The additive shares of the noise that this party has: ring elements, one for each entry."""
        if self._shares is None:
            raise LocalProtocolError(
                f"shares are there after {self._plan.steps} steps; got as far as {self._step}. Open and receive first."
            )
        return self._shares

    def open(self) -> bytes:
        """Return what this party opens in the present step, to be sent to all others and never to the dealer."""
        self._check_unfinished()
        return self._opening

    def receive(self, openings: Mapping[int, bytes]) -> None:
        """Take the openings of all other places and go on to the next step.

        Raises
        ------
        RemoteProtocolError
            If a place is missing, unknown or this party's own, or an opening has a wrong length; nothing has changed
            then.
        """
        self._check_unfinished()
        self._check_openings(openings)
        if self._step == 0:
            self._start(openings)
        elif self._step <= len(self._plan.layers):
            self._climb(openings)
        else:
            self._convert(openings)
        self._step += 1
        if not self.finished:
            self._opening = self._mask()

    def _start(self, openings: Mapping[int, bytes]) -> None:
        """Expand all keys to the opened leaves; make blocks of four bits."""
        plan = self._plan
        opened = np.zeros((plan.precision_bits, plan.words), dtype=np.uint64)
        for place, key in sorted({**openings, self._place: self._opening}.items()):
            leaves = Stream.from_seed(key, "gmw", "leaves", place)  # a key that was copied still gives other leaves
            opened ^= leaves.words(opened.size, np.uint64).reshape(opened.shape)
        masks = self._dealt.take_masks(plan.precision_bits)
        products = self._dealt.take_products(comparison.BLOCK_PRODUCTS * plan.blocks)
        self._blocks = comparison.start_blocks(opened, masks, products, plan.thresholds, leads=self._leads)

    def _climb(self, openings: Mapping[int, bytes]) -> None:
        """Multiply what was opened of one layer and merge its blocks."""
        layer = self._plan.layers[self._step - 1]
        opened = self._combine(openings, layer.operands)
        products = comparison.multiply_opened(
            opened, self._masks, self._dealt.take_products(layer.products), layer, leads=self._leads
        )
        self._blocks = comparison.merge_blocks(self._blocks, products, layer)

    def _convert(self, openings: Mapping[int, bytes]) -> None:
        """Turn XOR shares of the digits into additive ones and add the digits up."""
        plan = self._plan
        flips = comparison.unpack_bits(self._combine(openings, 1)[0]).astype(plan.ring.dtype)  # c = digit ^ r
        digits = self._bits * (1 - 2 * flips)  # r ^ c = c + (1 - 2 c) r
        if self._leads:
            digits += flips
        self._shares = weigh_digits(digits[: plan.lanes], plan)
        self._blocks, self._masks, self._bits = _NO_BLOCKS, _NOTHING, _NOTHING

    def _mask(self) -> bytes:
        """Return the next opening; its masks are kept for when the others' have come."""
        if self._step <= len(self._plan.layers):
            layer = self._plan.layers[self._step - 1]
            self._masks = self._dealt.take_masks(layer.operands)
            return comparison.write_words(comparison.stack_operands(self._blocks, layer) ^ self._masks)
        self._bits = self._dealt.take_bits()
        return comparison.write_words(self._blocks.less ^ lowest_bits(self._bits))

    def _combine(self, openings: Mapping[int, bytes], planes: int) -> Words:
        """Add all parties' openings of this step up."""
        opened = comparison.read_words(self._opening, planes).copy()
        for opening in openings.values():
            opened ^= comparison.read_words(opening, planes)
        return opened

    def _check_unfinished(self) -> None:
        if self.finished:
            raise LocalProtocolError(f"a joint sample has {self._plan.steps} steps; all are done. Read the shares.")

    def _check_openings(self, openings: Mapping[int, bytes]) -> None:
        others = set(range(self._plan.parties)) - {self._place}
        if set(openings) != others:
            raise RemoteProtocolError(
                f"openings must come from the {len(others)} other places, once each; got {len(openings)}, of which "
                f"{len(others & set(openings))} fit."
            )
        expected = self._plan.opening_bytes[self._step]
        for place in sorted(others):
            if len(openings[place]) != expected:
                raise RemoteProtocolError(
                    f"an opening of step {self._step} must have {expected} bytes; got {len(openings[place])} from "
                    f"place {place}."
                )


def weigh_digits(digits: NDArray[Any], plan: JointLaplace) -> NDArray[Any]:
    """Return G1 - G2 = sum_i 2^i (digit i of G1 - digit i of G2) for every entry, in the ring."""
    weights = np.array([1 << digit for digit in range(plan.digits)], dtype=plan.ring.dtype)
    by_sign = digits.reshape(plan.digits, 2, plan.entries)
    noise: NDArray[Any] = weights @ (by_sign[:, 0] - by_sign[:, 1])
    return noise
