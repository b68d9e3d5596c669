"""The input of local computations: batches of records in the public domain [-1, 1]^d.

Every statistic of a party is a reduction over batches, so a table larger than memory is streamed, once per round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Encoding(Protocol):
    """A map from values as they were stored to the domain, each entry by itself; equal ones map alike."""

    def encode(self, values: FloatArray) -> FloatArray:
        """Return the points of records, (n, d); a missing cell, NaN, stays one."""


class Records(Protocol):
    """One party's records, scaled by the public bounds to [-1, 1] and rounded to the fixed-point grid.

    A missing cell is NaN, where the job imputes such cells; whoever adds up fills it first (`iterate_chunks`).
    """

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""

    def batches(self) -> Iterator[FloatArray]:
        """Yield C-contiguous (n_b, d) arrays; each call starts again from the first record."""


@runtime_checkable
class StoredRecords(Records, Protocol):
    """Records whose values are kept, so that they can be encoded by another map."""

    def encoded_by(self, encoding: Encoding) -> Records:
        """Return the same records, encoded by this map from the values as they were stored."""


class ArrayRecords:
    """Records that are already in memory; they were stored as they are."""

    __slots__ = ("_encoded", "_points")

    def __init__(self, points: FloatArray) -> None:
        self._points = np.ascontiguousarray(points, dtype=np.float64)
        self._encoded: tuple[Encoding, ArrayRecords] | None = None  # the last encoding serves many rounds

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""
        return int(self._points.shape[1])

    def batches(self) -> Iterator[FloatArray]:
        """Yield the whole array as one batch."""
        yield self._points

    def encoded_by(self, encoding: Encoding) -> ArrayRecords:
        """Return the points that this map gives."""
        if self._encoded is None or self._encoded[0] != encoding:
            self._encoded = (encoding, ArrayRecords(encoding.encode(self._points)))
        return self._encoded[1]


def iterate_chunks(
    records: Records, rows: int = 8192, *, fill: float | FloatArray | None = 0.0
) -> Iterator[FloatArray]:
    """Yield the records in pieces of at most ``rows``, so that intermediate results take little memory.

    Missing cells are ``fill``, a number or one for each column; with None they stay NaN.
    """
    for batch in records.batches():
        for first in range(0, len(batch), rows):
            chunk = batch[first : first + rows]
            yield chunk if fill is None else fill_missing(chunk, fill)


def fill_missing(points: FloatArray, fill: float | FloatArray) -> FloatArray:
    """Return the points with missing cells filled; a new array only where some are missing."""
    missing = np.isnan(points)
    return np.where(missing, fill, points) if missing.any() else points
