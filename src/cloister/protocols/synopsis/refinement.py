"""The refinement: a few rounds of Lloyd's algorithm with clipped offsets and steps that are shrunk by their noise."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np

from cloister.kmeans.offsets import sum_offsets
from cloister.kmeans.records import FloatArray, Records
from cloister.protocols.synopsis.query import IDLE, Asking, IntArray, Measure, Query
from cloister.protocols.synopsis.settings import Settings

_COUNT_PART = 4  # a count weighs a quarter of the longest offset
_CLIENT_COUNT_PART = 8  # a party's sums are short beside its counts: offsets cancel
_EM_STEPS = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined:
    """Centres after the last round."""

    centres: FloatArray
    weights: FloatArray
    rounds: int
    centre_noise: float


def choose_rounds(settings: Settings, *, l2_squared: int, records: float, clusters: int) -> int:
    """T from the noise of a whole-budget step, relative to the radius: the less noise, the more rounds pay."""
    noise = clusters * sqrt(settings.dimensions) / max(records * settings.signal(l2_squared), 1e-300)
    return int(np.clip(round(0.08 / noise), settings.knobs.rounds_min, settings.knobs.rounds_max))


def refine_centres(
    settings: Settings,
    *,
    l2_squared: int,
    records: float,
    centres: FloatArray,
    radii: FloatArray,
    weights: FloatArray,
    weight_variances: FloatArray,
) -> Asking[Refined]:
    """Run T rounds; each releases, for every cluster, the sum of its records' clipped offsets and their number.

    Privacy
    -------
    A record joins the cluster of its nearest centre and adds (z, b) there: z, |z| <= a, is its offset from the centre
    over the cluster's radius, its length clipped to 1, in integers; b is a constant. The squared L2 norm is at most
    a^2 + b^2. Centres and radii come from earlier releases.
    """
    k, d = centres.shape
    rounds = choose_rounds(settings, l2_squared=l2_squared, records=records, clusters=k)
    part = _CLIENT_COUNT_PART if settings.client_level else _COUNT_PART
    # In integers: rounds * (scale^2 + count_weight^2) <= l2_squared, exactly.
    scale = isqrt(l2_squared // rounds * part**2 // (part**2 + 1))
    count_weight = scale // part
    sum_std, count_std = settings.noise_std / scale, settings.noise_std / count_weight
    for t in range(settings.knobs.rounds_max):
        if t >= rounds:
            yield IDLE
            continue
        total = yield Query(
            name=f"Lloyd round {t + 1}: clipped offsets and counts of {k} clusters",
            measure=_measure_offsets(centres, radii, scale, count_weight),
            length=k * (d + 1),
            l2_squared=scale**2 + count_weight**2,
            state=centres.tobytes() + radii.tobytes(),
        )
        released = total.reshape(k, d + 1)
        counts = released[:, -1] / count_weight
        if t == 0:  # the histogram has counted them too
            if settings.client_level:  # in other units: a party's vectors are scaled by other factors
                factor = max(float(counts.sum()), count_std) / float(weights.sum())
                weights, weight_variances = weights * factor, weight_variances * factor**2
            counts = (counts / count_std**2 + weights / weight_variances) / (1 / count_std**2 + 1 / weight_variances)
        counts = np.maximum(counts, max(1.0, count_std))
        steps = released[:, :-1] / scale / counts[:, None]
        steps = _shrink(steps, (sum_std / counts) ** 2)
        lengths = np.sqrt((steps**2).sum(axis=1))
        steps = steps / np.maximum(lengths, 1.0)[:, None]
        centres = np.clip(centres + radii[:, None] * steps, -1.0, 1.0)
    typical = max(records / k, 1.0)
    return Refined(
        centres=centres,
        weights=counts,
        rounds=rounds,
        centre_noise=float(sum_std / typical * np.median(radii)),
    )


def _measure_offsets(centres: FloatArray, radii: FloatArray, scale: int, count_weight: int) -> Measure:
    def measure(party: Records) -> IntArray:
        return sum_offsets(party, centres, radii, scale=scale, count_weight=count_weight).ravel()

    return measure


def _shrink(steps: FloatArray, variances: FloatArray) -> FloatArray:
    """Empirical Bayes: steps are N(0, tau^2) in each coordinate, seen with noise; tau^2 by EM over all clusters."""
    squares = (steps**2).mean(axis=1)
    tau2 = max(float((squares - variances).mean()), 1e-6 * float(squares.mean()), 1e-30)
    for _ in range(_EM_STEPS):
        gain = tau2 / (tau2 + variances)
        tau2 = max(float((gain**2 * squares + gain * variances).mean()), 1e-30)
    return steps * (tau2 / (tau2 + variances))[:, None]
