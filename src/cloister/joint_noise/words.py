"""Bit planes: one bit for each lane, 64 lanes in a word, so that one word operation works on 64 gates at once."""

from __future__ import annotations

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
