"""The compiled loops over field elements, one residue at a time.

Every loop takes and gives canonical elements, 0..q-1, and the modulus as its last argument. Sums of products follow
:mod:`~cloister.field.words128`: at most 63 products and one element are added up before a reduction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.field.words128 import (
    LAZY_TERMS,
    add,
    compile_inline,
    compile_loop,
    multiply,
    multiply_add,
    reduce_wide,
    subtract,
)
from cloister.records import IntArray

Words = NDArray[np.uint64]

_ZERO = np.uint64(0)
_CHUNK = LAZY_TERMS - 1  # beside one product that is there already


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
