"""Exact arithmetic: real numbers on a fixed-point grid, vectors of whole numbers, the rings Z_2^32 and Z_2^64.

Records and centres are rounded to the grid of multiples of 2^-f once, where they enter. From then on a sum of them is a
sum of integers: exact, in any order and for any split between parties, which is what lets a ring carry it and a mask
hide it.

In a ring, signed integers go in, sums wrap around, signed integers come out. Sums are exact as long as the true sum
stays within ±(2^(bits-1) - 1). Whether it can leave that range is decided from public bounds before a run
(:func:`choose_ring`), never from the data and never by looking at a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.errors import ConfigError, PrecisionError
from cloister.records import FloatArray, IntArray

_MANTISSA_BITS = 53  # below 2^53 every integer is a double, so the grid and the integers convert without loss
RingBits = Literal[32, 64]


@dataclass(frozen=True)
class FixedPoint:
    """A codec between doubles and integer multiples of 2^-f.

    Parameters
    ----------
    fractional_bits
        f, between 1 and 30. The default, 16, moves a coordinate by at most 7.7e-6.
    """

    fractional_bits: int = 16

    def __post_init__(self) -> None:
        bits = self.fractional_bits
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 30:
            raise ConfigError(f"fractional_bits must be a whole number between 1 and 30; got {bits!r}. Use 16.")

    @property
    def scale(self) -> int:
        """The integer that stands for 1: 2^f."""
        return 1 << self.fractional_bits

    @property
    def resolution(self) -> float:
        """The distance between neighbours on the grid: 2^-f."""
        return 1.0 / self.scale

    @property
    def error_bound(self) -> float:
        """The farthest that rounding moves a number: 2^-(f+1)."""
        return 0.5 / self.scale

    def quantise(self, values: ArrayLike) -> FloatArray:
        """Round to the grid, half to even, and return the doubles that lie on it.

        Raises
        ------
        PrecisionError
            As :meth:`encode` does.
        """
        units = self._round_units(values)
        units *= self.resolution  # a power of two: exact
        return units

    def encode(self, values: ArrayLike) -> IntArray:
        """Round to the grid, half to even, and return the multiples of 2^-f as integers.

        Raises
        ------
        PrecisionError
            If a value is not finite, or is 2^(53-f) or more in magnitude: a double has no exact grid point
            there.
        """
        return self._round_units(values).astype(np.int64)

    def decode(self, units: ArrayLike) -> FloatArray:
        """Return the doubles that the integers stand for; exact below 2^53, correctly rounded above."""
        return np.asarray(units, dtype=np.int64).astype(np.float64) * self.resolution

    def _round_units(self, values: ArrayLike) -> FloatArray:
        """Return round(x * 2^f) in a fresh array, after the range check."""
        with np.errstate(over="ignore"):  # an overflow becomes inf, which the check below refuses
            units = np.asarray(np.asarray(values, dtype=np.float64) * float(self.scale))
        # Written so that NaN, for which every comparison is false, counts as out of range.
        inside = (units > -(2.0**_MANTISSA_BITS)) & (units < 2.0**_MANTISSA_BITS)
        if not inside.all():
            raise PrecisionError(
                f"numbers with {self.fractional_bits} fractional bits must be finite and below "
                f"2^{_MANTISSA_BITS - self.fractional_bits} in magnitude; "
                f"{units.size - np.count_nonzero(inside)} of {units.size} are not. "
                f"Use fewer fractional bits, or narrower bounds."
            )
        return np.rint(units, out=units)


def find_reach(longest: int, entries: int) -> float:
    """Return how long a vector of doubles may be so that, rounded to integers, it is at most ``longest``, exactly.

    Lemma. Let x be m doubles and r = longest - sqrt(m)/2 - 1 > 0, and let y be x times r / max(|x|, c) for some
    c >= 0, computed in doubles, with max(|x|, c) >= 1e-100. If longest (m + 4) <= 2^53, then |rint(y)| <= longest.

    Proof. Rounding moves every entry by at most 1/2, so it adds at most sqrt(m)/2 to the length. Summing m squares in
    any order, the root, the quotient and the product leave a relative error in |y| of less than (m + 4) 2^-53 (squares
    that underflow are nothing beside 1e-200), and r (m + 4) 2^-53 < 1. So |rint(y)| < r + 1 + sqrt(m)/2 = longest. The
    same holds for x times a constant r / c where |x| <= c is known beforehand.

    Parameters
    ----------
    longest
        What the length of the integer vector must not exceed.
    entries
        m, how many entries it has.

    Raises
    ------
    ConfigError
        If there is no room for rounding, or too much for doubles.
    """
    reach = longest - sqrt(entries) / 2 - 1
    if reach <= 0 or longest * (entries + 4) > 2**53:
        raise ConfigError(
            f"a vector of m = {entries} integers must be allowed a length greater than sqrt(m)/2 + 1 and at most "
            f"2^53 / (m + 4); got {longest}. If it is too short, give this release a larger share of the budget, or "
            "divide the budget among fewer rounds, columns or cells."
        )
    return reach


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
