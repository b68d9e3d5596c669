"""The rings Z_2^32 and Z_2^64: signed integers in, wrap-around sums, signed integers out.

Sums in a ring are exact as long as the true sum stays within ±(2^(bits-1) - 1). Whether it can leave that range is
decided from public bounds before a run (:func:`choose_ring`), never from the data and never by looking at a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError, PrecisionError
from cloister.records import IntArray

RingBits = Literal[32, 64]


@dataclass(frozen=True)
class Ring:
    """The integers modulo 2^bits, lifted to the signed range when they are read."""

    bits: RingBits

    @property
    def dtype(self) -> type[np.uint32] | type[np.uint64]:
        """The unsigned word that holds an element; its overflow is the ring's addition."""
        return np.uint32 if self.bits == 32 else np.uint64

    @property
    def largest(self) -> int:
        """The largest magnitude that can be read back."""
        return (1 << (self.bits - 1)) - 1

    def encode(self, values: IntArray) -> NDArray[Any]:
        """Reduce signed integers modulo 2^bits."""
        return values.astype(np.int64, copy=False).view(np.uint64).astype(self.dtype)

    def decode(self, elements: NDArray[Any]) -> IntArray:
        """Lift elements to the representatives nearest zero."""
        signed = np.int32 if self.bits == 32 else np.int64
        return elements.astype(self.dtype, copy=False).view(signed).astype(np.int64)

    def sum(self, vectors: list[NDArray[Any]]) -> NDArray[Any]:
        """Add vectors in the ring."""
        total: NDArray[Any] = vectors[0].astype(self.dtype)
        for vector in vectors[1:]:
            total = total + vector  # unsigned array addition wraps silently, which is what is meant
        return total


RING32 = Ring(32)
RING64 = Ring(64)


def choose_ring(largest_sum: int, bits: RingBits | Literal["auto"] = "auto") -> Ring:
    """Return the smallest allowed ring in which no sum can overflow.

    Parameters
    ----------
    largest_sum
        The largest magnitude that any summed entry can reach, from public bounds alone.
    bits
        ``"auto"``, or a ring that the job insists on.

    Raises
    ------
    PrecisionError
        If the sum could leave the ring's range.
    """
    if bits not in ("auto", 32, 64):
        raise ConfigError(f'ring must be "auto", 32 or 64; got {bits!r}. Write ring = "auto".')
    allowed = (RING32, RING64) if bits == "auto" else (Ring(bits),)
    for ring in allowed:
        if largest_sum <= ring.largest:
            return ring
    ring = allowed[-1]
    raise PrecisionError(
        f"sums must stay within ±(2^{ring.bits - 1} - 1) in the {ring.bits}-bit ring; the public bounds allow "
        f"{largest_sum} (about 2^{largest_sum.bit_length()}). "
        + ('Use ring = 64 or "auto", l' if ring.bits == 32 else "L")
        + "ower fractional_bits, or declare a smaller max_records."
    )
