"""Vectors of whole numbers of bounded length: what one record may add to a sum, exact to the last digit."""

from __future__ import annotations

import numpy as np

from cloister.errors import LocalProtocolError
from cloister.records import FloatArray, IntArray

LONGEST_MOST = 2**20


def round_to_length(vectors: FloatArray, longest: int | None) -> IntArray:
    """Round vectors to integers, (..., d), none longer than ``longest``.

    Lemma. With 0 <= longest <= 2^20 and d <= 2000, every result z has |z|^2 <= longest^2, exactly; and it depends on
    its own vector only.

    Proof. z is either checked, in integers, or y truncated towards zero, where y is the vector shortened in doubles:
    |y| <= longest (1 + (d + 4) 2^-53). Then |z|^2 <= |y|^2 < longest^2 + 1, and z's squared length is an integer.
    Squares are added column by column, so no row is rounded in another way because there are others.

    Parameters
    ----------
    vectors
        (..., d), in units, below 2^40.
    longest
        In units; None: round only.
    """
    if longest is None:
        return np.rint(vectors).astype(np.int64)
    if not 0 <= longest <= LONGEST_MOST:
        raise LocalProtocolError(f"a vector's length must be bounded by 0 to 2^20 units; got {longest}: this is a bug.")
    squares = np.zeros(vectors.shape[:-1])
    for j in range(vectors.shape[-1]):
        squares += vectors[..., j] ** 2
    factors = np.minimum(1.0, longest / np.maximum(np.sqrt(squares), max(longest, 1)))
    shortened = vectors * factors[..., None]
    rounded = np.rint(shortened).astype(np.int64)
    too_long = (rounded**2).sum(axis=-1, keepdims=True) > longest**2
    bounded: IntArray = np.where(too_long, np.trunc(shortened).astype(np.int64), rounded)
    return bounded
