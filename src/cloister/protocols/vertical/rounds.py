"""The rounds: Lloyd's algorithm with clipped offsets, whose steps are shrunk by what of them is noise."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt

import numpy as np

from cloister.errors import LocalProtocolError
from cloister.protocols.fastlloyd.sound import FastLloydOptions
from cloister.protocols.guided_sums.shrinkage import shrink_steps
from cloister.protocols.vertical.clipping import round_to_length
from cloister.protocols.vertical.codebooks import Codebooks
from cloister.protocols.vertical.query import Asking, LloydQuery
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical.start import StartingPoint
from cloister.records import FloatArray, IntArray

_RADIUS_UNITS_LEAST = 2
_STILL, _GROWTH, _RADIUS_LEAST = 0.05, 0.25, 0.7  # as the synopsis widens its radii where noise is small
_COLUMNS_WITH_TAILS = 6.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined:
    """Centres after the last round, in session order."""

    centres: FloatArray
    weights: FloatArray
    weight_noise: float
    centre_noise: float


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
    weights, noise, step_noise = np.zeros(settings.clusters), 0.0, 0.0
    for number in range(1, settings.rounds_made + 1):
        radii = _choose_radii(settings, codebooks, start, number)
        query = make_round(settings, reps, centres, radii, number)
        total = yield query
        if settings.is_exact:
            centres, weights = _move_exactly(query, total, centres)
            continue
        sums, noisy_counts = query.split_total(total)
        noise = settings.total_std(query.sigma_count)
        weights = _estimate_counts(settings, noisy_counts.astype(np.float64), noise, start if number == 1 else None)
        counts = np.maximum(weights, max(1.0, noise))
        step_noise = settings.total_std(query.sigma_sum) / settings.units
        steps = shrink_steps(sums / settings.units / counts[:, None], (step_noise / counts) ** 2)
        lengths = np.sqrt((steps**2).sum(axis=1, keepdims=True))
        longest = sqrt(query.l2_squared) / settings.units
        steps *= np.minimum(1.0, longest / np.maximum(lengths, longest))
        centres = np.clip(query.origins / settings.units + steps, -1.0, 1.0)
    return Refined(
        centres=centres,
        weights=np.maximum(weights, 0.0),
        weight_noise=noise,
        centre_noise=step_noise / max(settings.records / settings.clusters, 1.0),
    )


def make_round(settings: Settings, reps: FloatArray, centres: FloatArray, radii: _Radii, number: int) -> LloydQuery:
    """Return the query of one round."""
    units, columns = settings.units, settings.layout.alice_count
    exact = settings.is_exact
    # On the grid, so that constants need no rounding: its error would be the same for every record of a cluster.
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
    """As long as records usually are away from their centre; a little more where noise is small."""
    if settings.is_exact:
        return _Radii(alice=None, constants=None, encrypted=None)
    residual = codebooks.residual_radius
    if residual is None or residual > settings.residual_most:
        raise LocalProtocolError(
            f"a private round must have residuals of at most {settings.residual_most} units; got {residual}."
        )
    layout, d = settings.layout, settings.dimensions
    if settings.start == "random":
        whole = FastLloydOptions(
            clusters=settings.clusters, dimensions=d, parties=2, max_records=1, iterations=settings.rounds_made
        ).radii[number - 1]
        alice, encrypted = whole * sqrt(layout.alice_count / d), whole * sqrt(layout.encrypted_count / d)
    else:
        factor = _widen(settings)
        alice, encrypted = factor * sqrt(start.variance_alice), factor * sqrt(start.variance_encrypted)
    most = settings.radius_most
    longest_alice = _count_units(settings, min(alice, most)) if layout.alice_count else 0
    longest = _count_units(settings, min(encrypted, most))
    constants = max(longest - residual, floor(longest / 2))
    return _Radii(alice=longest_alice, constants=constants, encrypted=constants + residual)


def _widen(settings: Settings) -> float:
    """Clip less where noise is small: a mean of clipped offsets is not the mean."""
    d = settings.dimensions
    signal = settings.records / settings.total_std(settings.sigma_for(1, settings.sum_rho * settings.rounds_made))
    noise = settings.clusters * sqrt(d) / signal
    growth: float = (_STILL / noise) ** (_GROWTH * min(1.0, _COLUMNS_WITH_TAILS / d))
    return settings.knobs.radius_factor * max(_RADIUS_LEAST, growth)


def _count_units(settings: Settings, length: float) -> int:
    return min(max(ceil(length * settings.units), _RADIUS_UNITS_LEAST), settings.weight_max)


def _estimate_counts(settings: Settings, counts: FloatArray, noise: float, start: StartingPoint | None) -> FloatArray:
    """Least squares of the noisy counts, the start's where it counted the same clusters, and their known sum."""
    variances = np.full(len(counts), noise**2)
    if start is not None and start.weights is not None and start.weight_variances is not None:
        precision = 1 / variances + 1 / start.weight_variances
        counts = (counts / variances + start.weights / start.weight_variances) / precision
        variances = 1 / precision
    fitted: FloatArray = counts + (settings.records - counts.sum()) * variances / variances.sum()
    return fitted


def _move_exactly(query: LloydQuery, total: IntArray, centres: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The means of the clusters; an empty one keeps its centre."""
    sums, counts = query.split_total(total)
    full = counts > 0
    moved = centres.copy()
    moved[full] = sums[full] / query.units / counts[full, None]
    return moved, counts.astype(np.float64)
