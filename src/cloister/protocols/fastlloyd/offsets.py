"""The sound step: each cluster's records as offsets from its centre, none longer than a radius, with their number.

A record joins its nearest centre and adds its offset from it, shortened to the radius of the round, and w for the
count. Which cluster it joins depends on the record and on centres released before, never on other records. So one
record changes one cluster, and the sensitivity of the joint release is the length of the longest such vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloister.kmeans import Assignment, fold, sum_offsets
from cloister.privacy.centre_noise import UNKNOWN, blend, blur_means
from cloister.privacy.units import Sensitivity
from cloister.protocols.multiparty_lloyd.rules import Last
from cloister.records import FloatArray, IntArray, Records

_DOUBT = 0.5
"""The shrinkage of steps: a step is shortened by this part of noise^2 / step^2."""
_NO_STEP = 1e-150
"""A squared step below this counts as zero, so that quotients by it do not overflow."""
_QUIET_ROUNDS = 1
"""The last rounds, in which no cluster is moved elsewhere: a cluster that was moved needs a round to settle."""
_IDLE = 0.2
"""A cluster is idle below this part of the average count ..."""
_IDLE_NOISES = 2.0
"""... or below this many standard deviations of a count's noise."""
_BUSY = 1.5
"""A cluster is busy above this multiple of the average count ..."""
_BUSY_NOISES = 6.0
"""... if it is also above this many standard deviations."""
_HOP = 0.12
"""How far from the busy centre the idle one is placed, as a part of the radius."""


def measure_contribution(dimensions: int, scale: int, count_weight: int) -> Sensitivity:
    """Return the largest norms of one record's integers: an offset no longer than ``scale``, and the count's weight.

    L1 <= sqrt(d) L2 for the offset (Cauchy-Schwarz), and |z| <= z^2 for integers. The norms are integers, so rounding
    the bounds down is valid.
    """
    offset_l1 = min(math.isqrt(dimensions * scale**2), scale**2)
    return Sensitivity(l1=offset_l1 + count_weight, l2_squared=scale**2 + count_weight**2)


@dataclass(frozen=True, kw_only=True)
class Offsets:
    """Radius-bounded offsets and weighted counts.

    Parameters
    ----------
    dimensions
        d.
    radii
        The radius of each round, in unit scaling; the least one, if ``blur`` allows a larger one.
    blur
        How far noise may move a centre, in unit scaling. If a cluster has so many records that noise moves it less, its
        radius grows until noise moves it this far or no offset is shortened any more, which reduces the bias. 0 keeps
        to ``radii``.
    scale
        The integer length of an offset as long as the radius.
    count_weight
        w: what a record adds to its cluster's count.
    deviation
        The planned standard deviation of all noise on an entry of the sum, by which steps are shortened.

    Privacy
    -------
    Neighbours: one record added or removed. Sensitivity: :func:`measure_contribution`, in every round. What follows
    from the noisy sums is post-processing: shortened steps, folded centres, relocated clusters, the next
    radii. Offsets are counted in units of their cluster's radius, so the sensitivity does not depend on it. Proof:
    docs/proofs/fastlloyd.md.
    """

    dimensions: int
    radii: tuple[float, ...]
    scale: int
    count_weight: int
    deviation: float
    blur: float = 0.0
    released: ClassVar[str] = "sums of offsets and counts"
    nearest_only: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """The integers per cluster: the sums of offsets and the weighted count."""
        return self.dimensions + 1

    def bound_sum(self, parties: int, max_records: int) -> int:
        """Bound the sum: no entry of one record's integers exceeds the scale or the weight."""
        return parties * max_records * max(self.scale, self.count_weight)

    def sensitivity_of(self, round_: int) -> Sensitivity:
        """Return the same in every round: offsets are measured in units of the radius."""
        return measure_contribution(self.dimensions, self.scale, self.count_weight)

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """Return one party's sums of offsets and weighted counts."""
        radii = self.find_radii(len(centres), round_, last)
        sums = sum_offsets(records, centres, radii, scale=self.scale, weight=self.count_weight)
        return np.delete(sums, self.dimensions, axis=1)  # the squared lengths are not released

    def read_counts(self, total: IntArray) -> FloatArray:
        """Return the noisy counts."""
        counts: FloatArray = total[:, -1] / self.count_weight
        return counts

    def find_radii(self, clusters: int, round_: int, last: Last) -> FloatArray:
        """Return each cluster's radius, from released counts: post-processing, like the centres."""
        if last is None:
            return np.full(clusters, self.radii[round_ - 1])
        return self._widen(round_, np.maximum(self.read_counts(last), 1.0), self.deviation)

    def _widen(self, round_: int, counts: FloatArray, deviation: float) -> FloatArray:
        """Return the radius at which noise moves a centre by ``blur``; at least the round's, at most the diagonal."""
        least, most = self.radii[round_ - 1], 2.0 * math.sqrt(self.dimensions)
        noise = math.sqrt(self.dimensions) * deviation / self.scale / counts  # of a step, in radii
        return np.clip(self.blur / noise, least, max(least, most))

    def blur_centre(self, deviation: float, round_: int, cluster_records: float) -> float:
        """Return the noise of the sum of offsets divided by the number of records."""
        (radius,) = self._widen(round_, np.array([cluster_records]), deviation)
        return float(deviation * radius / self.scale / cluster_records)

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Step by the average offset, as far as it exceeds the noise; fold; relocate idle clusters."""
        step = self._read_step(total, round_, last)
        moved = fold(centres + step.offsets * np.minimum(step.certain, step.limit), -1.0, 1.0)
        return relocate(moved, self._find_moves(total, round_), distance=self.radii[-1], turn=round_)

    def carry_noise(
        self, left: FloatArray, total: IntArray, deviation: float, *, round_: int, last: Last = None
    ) -> FloatArray:
        """Return what a step leaves of the noise before it, and adds; of a relocated centre nothing is known yet."""
        step = self._read_step(total, round_, last)
        fresh = np.square(step.radii) * blur_means(
            step.offsets / step.radii,
            step.divisors,
            sum_std=deviation / self.scale,
            count_variances=(deviation / self.count_weight) ** 2,
        )
        carried = blend(left, fresh, step.certain)
        carried[[idle for idle, _ in self._find_moves(total, round_)]] = UNKNOWN
        return carried

    def _read_step(self, total: IntArray, round_: int, last: Last) -> _Step:
        """Return what a round's sum says of the step."""
        radii = self.find_radii(len(total), round_, last)[:, None]
        unit = radii / self.scale
        divisors = np.maximum(self.read_counts(total), 1.0)
        offsets = total[:, :-1] * unit / divisors[:, None]
        squares = np.maximum(np.square(offsets).sum(axis=1, keepdims=True), _NO_STEP)
        noise_squares = self.dimensions * np.square(self.deviation * unit / divisors[:, None])
        return _Step(
            radii=radii,
            divisors=divisors,
            offsets=offsets,
            certain=np.maximum(0.0, 1.0 - _DOUBT * noise_squares / squares),
            limit=radii / np.sqrt(squares),
        )

    def _find_moves(self, total: IntArray, round_: int) -> list[tuple[int, int]]:
        """Return which clusters are relocated after a round, and beside which; none after the last ones."""
        if round_ >= len(self.radii) - _QUIET_ROUNDS:
            return []
        return find_moves(self.read_counts(total), count_noise=self.deviation / self.count_weight)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Step:
    """What a round's sum says of each cluster's step.

    ``certain`` is James and Stein's factor with half their shrinkage, and ``limit`` what keeps the step within the
    radius: no average of offsets is longer.
    """

    radii: FloatArray
    divisors: FloatArray
    offsets: FloatArray
    certain: FloatArray
    limit: FloatArray


def find_moves(noisy_counts: FloatArray, *, count_noise: float) -> list[tuple[int, int]]:
    """Return each idle cluster with the busy one beside which it is placed, in order: post-processing of counts.

    A cluster whose noisy count is small compared with the average is placed beside that with the largest count, and the
    two then share its records: that count is halved before the next cluster is looked for.
    """
    counts, moves = noisy_counts.copy(), []
    average = max(float(np.maximum(counts, 0.0).sum()), 1.0) / len(counts)
    idle_below = max(_IDLE_NOISES * count_noise, _IDLE * average)
    busy_above = max(_BUSY_NOISES * count_noise, _BUSY * average)
    for idle in np.argsort(counts, kind="stable").tolist():
        busy = int(np.argmax(counts))
        if counts[idle] > idle_below or counts[busy] < busy_above:
            break
        moves.append((idle, busy))
        counts[busy] /= 2
        counts[idle] = counts[busy]
    return moves


def relocate(centres: FloatArray, moves: Sequence[tuple[int, int]], *, distance: float, turn: int) -> FloatArray:
    """Return the centres with idle ones placed beside busy ones: post-processing of released counts, free of charge.

    Sphere packing spreads the first centres evenly over the domain, but records are not spread evenly: some centres get
    none and stay where they are, while others cover several clusters. Tuned on synthetic families
    (docs/study-fastlloyd.md).

    Parameters
    ----------
    centres, moves
        The centres after a step, and what `find_moves` found in the counts that it was based on.
    distance
        The radius of the last round: about the size of a cluster.
    turn
        The round. The direction of a move is an axis, which changes with the cluster and the round, so that everyone
        places the centre identically.
    """
    d, moved = centres.shape[1], centres.copy()
    for idle, busy in moves:
        hop = np.zeros(d)
        hop[(idle + turn) % d] = _HOP * distance * (1.0 if (idle // d) % 2 == 0 else -1.0)
        moved[idle] = fold(moved[busy] + hop, -1.0, 1.0)
    return moved
