"""A codebook: a few cells into which a party sorts its records by its own columns, and what is left over.

One or two columns are cut into a grid in a box around the records; for more columns, see :mod:`.codebook_makers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from cloister.kmeans.kernel import nearest
from cloister.privacy.mechanisms import Release
from cloister.protocols.synopsis.extent import Box
from cloister.protocols.vertical.layout import cut_axes, join_reps
from cloister.protocols.vertical.query import round_to_length
from cloister.protocols.vertical.settings import Settings
from cloister.records import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Codebook:
    """The cells of one party, public once they are made; only the holder knows which record is in which.

    Parameters
    ----------
    reps
        (m, d_h): the cells' representatives, on the grid of units. A record is in the cell of the nearest one; on ties,
        of the first.
    units
        How many units make 1.
    residual_radius
        The bound on residuals' lengths, in units. 0: there are none. None: they are not clipped.
    variance
        About the mean squared distance of a record to its representative.
    weights
        (m,): about how many records each cell holds, where that was released; else all 1.
    bins
        How many cells along each column, of a grid; empty for a codebook that was made from records.
    releases
        What making it was charged for.
    """

    reps: FloatArray
    units: int
    residual_radius: int | None
    variance: float
    weights: FloatArray
    bins: tuple[int, ...] = ()
    releases: tuple[Release, ...] = ()

    @property
    def cells(self) -> int:
        """M."""
        return len(self.reps)

    @property
    def columns(self) -> int:
        """d_h."""
        return int(self.reps.shape[1])

    @property
    def is_grid(self) -> bool:
        """Whether its cells are those of a grid."""
        return len(self.bins) == self.columns

    def assign(self, points: FloatArray) -> NDArray[np.int32]:
        """Return each point's cell, (n,); it depends on no other point."""
        if self.cells == 1:
            return np.zeros(len(points), dtype=np.int32)
        return nearest(np.ascontiguousarray(points), self.reps).labels

    def residuals(self, points: FloatArray, cells: NDArray[np.integer]) -> IntArray:
        """Return each point's offset from its representative, (n, d_h), in units, clipped by its holder."""
        if self.residual_radius == 0:
            return np.zeros(points.shape, dtype=np.int64)
        return round_to_length((points - self.reps[cells]) * self.units, self.residual_radius)


@dataclass(frozen=True, kw_only=True, eq=False)
class Codebooks:
    """Alice's codebook and those of the encrypted holders, in turn."""

    alice: Codebook
    holders: tuple[Codebook, ...]

    @property
    def cells(self) -> int:
        """m: how many joint cells there are."""
        return prod(own.cells for own in self.holders)

    @cached_property
    def reps(self) -> FloatArray:
        """(m, d_B): the representatives of the joint cells."""
        return join_reps([own.reps for own in self.holders])

    @property
    def residual_radius(self) -> int | None:
        """Of the only holder that may have residuals; 0: none."""
        return self.holders[0].residual_radius if len(self.holders) == 1 else 0


def grid_codebook(settings: Settings, box: Box, *, cells: int, residuals: bool) -> Codebook:
    """Cut a box into equal cells; what lies outside belongs to the nearest of them.

    Parameters
    ----------
    settings
        Public values.
    box
        In [-1, 1]^d_h, d_h = 0 to 2 usually; released, or all of it.
    cells
        At most so many.
    residuals
        Whether its holder encrypts residuals.
    """
    sides = box.high - box.low
    bins = cut_axes(len(sides), cells)
    halves = sides / (2 * np.array(bins))
    axes = [low + (2 * np.arange(own) + 1) * half for low, half, own in zip(box.low, halves, bins, strict=True)]
    reps = quantise_reps(join_reps([axis[:, None] for axis in axes]), settings.units) if axes else np.zeros((1, 0))
    # Half a cell and the rounding of its middle along each column, to the next unit.
    longest = sqrt(((halves * settings.units + 0.5) ** 2).sum())
    radius = None if settings.is_exact else min(ceil(longest) + 1, settings.residual_most)
    return Codebook(
        reps=reps,
        units=settings.units,
        residual_radius=radius if residuals else 0,
        variance=float((halves**2).sum() / 3),
        weights=np.ones(len(reps)),
        bins=bins,
    )


def quantise_reps(reps: FloatArray, units: int) -> FloatArray:
    """Put representatives on the grid of units, inside [-1, 1]."""
    rounded: FloatArray = np.clip(np.rint(reps * units), -units, units) / units
    return rounded
