"""From two residues to one integer: the compiled half of reading a field that has two primes.

Garner's form of the Chinese remainder theorem, for x in 0..p q - 1 with residues a modulo p and b modulo q:
x = a + p ((b - a) p^-1 mod q). It needs no number larger than x.
"""

from __future__ import annotations

import numpy as np

from cloister.field.kernels import Words
from cloister.field.words128 import compile_inline, compile_loop, multiply, multiply_add, subtract
from cloister.records import IntArray

_ZERO = np.uint64(0)
_SIGN = np.uint64(1 << 63)


@compile_inline
def _join(a: np.uint64, b: np.uint64, constants: Words) -> tuple[np.uint64, np.uint64]:
    """Return x as (high, low). The constants are p, q with q < p < 2 q, and the inverse of p modulo q."""
    p, q, inverse = constants[0], constants[1], constants[2]
    digit = multiply(subtract(b, a - q if a >= q else a, q), inverse, q)
    pair: tuple[np.uint64, np.uint64] = multiply_add(_ZERO, a, p, digit)
    return pair


@compile_loop
def join_residues(first: Words, second: Words, constants: Words, high: Words, low: Words) -> None:
    """Write the integers in 0..p q - 1 with these residues as high 2^64 + low; all flat."""
    for e in range(first.size):
        high[e], low[e] = _join(first[e], second[e], constants)


@compile_loop
def join_centred(first: Words, second: Words, constants: Words, out: IntArray) -> int:
    """Write the integers nearest zero with these residues; return how many do not fit 63 bits and a sign."""
    top_high, top_low = multiply_add(_ZERO, _ZERO, constants[0], constants[1])
    outside = 0
    for e in range(first.size):
        high, low = _join(first[e], second[e], constants)
        # p q - x: the borrow is 1 where the low word would pass below zero
        rest_low = top_low - low
        rest_high = top_high - high - np.uint64(top_low < low)
        negative = rest_high < high or (rest_high == high and rest_low < low)
        if negative:
            high, low = rest_high, rest_low
        if high != _ZERO or low >= _SIGN:
            outside += 1
            out[e] = 0
        else:
            out[e] = -np.int64(low) if negative else np.int64(low)
    return outside
