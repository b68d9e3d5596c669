"""Runs whole joint samples, and recomputes in the clear what their circuit should have found."""

import numpy as np

from cloister.crypto import SeededEntropy, Stream
from cloister.joint_noise import JointSampler, deal
from cloister.joint_noise.comparison import unpack_bits
from cloister.joint_noise.dealing import DealtShares
from cloister.numeric import RING32, RING64

RINGS = [RING32, RING64]


class Run:
    """One joint sample: everything dealt, opened and shared."""

    def __init__(self, plan, seed=1, *, dealt=None, changed_place=None):
        self.plan = plan
        self.dealt = deal(plan, SeededEntropy(seed, "dealer")) if dealt is None else dealt
        labels = [f"party {place}{' changed' if place == changed_place else ''}" for place in range(plan.parties)]
        self.parties = [
            JointSampler(plan, place=place, dealt=shares, entropy=SeededEntropy(seed, labels[place]))
            for place, shares in enumerate(self.dealt)
        ]
        self.openings = []
        while not self.parties[0].finished:
            opened = {place: party.open() for place, party in enumerate(self.parties)}
            self.openings.append(opened)
            for place, party in enumerate(self.parties):
                party.receive({other: raw for other, raw in opened.items() if other != place})

    @property
    def noise(self):
        return self.plan.ring.decode(self.plan.ring.sum([party.shares for party in self.parties]))

    @property
    def opened_planes(self):
        """What all learn in every step, as zeros and ones: the leaves first, then the layers and the conversion."""
        plan = self.plan
        rows = [expand_keys(plan, self.openings[0])]
        for step in self.openings[1:]:
            words = np.bitwise_xor.reduce([np.frombuffer(raw, "<u8") for raw in step.values()])
            rows.append(words.reshape(-1, plan.words))
        return unpack_bits(np.concatenate(rows))[:, : plan.lanes]


def expand_keys(plan, keys):
    """Z: the leaves that all keys of step 0 together open."""
    shape = (plan.precision_bits, plan.words)
    streams = [Stream.from_seed(key, "gmw", "leaves", place) for place, key in keys.items()]
    return np.bitwise_xor.reduce([stream.words(shape[0] * shape[1], np.uint64).reshape(shape) for stream in streams])


def compute_in_the_clear(plan, dealt, keys, thresholds):
    """The noise, from what the dealer dealt and the keys of step 0, by comparing whole numbers.

    This is also the attack of the dealer together with one party.
    """
    masks = [DealtShares(plan, place=place, raw=raw).take_masks(plan.precision_bits) for place, raw in enumerate(dealt)]
    is_equal = unpack_bits(np.bitwise_xor.reduce(masks) ^ expand_keys(plan, keys))[:, : plan.lanes]
    digits = []
    for lane in range(plan.lanes):
        theta = thresholds[lane // (2 * plan.entries)]
        uniform = 0
        for bit in range(plan.precision_bits):
            row = bit % 4 * plan.blocks + bit // 4  # bit 0 of every block of four, then bit 1 of every block
            is_set = theta >> bit & 1 if is_equal[row, lane] else 1 - (theta >> bit & 1)
            uniform |= is_set << bit
        digits.append(int(uniform < theta))
    by_sign = np.array(digits, dtype=np.int64).reshape(plan.digits, 2, plan.entries)
    return (1 << np.arange(plan.digits, dtype=np.int64)) @ (by_sign[:, 0] - by_sign[:, 1])
