"""The compiled loops over field elements, one residue at a time, on 128-bit words.

Products of field elements are added up first and reduced once. numba has no 128-bit integer, so a word travels as a
pair (high, low) of 64-bit ones; the compiler turns a :func:`multiply_add` into one widening multiplication and two
additions.

A modulus is q = 2^61 - c with c < 2^5, or a prime below 2^29 (for exhaustive tests). :data:`LAZY_TERMS` products of two
elements and one element more always fit: 63 (2^61 - 1)^2 + 2^61 < 2^128, and for the small primes
63 (2^29)^2 + 2^29 < 2^64, so that their high word is 0.

Every loop takes and gives canonical elements, 0..q-1, and the modulus as its last argument. The last two read a field
of two primes by Garner's form of the Chinese remainder theorem: x in 0..p q - 1 with residues a modulo p and b modulo q
is x = a + p ((b - a) p^-1 mod q), which needs no number larger than x.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_inline, compile_loop, make_instruction
from cloister.late import load_late
from cloister.records import IntArray

ir = load_late("llvmlite.ir")
types = load_late("numba.types")

Words = NDArray[np.uint64]

LAZY_TERMS = 63
PRIME_BITS = 61
LARGEST_SMALL_PRIME = 2**29 - 1

_LIMB_MASK = np.uint64(2**PRIME_BITS - 1)
_ZERO, _THREE, _SHIFT = np.uint64(0), np.uint64(3), np.uint64(PRIME_BITS)
_TOP, _SIGN = np.uint64(1 << PRIME_BITS), np.uint64(1 << 63)
_CHUNK = LAZY_TERMS - 1  # beside one product that is there already


def _type_multiply_add(typing_context: Any, high: Any, low: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Declare ``multiply_add(high, low, a, b)``: (high, low) + a b modulo 2^128, as a pair."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, wide = ir.IntType(64), ir.IntType(128)
        upper, lower, left, right = (builder.zext(argument, wide) for argument in arguments)
        bits = ir.Constant(wide, 64)
        total = builder.add(builder.or_(builder.shl(upper, bits), lower), builder.mul(left, right))
        halves = [builder.trunc(builder.lshr(total, bits), word), builder.trunc(total, word)]
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(*[types.uint64] * 4), generate


multiply_add = make_instruction(_type_multiply_add)


@compile_inline
def reduce_wide(high: Any, low: Any, modulus: Any) -> Any:
    """Return the 128-bit word modulo q, in 0..q-1.

    For q = 2^61 - c: 2^64 = 8 c, so the word is congruent to low + 8 c high < 2^64 + 2^72; the bits of that from 61 on
    count c each, which leaves less than 2^61 + 31 2^11 < 2 q; one subtraction of q at most remains.
    """
    if modulus <= np.uint64(LARGEST_SMALL_PRIME):
        return low % modulus
    c = _TOP - modulus
    high, low = multiply_add(_ZERO, low, high, c << _THREE)
    rest = (low & _LIMB_MASK) + c * ((high << _THREE) | (low >> _SHIFT))
    return rest - modulus if rest >= modulus else rest


@compile_inline
def multiply(a: Any, b: Any, modulus: Any) -> Any:
    """Return a b modulo q."""
    high, low = multiply_add(_ZERO, _ZERO, a, b)
    return reduce_wide(high, low, modulus)


@compile_inline
def add(a: Any, b: Any, modulus: Any) -> Any:
    """Return a + b modulo q; both below q."""
    total = a + b
    return total - modulus if total >= modulus else total


@compile_inline
def subtract(a: Any, b: Any, modulus: Any) -> Any:
    """Return a - b modulo q; both below q."""
    return a - b if a >= b else a + modulus - b


@compile_inline
def _add_products(left: Words, right: Words, start: int, stop: int, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return low + sum_{start <= j < stop} left_j right_j as a pair."""
    high = _ZERO
    for j in range(np.uintp(start), np.uintp(stop)):  # unsigned: no test for an index below zero
        high, low = multiply_add(high, low, left[j], right[j])
    return high, low


@compile_inline
def _multiply_vectors(left: Words, right: Words, modulus: np.uint64) -> np.uint64:
    """Return the inner product modulo q. The first chunk is outside the loop: mostly there is no other."""
    first = min(left.size, LAZY_TERMS)
    high, low = _add_products(left, right, 0, first, _ZERO)
    total: np.uint64 = reduce_wide(high, low, modulus)
    for start in range(first, left.size, LAZY_TERMS):
        high, low = _add_products(left, right, start, min(start + LAZY_TERMS, left.size), total)
        total = reduce_wide(high, low, modulus)
    return total


@compile_loop
def multiply_rows(rows: Words, weights: Words, out: Words, first: int, modulus: np.uint64) -> None:
    """Write the matrix product weights (o, u) times rows (N, u) transposed to N columns of ``out`` from ``first`` on.

    The u terms of one sum lie together on both sides, and a row serves all o outputs while it is near.
    """
    for e in range(rows.shape[0]):
        for j in range(weights.shape[0]):
            out[j, first + e] = _multiply_vectors(rows[e], weights[j], modulus)


@compile_inline
def _add_product_pairs(
    row: Words, other: Words, factors: Words, start: int, stop: int, sums: tuple[np.uint64, ...]
) -> tuple[np.uint64, ...]:
    """Add two rows' inner products with the same factors to two sums; the two chains of additions overlap."""
    high, low, other_high, other_low = sums
    for j in range(np.uintp(start), np.uintp(stop)):
        high, low = multiply_add(high, low, row[j], factors[j])
        other_high, other_low = multiply_add(other_high, other_low, other[j], factors[j])
    return high, low, other_high, other_low


@compile_loop
def expand_distances(
    rows: Words, norms: Words, factors: Words, norm_factors: Words, offsets: Words, out: Words, modulus: np.uint64
) -> None:
    """Write offsets_h + factors_h . rows_i + norm_factors_h norms_i for every row i and every h.

    Rows go in pairs; the last of an odd number is paired with itself.
    """
    count, width = rows.shape
    first = min(width, _CHUNK)
    for i in range(0, count, 2):
        other = min(i + 1, count - 1)
        for h in range(factors.shape[0]):
            high, low = multiply_add(_ZERO, offsets[h], norms[i], norm_factors[h])
            other_high, other_low = multiply_add(_ZERO, offsets[h], norms[other], norm_factors[h])
            sums = _add_product_pairs(rows[i], rows[other], factors[h], 0, first, (high, low, other_high, other_low))
            low, other_low = reduce_wide(sums[0], sums[1], modulus), reduce_wide(sums[2], sums[3], modulus)
            for start in range(first, width, _CHUNK):
                stop = min(start + _CHUNK, width)
                sums = _add_product_pairs(rows[i], rows[other], factors[h], start, stop, (_ZERO, low, _ZERO, other_low))
                low, other_low = reduce_wide(sums[0], sums[1], modulus), reduce_wide(sums[2], sums[3], modulus)
            out[i, h] = low
            out[other, h] = other_low


@compile_loop
def square_rows(rows: Words, out: Words, modulus: np.uint64) -> None:
    """Write the squared norm of every row."""
    for i in range(rows.shape[0]):
        out[i] = _multiply_vectors(rows[i], rows[i], modulus)


@compile_loop
def sum_labelled_rows(rows: Words, labels: NDArray[np.int32], out: Words, modulus: np.uint64) -> None:
    """Add every row to the row of ``out`` that its label names; a negative label names none."""
    count, width = rows.shape
    for i in range(count):
        h = labels[i]
        if h >= 0:
            for j in range(width):
                out[h, j] = add(out[h, j], rows[i, j], modulus)


@compile_loop
def add_elements(total: Words, term: Words, modulus: np.uint64) -> None:
    """Add ``term`` to ``total`` in place; both flat."""
    for e in range(total.size):
        total[e] = add(total[e], term[e], modulus)


@compile_loop
def subtract_elements(total: Words, term: Words, modulus: np.uint64) -> None:
    """Subtract ``term`` from ``total`` in place; both flat."""
    for e in range(total.size):
        total[e] = subtract(total[e], term[e], modulus)


@compile_loop
def scale_rows(rows: Words, factors: Words, out: Words, modulus: np.uint64) -> None:
    """Write each row times its own factor; ``out`` may be ``rows``."""
    count, width = rows.shape
    for i in range(count):
        for j in range(width):
            out[i, j] = multiply(rows[i, j], factors[i], modulus)


@compile_loop
def shift_words(words: Words, shift: np.uint64, out: Words, modulus: np.uint64) -> int:
    """Write the upper bits of each word; return how many of the results are not below q."""
    rejected = 0
    for e in range(words.size):
        out[e] = words[e] >> shift
        rejected += out[e] >= modulus
    return rejected


@compile_loop
def reduce_signed(values: IntArray, out: Words, modulus: np.uint64) -> None:
    """Write signed integers modulo q; both flat."""
    signed = np.int64(modulus)
    for e in range(values.size):
        value = values[e]
        if value >= signed or value <= -signed:
            value %= signed
        out[e] = np.uint64(value if value >= 0 else value + signed)


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
