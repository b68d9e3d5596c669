"""The noisy histogram of a grid of cells, what of it is noise, and a clustering of the cells."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, log, sqrt

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans import nearest, weighted_kmeans
from cloister.privacy.centre_noise import blur_weighted_means
from cloister.protocols.guided_sums.postprocessing import estimate_counts
from cloister.protocols.guided_sums.query import Asking, PublicValues, pose
from cloister.protocols.synopsis.questions import Grid
from cloister.protocols.synopsis.settings import Settings
from cloister.records import FloatArray, IntArray


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
    centre_variances: FloatArray
    """(k, axes): of the noise in the centres."""
    variances: FloatArray
    """(k,): the mean squared distance of a cluster's records to its centre."""
    loss: float
    """The mean over all records."""


def release_histogram(settings: Settings, grid: Grid, *, l2_squared: int, records: float) -> Asking[Histogram]:
    """Release the number of records in each cell, and remove what is noise.

    Privacy
    -------
    As `questions.Histogram`.
    """
    height = isqrt(l2_squared)
    total = yield pose(PublicValues(settings=settings), "histogram", grid.pack(l2_squared))
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
        centre_variances=blur_weighted_means(points, found.labels, weights, fit.centres, histogram.variance),
        variances=losses / np.maximum(sizes, 1e-300) + histogram.cell_variance,
        loss=float(losses.sum() / sizes.sum()) + histogram.cell_variance,
    )
