"""The questions that only the synopsis asks: columns, middle, distances, and the histogram over a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod, sqrt
from typing import Self

import numpy as np

from cloister.numeric import find_reach
from cloister.protocols.guided_sums.query import (
    LENGTH_LEAST,
    SHARE_MOST,
    Form,
    PublicValues,
    Question,
    Share,
    count_rows,
    largest_array,
    take_lengths,
    take_points,
)
from cloister.protocols.guided_sums.settings import require
from cloister.protocols.guided_sums.statistics import UNITS, Plane, Subspace, count_offsets, measure_lengths
from cloister.records import FloatArray, IntArray, Records, iterate_chunks
from cloister.wire import Array

BOX_BINS = 16
"""Of each column's histogram: bounds may be cut to a sixteenth; narrower bins hold fewer records under equal noise."""
NORM_BINS = 24
"""Of the distances from the middle: each ends a factor 2^(1/4) below the last, down to a fiftieth of the longest."""


class Columns(Question, frozen=True, kw_only=True):
    """A histogram of each column.

    Privacy
    -------
    A record adds a to one bin of each of d histograms: squared L2 norm d a^2 <= share.
    """

    share: Share

    def form(self, public: PublicValues) -> Form:
        """Count."""
        d = public.settings.dimensions
        height = isqrt(self.share // d)
        require(height >= 1, "the share of a question about columns", f"at least {d}", self.share)

        def measure(party: Records) -> IntArray:
            counts = np.zeros((d, BOX_BINS), dtype=np.int64)
            for points in iterate_chunks(party):
                bins = np.clip((points + 1.0) * (BOX_BINS / 2), 0, BOX_BINS - 1).astype(np.int64)
                bins += BOX_BINS * np.arange(d)
                counts += np.bincount(bins.ravel(), minlength=counts.size).reshape(counts.shape)
            return height * counts.ravel()

        return Form(length=d * BOX_BINS, l2_squared=d * height**2, measure=measure)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(share=SHARE_MOST)


_COUNT_PART = 4  # in the sum of all records, a count weighs a quarter of the longest record


class Middle(Question, frozen=True, kw_only=True):
    """The sum of all records, and their number.

    Privacy
    -------
    A record becomes an integer vector z, |z| <= c: a record of length sqrt(d), the longest, becomes one of length c.
    It adds (z, b), b = c / 4: the squared L2 norm is at most c^2 + b^2 <= share.
    """

    share: Share

    def split(self, dimensions: int) -> tuple[int, int, float]:
        """Return c, b, and what a coordinate is multiplied by."""
        longest = isqrt(self.share * _COUNT_PART**2 // (_COUNT_PART**2 + 1))
        return longest, longest // _COUNT_PART, find_reach(longest, dimensions) / sqrt(dimensions)

    def form(self, public: PublicValues) -> Form:
        """Sum up."""
        d = public.settings.dimensions
        longest, count_weight, scale = self.split(d)

        def measure(party: Records) -> IntArray:
            sums = np.zeros(d + 1, dtype=np.int64)
            for points in iterate_chunks(party):
                sums[:d] += np.rint(points * scale).astype(np.int64).sum(axis=0)
                sums[d] += count_weight * len(points)
            return sums

        return Form(length=d + 1, l2_squared=longest**2 + count_weight**2, measure=measure)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(share=SHARE_MOST)


class Lengths(Question, frozen=True, kw_only=True):
    """A histogram of the records' distances from a middle; a party as a whole votes for the bin of its median.

    Privacy
    -------
    A record, or a party, adds a to one bin: squared L2 norm a^2 <= share.
    """

    share: Share
    middle: Array
    edges: Array
    """Falling; bin i holds the distances from below edge i down to edge i + 1; the ends hold what is beyond."""

    def form(self, public: PublicValues) -> Form:
        """Count."""
        height, whole = isqrt(self.share), public.settings.client_level
        middle = take_points("middle", self.middle, public.settings.dimensions)
        edges = take_lengths("edges", self.edges, NORM_BINS)
        require(bool((np.diff(edges) < 0).all()), "a question's edges", "falling", "others")

        def measure(party: Records) -> IntArray:
            counts = np.zeros(NORM_BINS, dtype=np.int64)
            for points in iterate_chunks(party, fill=middle):
                lengths = measure_lengths(count_offsets(points, middle)) / UNITS
                # searchsorted wants rising edges; what is shorter than the last edge is in the last bin.
                bins = NORM_BINS - 1 - np.searchsorted(edges[:0:-1], lengths, side="left")
                counts += np.bincount(bins, minlength=NORM_BINS)
            return vote_for_median(counts, height) if whole else height * counts

        return Form(length=NORM_BINS, l2_squared=height**2, measure=measure)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        middle = largest_array(public.settings.dimensions)
        return cls(share=SHARE_MOST, middle=middle, edges=largest_array(NORM_BINS))


def vote_for_median(counts: IntArray, height: int) -> IntArray:
    """A party's vote for the bin that its median record is in; a party without records does not vote."""
    votes = np.zeros_like(counts)
    if counts.any():
        votes[int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))] = height
    return votes


class Histogram(Question, frozen=True, kw_only=True):
    """How many records are in each cell of a grid.

    Privacy
    -------
    A record adds a to its one cell: squared L2 norm a^2 <= share.
    """

    share: Share
    low: Array
    high: Array
    bins: Array
    plane: Plane | None

    def form(self, public: PublicValues) -> Form:
        """Count."""
        height, grid = isqrt(self.share), self._lay(public)

        def measure(party: Records) -> IntArray:
            return height * grid.count(party)

        return Form(length=grid.cells, l2_squared=height**2, measure=measure)

    def _lay(self, public: PublicValues) -> Grid:
        """Check the range: every record must be in one cell that there is."""
        settings = public.settings
        subspace, m = None, settings.dimensions
        if self.plane is not None:
            subspace = self.plane.unpack(public, axes_most=settings.grid_axes_most)
            m = count_rows("axes", self.low, subspace.axes.shape[1])
        low = take_points("box", self.low, m, most=public.reach)
        high = take_points("box", self.high, m, most=public.reach)
        bins: IntArray = self.bins.to_numpy(np.int64, m).copy()
        most = settings.knobs.cells_max
        fits = bool((bins >= 1).all()) and prod(bins.tolist()) <= most
        require(fits, "the number of a question's cells", f"from 1 to {most}", "others")
        wide = bool(((high - low)[bins > 1] >= LENGTH_LEAST).all())
        require(wide, "the sides of a question's box", f"at least {LENGTH_LEAST:g} long", "others")
        return Grid(low=low, high=high, bins=bins, subspace=subspace)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest: a grid on all columns, or one in a subspace, whatever takes more."""
        d, m = public.settings.dimensions, public.settings.grid_axes_most
        n = max(d, m)
        box, bins = largest_array(n), largest_array(n, dtype=np.int64)
        plane = Plane.largest(public, m) if m else None
        return cls(share=SHARE_MOST, low=box, high=box, bins=bins, plane=plane)


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

    def pack(self, share: int) -> Histogram:
        """Return the question how many records are in each cell."""
        return Histogram(
            share=share,
            low=Array.of(self.low),
            high=Array.of(self.high),
            bins=Array.of(self.bins),
            plane=None if self.subspace is None else self.subspace.pack(),
        )

    def count(self, records: Records) -> IntArray:
        """Return the number of records in each cell: each record is in exactly one."""
        counts = np.zeros(self.cells, dtype=np.int64)
        fill = 0.0 if self.subspace is None else self.subspace.origin
        for points in iterate_chunks(records, fill=fill):
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
