"""The sound step: each cluster's records as offsets from its centre, none longer than a radius, with their number.

A record joins its nearest centre, and adds its offset from it, shortened to the radius of the round, and w for the
count. Which cluster it joins depends on the record and on centres that were released before, never on other records,
so one record touches one cluster: the sensitivity of the joint release is the longest such vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cloister.kmeans.assignment import Assignment
from cloister.kmeans.offsets import sum_offsets
from cloister.kmeans.postprocess import fold
from cloister.privacy.units import Sensitivity
from cloister.protocols.fastlloyd.relocation import relocate
from cloister.protocols.multiparty_lloyd.rules import Last
from cloister.records import FloatArray, IntArray, Records

_DOUBT = 0.5
"""How much of the expected noise a step must exceed: a step is shortened by this part of noise^2 / step^2."""
_NO_STEP = 1e-150
"""A squared step below this is none; quotients by it do not overflow."""
_QUIET_ROUNDS = 1
"""Rounds before the last in which no cluster is moved elsewhere: whoever is moved needs a round to settle."""


def measure_contribution(dimensions: int, scale: int, count_weight: int) -> Sensitivity:
    """The largest norms of one record's integers: an offset of length at most ``scale``, and the count's weight.

    L1 <= sqrt(d) L2 for the offset (Cauchy-Schwarz), and |z| <= z^2 for integers; the bounds are integers, so rounding
    down holds.
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
        The radius of each round, in unit scaling: the least one, where ``blur`` allows a larger.
    blur
        How far noise may move a centre, in unit scaling. A cluster with so many records that it moves less at the
        radius of the round has a larger one, until it does, or until nothing is shortened any more: with less noise
        there is less bias. 0 keeps to ``radii``.
    scale
        The integer that an offset as long as the radius is rounded to.
    count_weight
        w: what a record adds to its cluster's count.
    deviation
        The standard deviation of all noise together on an entry of the sum, by plan; it tells steps from noise.

    Privacy
    -------
    Neighbours: one record added or removed. Sensitivity: :func:`measure_contribution`, in every round. What follows
    from the noisy sums is post-processing: shortened steps, folded centres, clusters that are moved elsewhere, the next
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
        """The sums of offsets and the weighted count."""
        return self.dimensions + 1

    def bound_sum(self, parties: int, max_records: int) -> int:
        """No entry of one record's integers is larger than the scale, nor its weight."""
        return parties * max_records * max(self.scale, self.count_weight)

    def sensitivity_of(self, round_: int) -> Sensitivity:
        """The same in every round: offsets are counted in units of the radius."""
        return measure_contribution(self.dimensions, self.scale, self.count_weight)

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """One party's sums of offsets and weighted counts."""
        radii = self.find_radii(len(centres), round_, last)
        sums = sum_offsets(records, centres, radii, scale=self.scale, weight=self.count_weight)
        return np.delete(sums, self.dimensions, axis=1)  # the squared lengths are not released

    def read_counts(self, total: IntArray) -> FloatArray:
        """The noisy counts."""
        counts: FloatArray = total[:, -1] / self.count_weight
        return counts

    def find_radii(self, clusters: int, round_: int, last: Last) -> FloatArray:
        """Each cluster's radius, from released counts: post-processing, as the centres are."""
        if last is None:
            return np.full(clusters, self.radii[round_ - 1])
        return self._widen(round_, np.maximum(self.read_counts(last), 1.0), self.deviation)

    def _widen(self, round_: int, counts: FloatArray, deviation: float) -> FloatArray:
        """The radius at which noise moves a centre by ``blur``, but no less than the round's, nor more than all."""
        least, most = self.radii[round_ - 1], 2.0 * math.sqrt(self.dimensions)
        noise = math.sqrt(self.dimensions) * deviation / self.scale / counts  # of a step, in radii
        return np.clip(self.blur / noise, least, max(least, most))

    def blur_centre(self, deviation: float, round_: int, cluster_records: float) -> float:
        """The noise of the sum of offsets over the number of records."""
        (radius,) = self._widen(round_, np.array([cluster_records]), deviation)
        return float(deviation * radius / self.scale / cluster_records)

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Step by the average offset, as far as it stands out of the noise; fold; move idle clusters elsewhere."""
        radii = self.find_radii(len(centres), round_, last)[:, None]
        unit = radii / self.scale
        counts = self.read_counts(total)
        divisors = np.maximum(counts, 1.0)[:, None]
        steps = total[:, :-1] * unit / divisors
        squares = np.maximum(np.square(steps).sum(axis=1, keepdims=True), _NO_STEP)
        noise_squares = self.dimensions * np.square(self.deviation * unit / divisors)
        # James and Stein's factor, with half their shrinkage; and no average of offsets is longer than the radius.
        certain = np.maximum(0.0, 1.0 - _DOUBT * noise_squares / squares)
        limit = radii / np.sqrt(squares)
        moved = fold(centres + steps * np.minimum(certain, limit), -1.0, 1.0)
        if round_ >= len(self.radii) - _QUIET_ROUNDS:
            return moved
        return relocate(
            moved, counts, count_noise=self.deviation / self.count_weight, distance=self.radii[-1], turn=round_
        )
