"""The refinement: a few rounds of Lloyd's algorithm with clipped offsets and steps that are shrunk by their noise.

The squares of the offsets are summed too: they tell which cluster is too wide. After every round but the last, centres
that are hardly needed are moved to such clusters (:mod:`.swaps`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np

from cloister.crypto.stream import Stream
from cloister.kmeans.offsets import Join, sum_offsets
from cloister.protocols.guided_sums.guide import Guide
from cloister.protocols.guided_sums.query import IDLE, Asking, Measure, Query
from cloister.protocols.guided_sums.settings import GuidedSettings, Slot
from cloister.protocols.guided_sums.shrinkage import shrink_steps
from cloister.protocols.guided_sums.swaps import USUAL, Sketch, swap_centres
from cloister.records import FloatArray, IntArray, Records

_COUNT_PART = 6  # a count, and the square of the longest offset, weigh a sixth of that offset
_CLIENT_COUNT_PART = 8  # a party's sums are short beside its counts: offsets cancel
_NOISE_FOR_ONE = 0.08  # of the radius: a whole-budget step with so much noise is worth one round, half of it two; tuned


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined:
    """Centres after the last round."""

    centres: FloatArray
    weights: FloatArray
    weight_noise: float
    rounds: int
    centre_noise: float


def list_rounds(settings: GuidedSettings) -> tuple[Slot, ...]:
    """The slots of as many rounds as there may be."""
    length = settings.clusters * (settings.dimensions + 2)
    return tuple(Slot(name=f"Lloyd round {t}", length=length) for t in range(1, settings.round_limits.most + 1))


def choose_rounds(settings: GuidedSettings, *, l2_squared: int, records: float, clusters: int) -> int:
    """T from the noise of a whole-budget step, relative to the radius: the less noise, the more rounds pay."""
    limits = settings.round_limits
    noise = clusters * sqrt(settings.dimensions) / max(records * settings.signal(l2_squared), 1e-300)
    return int(np.clip(round(_NOISE_FOR_ONE / noise), limits.least, limits.most))


def refine_centres(
    settings: GuidedSettings,
    *,
    l2_squared: int,
    records: float,
    centres: FloatArray,
    radii: FloatArray,
    weights: FloatArray,
    weight_variances: FloatArray,
    sketch: Sketch,
    stream: Stream,
    guide: Guide | None = None,
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
    for t in range(settings.round_limits.most):
        if t >= rounds:
            yield IDLE
            continue
        total = yield Query(
            name=f"Lloyd round {t + 1}",
            measure=_measure_offsets(
                centres, radii, scale, weight, None if guide is None else guide.make_join(centres, first=t == 0)
            ),
            length=k * (d + 2),
            l2_squared=scale**2 + 2 * weight**2,
            state=centres.tobytes() + radii.tobytes() + (b"" if guide is None else guide.to_bytes()),
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
        steps = _shrink(steps, (sum_std / counts) ** 2, None if guide is None else guide.subspace.axes)
        squares = (steps**2).sum(axis=1)
        steps = steps / np.sqrt(np.maximum(squares, 1.0))[:, None]
        centres = np.clip(centres + radii[:, None] * steps, -1.0, 1.0)
        if t < rounds - 1:
            # Of the whole offsets, or of what of them lies in the subspace, where clusters of two show more clearly.
            widths = radii if guide is None else np.full(k, guide.radius)
            moved = steps if guide is None else (radii / widths)[:, None] * steps @ guide.subspace.axes
            variances = released[:, d] / weight / counts - (moved**2).sum(axis=1)
            centres = swap_centres(
                centres,
                counts=counts,
                variances=np.clip(variances, 0.0, 1.0) * widths**2,
                errors=widths**2 * count_std / counts,
                sketch=sketch,
                stream=stream.child(t),
                rule=USUAL if guide is None else guide.swaps,
            )
    typical = max(records / k, 1.0)
    return Refined(
        centres=centres,
        weights=seen,
        weight_noise=count_std,
        rounds=rounds,
        centre_noise=float(sum_std / typical * np.median(radii)),
    )


def _measure_offsets(centres: FloatArray, radii: FloatArray, scale: int, weight: int, join: Join | None) -> Measure:
    def measure(party: Records) -> IntArray:
        return sum_offsets(party, centres, radii, scale=scale, weight=weight, join=join).ravel()

    return measure


def _shrink(steps: FloatArray, variances: FloatArray, axes: FloatArray | None) -> FloatArray:
    """Shrink whole steps; with axes, what goes along them and what goes across, each by its own noise."""
    if axes is None or axes.shape[1] == len(axes):
        return shrink_steps(steps, variances)
    along = steps @ axes
    across = steps - along @ axes.T
    d, m = axes.shape
    # A projection's noise is in its m, or d - m, directions only: the mean over d coordinates is less by that.
    shrunk: FloatArray = shrink_steps(along, variances) @ axes.T + shrink_steps(across, variances * ((d - m) / d))
    return shrunk
