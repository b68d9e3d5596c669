"""The refinement: a few rounds of Lloyd's algorithm with clipped offsets and steps that are shrunk by their noise.

The squares of the offsets are summed too: they tell which cluster is too wide. After every round but the last, centres
that are hardly needed are moved to such clusters (:mod:`.swaps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np

from cloister.crypto.stream import Stream
from cloister.kmeans.offsets import sum_offsets
from cloister.kmeans.records import FloatArray, Records
from cloister.protocols.synopsis.query import IDLE, Asking, IntArray, Measure, Query
from cloister.protocols.synopsis.settings import Settings
from cloister.protocols.synopsis.swaps import Sketch, swap_centres

_COUNT_PART = 6  # a count, and the square of the longest offset, weigh a sixth of that offset
_CLIENT_COUNT_PART = 8  # a party's sums are short beside its counts: offsets cancel
_EM_STEPS = 50
_NOISE_FOR_ONE = 0.08  # of the radius: a whole-budget step with so much noise is worth one round, half of it two; tuned


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined:
    """Centres after the last round."""

    centres: FloatArray
    weights: FloatArray
    weight_noise: float
    rounds: int
    centre_noise: float


def choose_rounds(settings: Settings, *, l2_squared: int, records: float, clusters: int) -> int:
    """T from the noise of a whole-budget step, relative to the radius: the less noise, the more rounds pay."""
    noise = clusters * sqrt(settings.dimensions) / max(records * settings.signal(l2_squared), 1e-300)
    return int(np.clip(round(_NOISE_FOR_ONE / noise), settings.knobs.rounds_min, settings.knobs.rounds_max))


def refine_centres(
    settings: Settings,
    *,
    l2_squared: int,
    records: float,
    centres: FloatArray,
    radii: FloatArray,
    weights: FloatArray,
    weight_variances: FloatArray,
    sketch: Sketch,
    stream: Stream,
) -> Asking[Refined]:
    """Run T rounds; each releases, for every cluster, its records' clipped offsets, their squares and their number.

    Privacy
    -------
    A record joins the cluster of its nearest centre and adds (z, q, b) there: z, |z| <= a, is its offset from the
    centre over the cluster's radius, its length clipped to 1, in integers; 0 <= q <= b is b times the square of that
    length; b is a constant. The squared L2 norm is at most a^2 + 2 b^2. Centres and radii come from earlier releases.
    """
    k, d = centres.shape
    rounds = choose_rounds(settings, l2_squared=l2_squared, records=records, clusters=k)
    part = _CLIENT_COUNT_PART if settings.client_level else _COUNT_PART
    # In integers: rounds * (scale^2 + 2 weight^2) <= l2_squared, exactly.
    scale = isqrt(l2_squared // rounds * part**2 // (part**2 + 2))
    weight = scale // part
    sum_std, count_std = settings.noise_std / scale, settings.noise_std / weight
    for t in range(settings.knobs.rounds_max):
        if t >= rounds:
            yield IDLE
            continue
        total = yield Query(
            name=f"Lloyd round {t + 1}",
            measure=_measure_offsets(centres, radii, scale, weight),
            length=k * (d + 2),
            l2_squared=scale**2 + 2 * weight**2,
            state=centres.tobytes() + radii.tobytes(),
        )
        released = total.reshape(k, d + 2)
        counts = released[:, -1] / weight
        if t == 0:  # the histogram has counted them too
            if settings.client_level:  # in other units: a party's vectors are scaled by other factors
                factor = max(float(counts.sum()), count_std) / float(weights.sum())
                weights, weight_variances = weights * factor, weight_variances * factor**2
            counts = (counts / count_std**2 + weights / weight_variances) / (1 / count_std**2 + 1 / weight_variances)
        seen = np.maximum(counts, 0.0)
        counts = np.maximum(counts, max(1.0, count_std))
        steps = released[:, :d] / scale / counts[:, None]
        steps = _shrink(steps, (sum_std / counts) ** 2)
        squares = (steps**2).sum(axis=1)
        steps = steps / np.sqrt(np.maximum(squares, 1.0))[:, None]
        centres = np.clip(centres + radii[:, None] * steps, -1.0, 1.0)
        if t < rounds - 1:
            variances = np.clip(released[:, d] / weight / counts - squares, 0.0, 1.0) * radii**2
            centres = swap_centres(
                centres,
                counts=counts,
                variances=variances,
                errors=radii**2 * count_std / counts,
                sketch=sketch,
                stream=stream.child(t),
            )
    typical = max(records / k, 1.0)
    return Refined(
        centres=centres,
        weights=seen,
        weight_noise=count_std,
        rounds=rounds,
        centre_noise=float(sum_std / typical * np.median(radii)),
    )


def _measure_offsets(centres: FloatArray, radii: FloatArray, scale: int, weight: int) -> Measure:
    def measure(party: Records) -> IntArray:
        return sum_offsets(party, centres, radii, scale=scale, weight=weight).ravel()

    return measure


def _shrink(steps: FloatArray, variances: FloatArray) -> FloatArray:
    """Empirical Bayes: steps are N(0, tau^2) in each coordinate, seen with noise; tau^2 by EM over all clusters."""
    squares = (steps**2).mean(axis=1)
    tau2 = max(float((squares - variances).mean()), 1e-6 * float(squares.mean()), 1e-30)
    for _ in range(_EM_STEPS):
        gain = tau2 / (tau2 + variances)
        tau2 = max(float((gain**2 * squares + gain * variances).mean()), 1e-30)
    return steps * (tau2 / (tau2 + variances))[:, None]
