"""Records dealt out to parties, and flows that are solved only once.

All methods of one run start from the same centres with the same parts, so those with equal size constraints solve the
same flow in their first round. On birch2 a flow takes a second and most runs have two rounds: remembering saves half.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans.assignment import ConstrainedExclusive, Membership
from cloister.kmeans.kernel import ClusterSums
from cloister.records import ArrayRecords, FloatArray, Records
from papers.fastlloyd.datasets import DataSet, load_points


@dataclass(frozen=True, kw_only=True)
class Part:
    """One party's records in one run: its piece of the shuffled data set (thesis 8.2)."""

    data: DataSet
    run: int
    parties: int
    number: int


class PartRecords(ArrayRecords):
    """Records that know which part they are."""

    __slots__ = ("part",)

    def __init__(self, part: Part, points: FloatArray) -> None:
        super().__init__(points)
        self.part = part


@lru_cache(maxsize=8)
def deal_records(data: DataSet, run: int, parties: int) -> tuple[PartRecords, ...]:
    """Shuffle a data set and split it evenly."""
    points = load_points(data)
    order = Stream.from_seed(run, "split", data.label).permutation(len(points))
    return tuple(
        PartRecords(Part(data=data, run=run, parties=parties, number=number), points[rows])
        for number, rows in enumerate(np.array_split(order, parties))
    )


@dataclass(frozen=True, kw_only=True)
class RememberedFlow:
    """The constrained exclusive assignment of :class:`PartRecords`, each flow solved once."""

    inner: ConstrainedExclusive

    @property
    def name(self) -> str:
        """The method's name."""
        return self.inner.name

    def assign(self, points: FloatArray, centres: FloatArray) -> Membership:
        """As the inner assignment."""
        return self.inner.assign(points, centres)

    def sums(self, records: Records | FloatArray, centres: FloatArray) -> ClusterSums:
        """As the inner assignment, from memory where the same part met the same centres lately."""
        if isinstance(records, PartRecords):
            return _sum_once(self.inner, records.part, centres.tobytes(), centres.shape)
        return self.inner.sums(records, centres)


@lru_cache(maxsize=64)
def _sum_once(assignment: ConstrainedExclusive, part: Part, centres: bytes, shape: tuple[int, ...]) -> ClusterSums:
    records = deal_records(part.data, part.run, part.parties)[part.number]
    return assignment.sums(records, np.frombuffer(centres).reshape(shape))
