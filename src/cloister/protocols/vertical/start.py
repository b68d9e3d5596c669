"""The start: a joint histogram of Alice's cells and groups of the encrypted cells, and a clustering of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.crypto.stream import Stream
from cloister.kmeans.kernel import nearest
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.protocols.guided_sums.denoising import estimate_counts
from cloister.protocols.synopsis.start import Histogram, cluster_cells
from cloister.protocols.vertical.codebook import Codebook
from cloister.protocols.vertical.codebooks import Codebooks
from cloister.protocols.vertical.layout import join_cells, join_reps
from cloister.protocols.vertical.query import Asking, HistogramQuery
from cloister.protocols.vertical.settings import Settings
from cloister.records import FloatArray, IntArray

_FEWEST = 4  # cells a cluster that are kept in any case


@dataclass(frozen=True, kw_only=True, eq=False)
class StartingPoint:
    """Where the rounds begin, in session order."""

    centres: FloatArray
    weights: FloatArray | None
    """(k,): about how many records each cluster holds; None: nothing is known."""
    weight_variances: FloatArray | None
    """(k,): of the noise in these."""
    variance_alice: float
    variance_encrypted: float
    """The mean squared distance of a record to its centre, in Alice's and in the encrypted columns."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Groups:
    """How a codebook's cells are put together for the histogram."""

    group_of: IntArray
    points: FloatArray
    variance: float
    """Of a record around its group's point."""


def find_start(settings: Settings, codebooks: Codebooks, stream: Stream) -> Asking[StartingPoint]:
    """Release the joint histogram, take away what is noise, and cluster the cells.

    Privacy
    -------
    A record adds 1 to one number of the histogram. Cells and groups are public before it is asked for.
    """
    grouped = [
        _group_cells(own, settings.groups_of(number), stream.child("groups", number))
        for number, own in enumerate(codebooks.holders)
    ]
    joint = np.unravel_index(np.arange(codebooks.cells), [own.cells for own in codebooks.holders])
    sizes = [len(own.points) for own in grouped]
    query = HistogramQuery(
        alice_cells=codebooks.alice.cells,
        group_of=join_cells([own.group_of[cells] for own, cells in zip(grouped, joint, strict=True)], sizes),
        sigma=None if settings.is_exact else settings.sigma_for(1, settings.start_rho),
    )
    total = yield query
    points = join_reps([codebooks.alice.reps, *(own.points for own in grouped)])
    noise_std = settings.total_std(query.sigma)
    # No count is below 0 or above n; what noise of 16 deviations could not do is not worth a look.
    plausible = np.clip(total.astype(np.float64), -16 * noise_std, settings.records + 16 * noise_std)
    weights = _estimate_weights(plausible, noise_std, least=_FEWEST * settings.clusters)
    kept = weights > 0
    variances = (codebooks.alice.variance, sum(own.variance for own in grouped))
    histogram = Histogram(
        points=points[kept],
        weights=weights[kept] * (settings.records / weights.sum()),
        variance=max(noise_std, 0.5) ** 2,
        cell_variance=sum(variances),
    )
    found = cluster_cells(
        histogram, settings.clusters, restarts=settings.knobs.restarts, stream=stream.child("clusters")
    )
    alice, encrypted = _measure_spread(histogram, found.centres, codebooks.alice.columns)
    return StartingPoint(
        centres=found.centres,
        weights=found.weights,
        weight_variances=found.weight_variances,
        variance_alice=alice + variances[0],
        variance_encrypted=encrypted + variances[1],
    )


def _estimate_weights(noisy: FloatArray, noise_std: float, *, least: int) -> FloatArray:
    """How many records each cell holds: 0 where that is likely noise, in all cells but the ``least`` fullest."""
    if noise_std == 0:
        return noisy
    posterior = estimate_counts(noisy, noise_std, level=noise_std)
    keep = posterior.occupied > 0.5
    if keep.sum() < least:
        keep[np.argsort(-posterior.means, kind="stable")[:least]] = True
    return np.where(keep, np.maximum(posterior.means, 1e-9), 0.0)


def _measure_spread(histogram: Histogram, centres: FloatArray, alice_columns: int) -> tuple[float, float]:
    """The mean squared distance of the cells to their centres, in Alice's columns and in the others."""
    labels = nearest(histogram.points, centres).labels
    squares = histogram.weights @ (histogram.points - centres[labels]) ** 2 / histogram.weights.sum()
    return float(squares[:alice_columns].sum()), float(squares[alice_columns:].sum())


def _fill_groups(group_of: IntArray, count: int) -> IntArray:
    """Move cells of the largest groups into groups that are empty: how many there are must not follow from records."""
    filled = group_of.copy()
    for empty in np.setdiff1d(np.arange(count), filled):
        largest = int(np.argmax(np.bincount(filled, minlength=count)))
        filled[np.flatnonzero(filled == largest)[-1]] = empty
    return filled


def _group_cells(codebook: Codebook, groups: tuple[int, ...], stream: Stream) -> _Groups:
    """Neighbours along each column of a grid; else a clustering of the representatives."""
    if codebook.is_grid:
        places = np.unravel_index(np.arange(codebook.cells), codebook.bins)
        widths = [-(-bins // own) for bins, own in zip(codebook.bins, groups, strict=True)]
        group_of = join_cells([place // width for place, width in zip(places, widths, strict=True)], groups)
    elif groups[0] == codebook.cells:
        group_of = np.arange(codebook.cells)
    else:
        fit = weighted_kmeans(codebook.reps, groups[0], stream, weights=codebook.weights, restarts=4)
        group_of = _fill_groups(nearest(codebook.reps, fit.centres).labels.astype(np.int64), groups[0])
    _, group_of = np.unique(group_of, return_inverse=True)  # none left out
    mass = np.bincount(group_of, weights=codebook.weights)
    columns = [np.bincount(group_of, weights=codebook.weights * column) / mass for column in codebook.reps.T]
    points = np.stack(columns, axis=1)
    squares = ((codebook.reps - points[group_of]) ** 2).sum(axis=1)
    spread = float(codebook.weights @ squares / codebook.weights.sum())
    return _Groups(group_of=group_of.astype(np.int64), points=points, variance=codebook.variance + spread)
