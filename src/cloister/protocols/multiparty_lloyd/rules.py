"""Update rules: what a party contributes to a round, and how the sum moves the centres.

A rule holds only public values and is the same everywhere, bit for bit. The exact ones are here; those whose sums
carry noise come with a :class:`~cloister.protocols.multiparty_lloyd.noise.NoisePlan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from cloister.errors import PrecisionError, RemoteProtocolError
from cloister.kmeans import Assignment, ClusterSums, Unconstrained, fold, update_centres
from cloister.numeric import FixedPoint
from cloister.privacy.centre_noise import blend, blur_means
from cloister.privacy.encoder import BoundedRecords, SumCountEncoder
from cloister.privacy.units import Sensitivity
from cloister.records import FloatArray, IntArray, Records, iterate_chunks

_CHUNK_ROWS = 2**20  # of at most 30 fractional bits: their sums stay below 2^53


Last = IntArray | None
"""The sum of the previous round, which everyone has seen; None in the first."""


class Rule(Protocol):
    """How one round is computed. ``width`` integers travel per cluster."""

    @property
    def width(self) -> int:
        """How many integers a cluster has in one update."""

    def bound_sum(self, parties: int, max_records: int) -> int:
        """Return the largest magnitude of an entry of the sum, by public values; it determines the ring."""

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """Return one party's exact integers, (k, width)."""

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Return the next centres, from the sum over ``members`` parties; an empty cluster keeps its centre."""


class NoisyRule(Rule, Protocol):
    """A rule whose sums are released with noise."""

    released: ClassVar[str]
    """What is released of each cluster, in words."""
    nearest_only: ClassVar[bool]
    """Whether the sensitivity only holds if each record joins its nearest centre."""

    @property
    def count_weight(self) -> int | None:
        """What a record adds to its cluster's count; None where counts are not released."""

    def sensitivity_of(self, round_: int) -> Sensitivity:
        """The largest norms of what one record contributes to a round."""

    def read_counts(self, total: IntArray) -> FloatArray | None:
        """The noisy number of records of each cluster; None where it is not released."""

    def blur_centre(self, deviation: float, round_: int, cluster_records: float) -> float:
        """Return how far noise of this deviation on the sum moves a coordinate of a centre, in unit scaling."""

    def carry_noise(
        self, left: FloatArray, total: IntArray, deviation: float, *, round_: int, last: Last = None
    ) -> FloatArray:
        """Return the variances of the noise in the centres after a round, from those before it.

        All in unit scaling, (k, d). They follow from the round's noisy sum and the deviation of its noise
        (docs/proofs/uncertainty.md).
        """


@dataclass(frozen=True, kw_only=True)
class ExactSums:
    """d sums and a count for each cluster (thesis 5.2.1 (b), 5.3.1 (b)); mu_i = S_i / C_i.

    ``max_records`` is the public cap on one party's records: no honest count exceeds it.
    """

    dimensions: int
    fixed_point: FixedPoint
    max_records: int

    @property
    def width(self) -> int:
        """The sums and the count."""
        return self.dimensions + 1

    def bound_sum(self, parties: int, max_records: int) -> int:
        """Each coordinate is at most 1 in magnitude, so |S_i| 2^f <= M N_max 2^f and C_i <= M N_max."""
        return parties * max_records * self.fixed_point.scale

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """S_li and C_li as integers: exact, since records lie on the fixed-point grid."""
        exact = _sum_within_cap(records, centres, assignment, self.max_records)
        return np.hstack([self.fixed_point.encode(exact.sums), exact.counts[:, None]])

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Divide."""
        return update_centres(self.fixed_point.decode(total[:, :-1]), total[:, -1], centres)

    def confine(self, total: IntArray, *, members: int) -> IntArray:
        """Return the nearest counts that so many parties can have, and the nearest sums that these counts allow."""
        counts = np.clip(total[:, -1:], 0, members * self.max_records)
        limit = counts * self.fixed_point.scale  # no overflow: the ring was chosen for it
        return np.hstack([np.clip(total[:, :-1], -limit, limit), counts])

    def check_sums(self, update: IntArray) -> None:
        """Refuse one party's sums that no records could give, where they come in the clear; catches clumsy liars."""
        if not np.array_equal(self.confine(update, members=1), update):
            raise RemoteProtocolError(
                f"a cluster's count must be from 0 to {self.max_records}, and its sum at most the count times the "
                "bound; some are not."
            )


@dataclass(frozen=True, kw_only=True)
class ExactCentroids:
    """d coordinates of S_li / (M C_li) for each cluster (thesis 5.4.1): their sum is the average of local centres."""

    dimensions: int
    fixed_point: FixedPoint
    max_records: int
    parties: int

    @property
    def width(self) -> int:
        """The coordinates."""
        return self.dimensions

    def bound_sum(self, parties: int, max_records: int) -> int:
        """Scaled centroids are at most 2^f / M each, so their sum is at most 2^f + M after rounding."""
        return self.fixed_point.scale + parties

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """Scaled local centres; an empty local cluster leaves its centre where it is."""
        exact = _sum_within_cap(records, centres, assignment, self.max_records)
        return self.fixed_point.encode(average_locally(exact, centres) / self.parties)

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Average over the parties that stayed.

        Parties scale by the agreed M before anyone knows who will drop out: the average is the sum times M / members.
        """
        return np.clip(total / self.fixed_point.scale * (self.parties / members), -1.0, 1.0)

    def confine(self, total: IntArray, *, members: int) -> IntArray:
        """Return the nearest sums that so many parties' averages can give."""
        most = members * -(-self.fixed_point.scale // self.parties)  # each party rounds once
        return np.clip(total, -most, most)


ExactRule = ExactSums | ExactCentroids
"""What ``confine`` of these does to a sum, nobody but the parties may see (docs/proofs/secure-sum.md, claim 5)."""


def average_locally(exact: ClusterSums, centres: FloatArray) -> FloatArray:
    """Return S_li / C_li; the old centre if a party has no record in a cluster."""
    counts = exact.counts[:, None]
    return np.where(counts > 0, exact.sums / np.maximum(counts, 1), centres)


def _sum_within_cap(records: Records, centres: FloatArray, assignment: Assignment, max_records: int) -> ClusterSums:
    """Sum a party's records; more than the cap may only be refused if sums are exact.

    With noise, an abort would distinguish neighbouring tables; a sum that wraps around spoils a centre, not privacy.
    """
    exact = assignment.sums(records, centres)
    if int(exact.counts.max()) > max_records:
        raise PrecisionError(
            f"a party must hold at most max_records = {max_records} records, the public cap that "
            "the ring was chosen for; this one holds more. Agree on a larger cap."
        )
    return exact


def sum_on_grid(
    records: Records, centres: FloatArray, assignment: Assignment, fixed_point: FixedPoint, count_weight: int
) -> IntArray:
    """Return sums of records and weighted counts per cluster as integers, (k, d + 1), for any number of records.

    If each record joins its nearest centre, one record changes one cluster by exactly its own integers: records are
    clipped and rounded to the grid, the doubles of a chunk are exact, and chunks are added modulo 2^64. The number of
    records never causes an abort, which would distinguish neighbours.
    """
    if not isinstance(assignment, Unconstrained):  # no such promise: size constraints need all records at once
        exact = assignment.sums(records, centres)
        return np.hstack([fixed_point.encode(exact.sums), count_weight * exact.counts[:, None]])
    total = np.zeros((len(centres), centres.shape[1] + 1), dtype=np.int64)
    for chunk in iterate_chunks(records, _CHUNK_ROWS):
        exact = assignment.sums(fixed_point.quantise(np.clip(chunk, -1.0, 1.0)), centres)
        total[:, :-1] += fixed_point.encode(exact.sums)
        total[:, -1] += count_weight * exact.counts
    return total


@dataclass(frozen=True, kw_only=True)
class BoundedSums:
    """Sums and weighted counts of records of bounded length, released with noise: thesis 7.2.4, made sound."""

    encoder: SumCountEncoder
    released: ClassVar[str] = "sums and counts"
    nearest_only: ClassVar[bool] = True

    @property
    def width(self) -> int:
        """The sums and the weighted count."""
        return self.encoder.dimensions + 1

    def bound_sum(self, parties: int, max_records: int) -> int:
        """As :class:`ExactSums`, and the count is weighted."""
        return parties * max_records * max(self.encoder.fixed_point.scale, self.encoder.count_weight)

    def contribute(
        self, records: Records, centres: FloatArray, round_: int, assignment: Assignment, last: Last = None
    ) -> IntArray:
        """Sums of records that have passed the norm bound."""
        bounded = BoundedRecords(records, self.encoder)
        return sum_on_grid(bounded, centres, assignment, self.encoder.fixed_point, self.encoder.count_weight)

    def move(self, centres: FloatArray, total: IntArray, *, round_: int, members: int, last: Last = None) -> FloatArray:
        """Divide noisy sums by noisy counts and fold the centres back (thesis 6.1.3); all of this is post-processing.

        A cluster whose noisy count is below one keeps its centre: its sum is noise.
        """
        counts = self.encoder.decode_counts(total)
        seen = counts >= 1
        moved = centres.copy()
        moved[seen] = fold(self.encoder.decode_sums(total)[seen] / counts[seen, None], -1.0, 1.0)
        return moved

    @property
    def count_weight(self) -> int:
        """The encoder's."""
        return self.encoder.count_weight

    def sensitivity_of(self, round_: int) -> Sensitivity:
        """The encoder's, in every round."""
        return self.encoder.sensitivity

    def read_counts(self, total: IntArray) -> FloatArray:
        """The noisy counts."""
        return self.encoder.decode_counts(total)

    def blur_centre(self, deviation: float, round_: int, cluster_records: float) -> float:
        """The sum's noise over the number of records."""
        return deviation * self.encoder.fixed_point.resolution / cluster_records

    def carry_noise(
        self, left: FloatArray, total: IntArray, deviation: float, *, round_: int, last: Last = None
    ) -> FloatArray:
        """The noise of the quotient; a cluster that was not seen keeps its centre and the noise in it."""
        counts = self.encoder.decode_counts(total)
        return blur_quotients(
            left,
            self.encoder.decode_sums(total),
            np.where(counts >= 1, counts, 0.0),
            sum_std=deviation * self.encoder.fixed_point.resolution,
            count_std=deviation / self.encoder.count_weight,
        )


def blur_quotients(
    left: FloatArray, sums: FloatArray, counts: FloatArray, *, sum_std: float, count_std: float
) -> FloatArray:
    """Return the variances of sums over counts; where a count is 0, those of the centre that stays."""
    seen, divisors = counts[:, None] != 0, np.where(counts != 0, counts, 1.0)
    fresh = blur_means(sums / divisors[:, None], divisors, sum_std=sum_std, count_variances=count_std**2)
    return blend(left, fresh, np.where(seen, 1.0, 0.0))
