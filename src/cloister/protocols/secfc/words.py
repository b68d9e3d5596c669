"""Field elements inside boxes: little-endian bytes of a shape that both ends know."""

from __future__ import annotations

from math import prod

import numpy as np

from cloister.errors import RemoteProtocolError
from cloister.field import Field, Words

_WORD = np.dtype("<u8")
WORD_BYTES = _WORD.itemsize


def write_words(words: Words) -> bytes:
    """Return elements as bytes."""
    return words.astype(_WORD, copy=False).tobytes()


def read_words(plain: bytes, field: Field, shape: tuple[int, ...], *, what: str) -> Words:
    """Return the elements (residues, *shape); refuses another length, and words that are no elements."""
    wanted = prod(shape) * field.residues * WORD_BYTES
    if len(plain) != wanted:
        raise RemoteProtocolError(f"{what} of shape {shape} must have {wanted} bytes; got {len(plain)}.")
    words = np.frombuffer(plain, dtype=_WORD).reshape(field.residues, *shape).astype(np.uint64, copy=False)
    return field.check_received(words, shape, what=what)
