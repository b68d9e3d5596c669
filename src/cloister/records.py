"""The input of local computations: batches of records in the public domain [-1, 1]^d.

Every statistic of a party is a reduction over batches, so a table larger than memory is streamed, once per round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Records(Protocol):
    """One party's records, scaled by the public bounds to [-1, 1] and rounded to the fixed-point grid."""

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""

    def batches(self) -> Iterator[FloatArray]:
        """Yield C-contiguous (n_b, d) arrays; each call starts again from the first record."""


class ArrayRecords:
    """Records that are already in memory."""

    __slots__ = ("_points",)

    def __init__(self, points: FloatArray) -> None:
        self._points = np.ascontiguousarray(points, dtype=np.float64)

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""
        return int(self._points.shape[1])

    def batches(self) -> Iterator[FloatArray]:
        """Yield the whole array as one batch."""
        yield self._points


def iterate_chunks(records: Records, rows: int = 8192) -> Iterator[FloatArray]:
    """Yield the records in pieces of at most ``rows``, so that intermediate results take little memory."""
    for batch in records.batches():
        for first in range(0, len(batch), rows):
            yield batch[first : first + rows]
