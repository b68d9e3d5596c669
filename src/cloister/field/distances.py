"""Decoded distances as exact integers, and the nearest centre by exact comparison.

The server reads d'_ih = |sum_{S_h} x - c_h x_i|^2 with c_h = |S_h| and needs the h with the least d'_ih / c_h^2
(SecFC, section 4.1 and its footnote). Both are integers, so the comparison d'_ih c_g^2 < d'_ig c_h^2 decides it without
any rounding: two widening multiplications, which cost no more than a guarded division in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_inline, compile_loop
from cloister.errors import LocalProtocolError
from cloister.field.kernels import Words, multiply_add
from cloister.records import FloatArray, IntArray

LARGEST_COUNT = 2**32 - 1  # so that the square of a count is one word

_ZERO = np.uint64(0)
_WORD = 2.0**64


@dataclass(frozen=True, kw_only=True, eq=False)
class Distances:
    """Non-negative integers below 2^128.

    Attributes
    ----------
    low
        The lower 64 bits of each.
    high
        The upper 64 bits; None where all are 0, as in a field of one prime.
    """

    low: Words
    high: Words | None

    def to_floats(self) -> FloatArray:
        """Return the nearest doubles, within a relative error of 2^-52 + 2^-106.

        With u = 2^-53, each half is converted with a relative error of at most u, the power of two is exact, and the
        terms are not negative, so their sum has at most u from them and one more rounding: (1 + u)^2 - 1.
        """
        low = self.low.astype(np.float64)
        return low if self.high is None else self.high.astype(np.float64) * _WORD + low

    def to_integers(self) -> NDArray[np.object_]:
        """Return Python integers; slow, for tests and for a few values."""
        low = self.low.astype(object)
        return low if self.high is None else self.high.astype(object) * 2**64 + low

    def count_beyond(self, largest: int) -> int:
        """Return how many are larger than a bound."""
        upper, lower = divmod(min(largest, 2**128 - 1), 2**64)
        beyond = self.low > np.uint64(lower)
        if self.high is None:
            return 0 if upper else int(np.count_nonzero(beyond))
        bound = np.uint64(upper)
        return int(np.count_nonzero((self.high > bound) | ((self.high == bound) & beyond)))


def find_nearest(distances: Distances, counts: IntArray) -> NDArray[np.int32]:
    """Return for each record the h with the least d'_ih / c_h^2, the lowest h on ties; exact.

    Parameters
    ----------
    distances
        (m, k), d'_ih.
    counts
        (k,), c_h, each below 2^32. A cluster with c_h = 0 has no centre and is nearest to no record.

    Raises
    ------
    LocalProtocolError
        If the shapes do not fit, a count is out of range, or every cluster is empty.
    """
    counts = np.asarray(counts, dtype=np.int64)
    low = np.ascontiguousarray(distances.low)
    if low.ndim != 2 or counts.shape != low.shape[1:] or not counts.any():
        raise LocalProtocolError(
            f"there must be one count for each column of distances, and one cluster that is not empty; got "
            f"{counts.shape} counts, {np.count_nonzero(counts)} not 0, and distances of shape {low.shape}."
        )
    if counts.min() < 0 or counts.max() > LARGEST_COUNT:
        raise LocalProtocolError(f"counts must be between 0 and {LARGEST_COUNT}; some are not.")
    squares = counts.astype(np.uint64) ** np.uint64(2)
    labels = np.empty(len(low), dtype=np.int32)
    if distances.high is None:
        _scan_words(low, squares, labels)
    else:
        _scan_pairs(np.ascontiguousarray(distances.high), low, squares, labels)
    return labels


@compile_loop
def _scan_words(low: Words, squares: Words, labels: NDArray[np.int32]) -> None:
    """Find the least d_h / squares_h of each row, for one-word distances."""
    rows, columns = low.shape
    for i in range(rows):
        best, least, scale = -1, _ZERO, _ZERO
        for h in range(columns):
            if squares[h] == _ZERO:
                continue
            left_high, left_low = multiply_add(_ZERO, _ZERO, low[i, h], scale)
            right_high, right_low = multiply_add(_ZERO, _ZERO, least, squares[h])
            less = left_high < right_high or (left_high == right_high and left_low < right_low)
            if best < 0 or less:
                best, least, scale = h, low[i, h], squares[h]
        labels[i] = best


@compile_inline
def _widen(high: np.uint64, low: np.uint64, factor: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return (high 2^64 + low) times a word, as three words."""
    carry, bottom = multiply_add(_ZERO, _ZERO, low, factor)
    top, middle = multiply_add(_ZERO, carry, high, factor)
    return top, middle, bottom


@compile_loop
def _scan_pairs(high: Words, low: Words, squares: Words, labels: NDArray[np.int32]) -> None:
    """Find the least d_h / squares_h of each row, for two-word distances."""
    rows, columns = low.shape
    for i in range(rows):
        best, least_high, least_low, scale = -1, _ZERO, _ZERO, _ZERO
        for h in range(columns):
            if squares[h] == _ZERO:
                continue
            if best < 0 or _widen(high[i, h], low[i, h], scale) < _widen(least_high, least_low, squares[h]):
                best, least_high, least_low, scale = h, high[i, h], low[i, h], squares[h]
        labels[i] = best
