"""A grid of cells on the columns or in a subspace, its noisy histogram, and a clustering of the cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt, log, sqrt

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans import nearest, weighted_kmeans
from cloister.protocols.guided_sums.postprocessing import estimate_counts
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.protocols.synopsis.settings import Settings
from cloister.records import FloatArray, IntArray, Records, iterate_chunks


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """A box cut into equal cells; records outside the box count in the nearest border cell.

    Parameters
    ----------
    low, high
        The box, (m,).
    bins
        How many cells along each axis; 1 for an axis that is ignored.
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
    """Repeatedly cut the axis with the longest cells once more, as long as there are at most ``cells_max`` cells."""
    bins = np.ones(len(sides), dtype=np.int64)
    cells = 1.0
    while True:
        axis = int((sides / bins).argmax())
        grown = cells / bins[axis] * (bins[axis] + 1)
        if grown > cells_max or sides[axis] <= 0:
            return bins
        bins[axis] += 1
        cells = grown


_LEVEL = 1.0  # a cell is kept if it probably holds more records than this many deviations of the noise
_THRESHOLD = 0.5  # of the largest noise that is to be expected among all cells
_FEWEST = 4  # cells per cluster that are kept in any case


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """A noisy histogram after denoising.

    Parameters
    ----------
    points, weights
        The middles of the cells that are kept, and about how many records each holds.
    variance
        Of the noise in one of the weights.
    cell_variance
        Of a record around the middle of its cell, if it may be anywhere in it.
    """

    points: FloatArray
    weights: FloatArray
    variance: float
    cell_variance: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """Clusters of the cells, in the grid's coordinates."""

    centres: FloatArray
    weights: FloatArray
    """(k,): about how many records each holds."""
    weight_variances: FloatArray
    """(k,): of the noise in these."""
    variances: FloatArray
    """(k,): the mean squared distance of a cluster's records to its centre."""
    loss: float
    """The mean over all records."""


def release_histogram(settings: Settings, grid: Grid, *, l2_squared: int, records: float) -> Asking[Histogram]:
    """Release the number of records in each cell, and remove what is noise.

    Privacy
    -------
    A record adds a to its one cell: squared L2 norm a^2 <= ``l2_squared``.
    """
    height = isqrt(l2_squared)

    def measure(party: Records) -> IntArray:
        return height * grid.count(party)

    total = yield Query(
        name="histogram", measure=measure, length=grid.cells, l2_squared=height**2, state=grid.to_bytes()
    )
    return denoise_histogram(settings, grid, total / height, noise_std=settings.noise_std / height, records=records)


def denoise_histogram(
    settings: Settings, grid: Grid, noisy_counts: FloatArray, *, noise_std: float, records: float
) -> Histogram:
    """Remove the noise: keep the cells that hold records, and estimate how many each holds.

    Parameters
    ----------
    settings, grid
        Public values, and where the cells are.
    noisy_counts
        The released number of records in each cell.
    noise_std
        The standard deviation of the noise in each of them.
    records
        About how many records there are in all.
    """
    posterior = estimate_counts(noisy_counts, noise_std, level=_LEVEL * noise_std)
    if grid.subspace is None:
        keep = posterior.occupied > 0.5
    else:  # there, clusters overlap in many more cells, each with few records
        keep = noisy_counts > _THRESHOLD * noise_std * sqrt(2 * log(max(grid.cells, 2)))
    least = min(_FEWEST * settings.clusters, grid.cells)
    if keep.sum() < least:
        keep[np.argsort(-posterior.means, kind="stable")[:least]] = True
    return Histogram(
        points=grid.centres[keep],
        weights=np.maximum(posterior.means[keep], 1e-9 * records),
        variance=noise_std**2,
        cell_variance=float((grid.sides[grid.bins > 1] ** 2).sum() / 12),
    )


def cluster_cells(histogram: Histogram, k: int, *, restarts: int, stream: Stream) -> Start:
    """Cluster the cells by their weights."""
    points, weights = histogram.points, histogram.weights
    fit = weighted_kmeans(points, k, stream, weights=weights, restarts=restarts)
    found = nearest(points, fit.centres)
    sizes: FloatArray = np.bincount(found.labels, weights=weights, minlength=k).astype(np.float64)
    losses = np.bincount(found.labels, weights=weights * found.squared_distances, minlength=k)
    cells = np.bincount(found.labels, minlength=k)
    return Start(
        centres=fit.centres,
        weights=sizes,
        weight_variances=np.maximum(cells, 1) * histogram.variance,
        variances=losses / np.maximum(sizes, 1e-300) + histogram.cell_variance,
        loss=float(losses.sum() / sizes.sum()) + histogram.cell_variance,
    )
