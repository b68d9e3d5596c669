"""Grids of cells, on the columns or in a subspace, and their histograms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloister.protocols.guided_sums.subspace import Subspace
from cloister.records import FloatArray, IntArray, Records, iterate_chunks


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """A box cut into equal cells; what lies outside the box counts in the nearest border cell.

    Parameters
    ----------
    low, high
        The box, (m,).
    bins
        How many cells along each axis; 1 where an axis is not looked at.
    subspace
        Where the box lies; None: in the columns themselves.
    """

    low: FloatArray
    high: FloatArray
    bins: IntArray
    subspace: Subspace | None = None

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(np.prod(self.bins))

    @property
    def sides(self) -> FloatArray:
        """The lengths of a cell, (m,)."""
        return (self.high - self.low) / self.bins

    @cached_property
    def centres(self) -> FloatArray:
        """The middle of each cell, (cells, m), in the order of the histogram."""
        middles = np.tile((self.low + self.high) / 2, (self.cells, 1))
        used = np.flatnonzero(self.bins > 1)
        if used.size:
            indices = np.stack(np.unravel_index(np.arange(self.cells), self.bins[used]), axis=1)
            middles[:, used] = self.low[used] + (indices + 0.5) * self.sides[used]
        return middles

    def to_bytes(self) -> bytes:
        """Everything that decides in which cell a record lies."""
        where = () if self.subspace is None else (self.subspace.origin, self.subspace.axes)
        return b"".join(part.tobytes() for part in (self.low, self.high, self.bins, *where))

    def count(self, records: Records) -> IntArray:
        """Return the number of records in each cell: each record is in exactly one."""
        counts = np.zeros(self.cells, dtype=np.int64)
        for points in iterate_chunks(records):
            counts += np.bincount(self.find_cells(points), minlength=self.cells)
        return counts

    def find_cells(self, points: FloatArray) -> IntArray:
        """Return the cell of each point."""
        cells = np.zeros(len(points), dtype=np.int64)
        used = np.flatnonzero(self.bins > 1)
        coordinates = points[:, used] if self.subspace is None else self.subspace.project(points)[:, used]
        for column, axis in zip(coordinates.T, used, strict=True):
            bins = int(self.bins[axis])
            place = (column - self.low[axis]) * (bins / (self.high[axis] - self.low[axis]))
            cells *= bins
            cells += np.clip(place, 0, bins - 1).astype(np.int64)
        return cells


def choose_bins(sides: FloatArray, cells_max: float) -> IntArray:
    """Cut the axis with the longest cells once more, as long as there are at most ``cells_max`` cells."""
    bins = np.ones(len(sides), dtype=np.int64)
    cells = 1.0
    while True:
        axis = int((sides / bins).argmax())
        grown = cells / bins[axis] * (bins[axis] + 1)
        if grown > cells_max or sides[axis] <= 0:
            return bins
        bins[axis] += 1
        cells = grown
