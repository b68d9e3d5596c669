"""The steps as published: sums and counts (thesis 7.2.4, SuLloyd, CSuLloyd) and centroids (7.2.5, FastLloyd 5.2).

The formulas are as printed. The claimed sensitivities hold if each record joins its nearest centre; under size
constraints they do not (docs/proofs/published-fastlloyd.md). As everywhere here, noise is drawn on the integer grid
instead of being rounded to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from cloister.errors import InfeasibleError
from cloister.kmeans import Assignment, DistanceConstrained, fold, truncate
from cloister.numeric import FixedPoint
from cloister.privacy.centre_noise import blend
from cloister.privacy.units import Sensitivity
from cloister.protocols.multiparty_lloyd.rules import Last, average_locally, blur_quotients, sum_on_grid
from cloister.records import FloatArray, IntArray, Records

Correction = Literal["none", "truncate", "fold"]
"""What to do with a noisy value outside its domain (thesis 6.1.3)."""


@dataclass(frozen=True, kw_only=True)
class PostProcessing:
    """What to do with noisy sums, counts and centres (thesis 8.4: 27 combinations)."""

    sums: Correction = "none"
    counts: Correction = "none"
    centres: Correction = "fold"


def correct(values: FloatArray, how: Correction, low: float, high: float) -> FloatArray:
    """Bring values into their domain, which may be a single number, or leave them as they are."""
    if how == "none":
        return values
    if low == high:
        return np.full_like(values, low)
    return fold(values, low, high) if how == "fold" else truncate(values, low, high)


@contextmanager
def _blaming_alphas() -> Iterator[None]:
    """Explain by the job's keys why sizes cannot be met, without numbers from a party's table."""
    try:
        yield
    except InfeasibleError:
        raise InfeasibleError(
            "each party's records must allow clusters of the sizes that follow from data.records and alpha (and within "
            "the radius, if any); these do not. Raise alpha_min and alpha_max, declare the actual number of "
            "records, or give all parties equally many. That a run stops here reveals something about the records."
        ) from None


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """What public values say about cluster sizes and distances.

    Parameters
    ----------
    size_min, size_max
        c_min and c_max of the clusters of all parties together; 1 and N without constraints.
    memberships
        E: how many clusters a record may be in.
    radii
        eta_d of each round if the distance is constrained (FastLloyd 7.1); else empty.
    """

    size_min: int
    size_max: int
    memberships: int = 1
    radii: tuple[float, ...] = ()

    def at_round(self, assignment: Assignment, round_: int) -> Assignment:
        """Return the assignment with the radius of this round."""
        if self.radii and isinstance(assignment, DistanceConstrained):
            return replace(assignment, radius=self.radii[round_ - 1])
        return assignment


@dataclass(frozen=True, kw_only=True)
class PublishedSums:
    """Noisy sums of records over noisy counts; the count has the weight w = 2^f cbrt(4 d rho^2) (thesis 6.2.3).

    One scale b on (S 2^f, w C) is Lap(BE / epsilon^Sigma) on the sums and Lap(E / epsilon^C) on the counts, since
    b = E 2^f / epsilon^Sigma and b / w = E / epsilon^C.
    """

    dimensions: int
    fixed_point: FixedPoint
    count_weight: int
    constraints: Constraints
    post: PostProcessing
    released: ClassVar[str] = "sums and counts"
    nearest_only: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """The sums and the weighted count."""
        return self.dimensions + 1

    def bound_sum(self, parties: int, max_records: int) -> int:
        """Bound the sum: a record may be in E clusters, but only once in each."""
        return parties * max_records * max(self.fixed_point.scale, self.count_weight)

    def sensitivity_of(self, round_: int) -> Sensitivity:
        """Claimed: Delta^Sigma = BE for each of d sums, Delta^C = E (thesis 6.2.1)."""
        scale, e = self.fixed_point.scale, self.constraints.memberships
        return Sensitivity(
            l1=e * (self.dimensions * scale + self.count_weight),
            l2_squared=e * (self.dimensions * scale**2 + self.count_weight**2),
        )

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """Return S_li and w C_li as integers."""
        at_round = self.constraints.at_round(assignment, round_)
        with _blaming_alphas():
            return sum_on_grid(records, centres, at_round, self.fixed_point, self.count_weight)

    def read_counts(self, total: IntArray) -> FloatArray:
        """Return the noisy counts."""
        counts: FloatArray = total[:, -1] / self.count_weight
        return counts

    def blur_centre(self, deviation: float, round_: int, cluster_records: float) -> float:
        """Return the noise of the sum divided by the number of records."""
        return deviation * self.fixed_point.resolution / cluster_records

    def carry_noise(
        self, left: FloatArray, total: IntArray, deviation: float, *, round_: int, last: Last = None
    ) -> FloatArray:
        """Return the noise of the quotient; a cluster whose count is zero keeps its centre and the noise in it."""
        sums, counts = self._correct(total)
        sum_std, count_std = deviation * self.fixed_point.resolution, deviation / self.count_weight
        return blur_quotients(left, sums, counts, sum_std=sum_std, count_std=count_std)

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Correct, divide, correct (7.2.4). If a count is zero, its centre stays."""
        sums, counts = self._correct(total)
        seen = counts != 0
        moved = centres.copy()
        moved[seen] = correct(sums[seen] / counts[seen, None], self.post.centres, -1.0, 1.0)
        return moved

    def _correct(self, total: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bring noisy sums and counts into their domains."""
        most = float(self.constraints.size_max)
        sums = correct(self.fixed_point.decode(total[:, :-1]), self.post.sums, -most, most)
        return sums, correct(self.read_counts(total), self.post.counts, float(self.constraints.size_min), most)


@dataclass(frozen=True, kw_only=True)
class PublishedCentroids:
    """The noisy average of the parties' local centroids (FastLloyd algorithm 1, thesis 7.2.5)."""

    dimensions: int
    fixed_point: FixedPoint
    parties: int
    constraints: Constraints
    post: PostProcessing
    released: ClassVar[str] = "centres"
    nearest_only: ClassVar[bool] = False

    @property
    def width(self) -> int:
        """The coordinates."""
        return self.dimensions

    def bound_sum(self, parties: int, max_records: int) -> int:
        """Scaled centroids are at most 2^f / M each, so their sum is at most 2^f + M after rounding."""
        return self.fixed_point.scale + parties

    def sensitivity_of(self, round_: int) -> Sensitivity:
        """Claimed: Delta^mu = BE / c_min (thesis 6.3.1), or 2 eta_d / c_min where that is less (FastLloyd 7.1).

        In each of d columns, and one step of the grid more for the rounding of the party's quotient.
        """
        reach = float(self.constraints.memberships)
        if self.constraints.radii:
            reach = min(reach, 2.0 * self.constraints.radii[round_ - 1])
        entry = math.ceil(reach * self.fixed_point.scale / self.constraints.size_min) + 1
        return Sensitivity(l1=self.dimensions * entry, l2_squared=self.dimensions * entry**2)

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """S_li / (M C_li) as integers."""
        with _blaming_alphas():
            exact = self.constraints.at_round(assignment, round_).sums(records, centres)
        return self.fixed_point.encode(average_locally(exact, centres) / self.parties)

    @property
    def count_weight(self) -> None:
        """None: there are no counts."""

    def read_counts(self, total: IntArray) -> None:
        """Return None: this step releases no counts (thesis 5.4)."""

    def blur_centre(self, deviation: float, round_: int, cluster_records: float) -> float:
        """Return the noise, which is on the centre itself."""
        return deviation * self.fixed_point.resolution

    def carry_noise(
        self, left: FloatArray, total: IntArray, deviation: float, *, round_: int, last: Last = None
    ) -> FloatArray:
        """Return the noise, which is on the centre itself."""
        return blend(left, np.full(left.shape, (deviation * self.fixed_point.resolution) ** 2), 1.0)

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Return the average over the parties that stayed."""
        return correct(total / self.fixed_point.scale * (self.parties / members), self.post.centres, -1.0, 1.0)
