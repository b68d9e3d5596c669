"""Vertical k-means, step by step: joint histogram, clustering of its cells, a few rounds of Lloyd's algorithm.

A generator that the computing party runs on the released totals: it yields what is to be added up next. Nothing in it
looks at a record; everything follows from public values, the codebooks, totals that have been paid for, and a stream
that all parties have in common. Why it is private: docs/proofs/vertical.md. Why these steps: docs/study-vertical.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt

import numpy as np

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.kmeans import nearest, sphere_packing, weighted_kmeans
from cloister.privacy.centre_noise import UNKNOWN, blend, blur_means
from cloister.protocols.guided_sums.postprocessing import estimate_counts, find_gains, part_equal_centres
from cloister.protocols.synopsis.histogram import Histogram, cluster_cells
from cloister.protocols.vertical.codebook import Codebook, Codebooks
from cloister.protocols.vertical.layout import join_cells, join_reps
from cloister.protocols.vertical.query import Asking, HistogramQuery, LloydQuery, round_to_length
from cloister.protocols.vertical.settings import RANDOM_RADIUS, Settings
from cloister.records import FloatArray, IntArray
from cloister.report.sizes import Sizes, fit_sizes

_FEWEST = 4  # cells per cluster that are kept in any case
_RADIUS_UNITS_LEAST = 2
_STILL, _GROWTH, _RADIUS_LEAST = 0.05, 0.25, 0.7  # as the synopsis widens its radii where noise is small
_COLUMNS_WITH_TAILS = 6.0
_RADIUS_DECAY, _DECAYED_LEAST = 0.85, 0.1  # from random centres, of the second round's radius


@dataclass(frozen=True, kw_only=True, eq=False)
class VerticalFinding:
    """The result of a vertical clustering; all of it has been paid for."""

    centres: FloatArray
    """(k, d) in [-1, 1]^d, in the job's column order, all different."""
    centre_noise: FloatArray | None
    """(k, d): the standard deviations of the noise in these (docs/proofs/uncertainty.md); None without noise."""
    sizes: Sizes
    """About how many records each cluster holds."""
    rounds: int
    """Rounds of Lloyd's algorithm that were made."""


def run_vertical(settings: Settings, codebooks: Codebooks, stream: Stream) -> Asking[VerticalFinding]:
    """Find centres.

    Parameters
    ----------
    settings
        Public values.
    codebooks
        Public by now.
    stream
        Common to all parties. It decides where clusterings of cells start, random centres, and what replaces centres
        that are equal. The noise of a release never comes from it.
    """
    if settings.start == "synopsis":
        start = yield from find_start(settings, codebooks, stream.child("start"))
    else:
        start = _place_centres(settings, stream.child("random centres"))
    refined = yield from refine_centres(settings, codebooks, start)
    centres = settings.layout.to_job(refined.centres)
    parted = part_equal_centres(centres, stream.child("equal centres"))
    variances = settings.layout.to_job(refined.centre_variances)
    variances[(parted != centres).any(axis=1)] = UNKNOWN
    return VerticalFinding(
        centres=parted,
        centre_noise=None if settings.is_exact else np.sqrt(variances),
        sizes=refined.sizes,
        rounds=settings.rounds_made,
    )


def _place_centres(settings: Settings, stream: Stream) -> StartingPoint:
    """Centres far apart that depend on no record."""
    return StartingPoint(
        centres=np.ascontiguousarray(sphere_packing(stream, settings.clusters, settings.dimensions)),
        centre_variances=np.full((settings.clusters, settings.dimensions), UNKNOWN),
        weights=None,
        weight_variances=None,
        variance_alice=0.0,
        variance_encrypted=0.0,
    )


# --- the start --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class StartingPoint:
    """Where the rounds begin, in session order."""

    centres: FloatArray
    centre_variances: FloatArray
    """(k, d): of the noise in these; of random centres nothing is known."""
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
    """Release the joint histogram, remove the noise, and cluster the cells.

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
    # No count is below 0 or above n. Noise beyond 16 deviations is ignored.
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
        centre_variances=found.centre_variances,
        weights=found.weights,
        weight_variances=found.weight_variances,
        variance_alice=alice + variances[0],
        variance_encrypted=encrypted + variances[1],
    )


def _estimate_weights(noisy: FloatArray, noise_std: float, *, least: int) -> FloatArray:
    """Estimate how many records each cell holds: 0 if that is probably noise, except in the ``least`` fullest."""
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
    """Move cells from the largest groups into empty ones: the number of groups must not depend on records."""
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


# --- rounds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined:
    """Centres after the last round, in session order."""

    centres: FloatArray
    centre_variances: FloatArray
    sizes: Sizes


@dataclass(frozen=True, kw_only=True)
class _Radii:
    """What offsets of one round are clipped to, in units; None: not at all."""

    alice: int | None
    constants: int | None
    encrypted: int | None
    """Constant and residual together."""


def refine_centres(settings: Settings, codebooks: Codebooks, start: StartingPoint) -> Asking[Refined]:
    """Run the rounds from the start.

    Privacy
    -------
    A record joins one cluster. It adds a, |a| <= radius_alice, and b + r, |b| <= the constants' radius, |r| <= the
    residuals', to that cluster's sums, and 1 to its count. Centres and radii come from public values and from earlier
    releases.
    """
    reps, centres = codebooks.reps, start.centres
    left, sizes = start.centre_variances, fit_sizes(np.zeros(settings.clusters), np.ones(settings.clusters))
    for number in range(1, settings.rounds_made + 1):
        radii = _choose_radii(settings, codebooks, start, number)
        query = make_round(settings, reps, centres, radii, number)
        total = yield query
        if settings.is_exact:
            centres, counts = _move_exactly(query, total, centres)
            sizes = fit_sizes(counts, np.zeros(settings.clusters))
            continue
        sums, noisy_counts = query.split_total(total)
        noise = settings.total_std(query.sigma_count)
        counts, variances = _join_counts(noisy_counts.astype(np.float64), noise, start if number == 1 else None)
        sizes = fit_sizes(counts, variances, total=settings.records)
        # As `fit_sizes` does, but for the bound at 0.
        counts = counts + (settings.records - counts.sum()) * variances / variances.sum()
        counts = np.maximum(counts, max(1.0, noise))
        step_noise = settings.total_std(query.sigma_sum) / settings.units
        steps = sums / settings.units / counts[:, None]
        fresh = blur_means(steps, counts, sum_std=step_noise, count_variances=np.square(sizes.noise))
        gains = find_gains(steps, (step_noise / counts) ** 2)
        left, steps = blend(left, fresh, gains), steps * gains
        lengths = np.sqrt((steps**2).sum(axis=1, keepdims=True))
        longest = sqrt(query.l2_squared) / settings.units
        steps *= np.minimum(1.0, longest / np.maximum(lengths, longest))
        centres = np.clip(query.origins / settings.units + steps, -1.0, 1.0)
    return Refined(
        centres=centres,
        centre_variances=left,
        sizes=sizes,
    )


def make_round(settings: Settings, reps: FloatArray, centres: FloatArray, radii: _Radii, number: int) -> LloydQuery:
    """Return the query of one round."""
    units, columns = settings.units, settings.layout.alice_count
    exact = settings.is_exact
    # On the grid, so that constants need no rounding, whose error would be the same for every record of a cluster.
    origins = np.zeros(centres.shape, dtype=np.int64) if exact else np.rint(centres * units).astype(np.int64)
    constants = round_to_length(reps * units - origins[:, None, columns:], radii.constants)
    l2_squared = (radii.alice or 0) ** 2 + (radii.encrypted or 0) ** 2
    return LloydQuery(
        number=number,
        centres=centres,
        origins=origins,
        units=units,
        constants=constants,
        radius_alice=radii.alice,
        radius_encrypted=radii.encrypted,
        sigma_sum=None if exact else settings.sigma_for(l2_squared, settings.sum_rho),
        sigma_count=None if exact else settings.sigma_for(1, settings.count_rho),
    )


def _choose_radii(settings: Settings, codebooks: Codebooks, start: StartingPoint, number: int) -> _Radii:
    """Choose the usual distance of records from their centre; a little more if noise is small."""
    if settings.is_exact:
        return _Radii(alice=None, constants=None, encrypted=None)
    residual = codebooks.residual_radius
    if residual is None or residual > settings.residual_most:
        raise LocalProtocolError(
            f"a private round must have residuals of at most {settings.residual_most} units; got {residual}."
        )
    layout, d = settings.layout, settings.dimensions
    if settings.start == "random":
        whole = _shrink_radius(settings, number)
        alice, encrypted = whole * sqrt(layout.alice_count / d), whole * sqrt(layout.encrypted_count / d)
    else:
        factor = _widen(settings)
        alice, encrypted = factor * sqrt(start.variance_alice), factor * sqrt(start.variance_encrypted)
    most = settings.radius_most
    longest_alice = _count_units(settings, min(alice, most)) if layout.alice_count else 0
    longest = _count_units(settings, min(encrypted, most))
    constants = max(longest - residual, floor(longest / 2))
    return _Radii(alice=longest_alice, constants=constants, encrypted=constants + residual)


def _shrink_radius(settings: Settings, number: int) -> float:
    """Return the radius from random centres: as FastLloyd's radii, it shrinks while centres settle."""
    whole = RANDOM_RADIUS * sqrt(settings.dimensions)
    if number == 1:
        return whole
    later: float = whole / settings.clusters ** (1 / settings.dimensions)
    return later * max(_RADIUS_DECAY ** (number - 2), _DECAYED_LEAST)


def _widen(settings: Settings) -> float:
    """Return how much less to clip if noise is small, since a mean of clipped offsets is biased."""
    d = settings.dimensions
    signal = settings.records / settings.total_std(settings.sigma_for(1, settings.sum_rho * settings.rounds_made))
    noise = settings.clusters * sqrt(d) / signal
    growth: float = (_STILL / noise) ** (_GROWTH * min(1.0, _COLUMNS_WITH_TAILS / d))
    return settings.knobs.radius_factor * max(_RADIUS_LEAST, growth)


def _count_units(settings: Settings, length: float) -> int:
    return min(max(ceil(length * settings.units), _RADIUS_UNITS_LEAST), settings.weight_max)


def _join_counts(counts: FloatArray, noise: float, start: StartingPoint | None) -> tuple[FloatArray, FloatArray]:
    """Return the noisy counts, joined with the start's if it counted the same clusters, and their noise's variances."""
    variances = np.full(len(counts), noise**2)
    if start is not None and start.weights is not None and start.weight_variances is not None:
        precision = 1 / variances + 1 / start.weight_variances
        counts = (counts / variances + start.weights / start.weight_variances) / precision
        variances = 1 / precision
    return counts, variances


def _move_exactly(query: LloydQuery, total: IntArray, centres: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The means of the clusters; an empty one keeps its centre."""
    sums, counts = query.split_total(total)
    full = counts > 0
    moved = centres.copy()
    moved[full] = sums[full] / query.units / counts[full, None]
    return moved, counts.astype(np.float64)
