"""Lloyd's algorithm on all records in one place, with SecFC's steps: random assignment, 1/3 rule, assignments.

Twice: on the rounded records in the field's integers, which is what the protocol computes, to the last tie; and in
doubles on the records as they are, which is what SecFC is compared with. Both start from the same assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.spatial.distance import cdist

from cloister.field import CodedRecords, Field
from cloister.protocols.secfc.labels import NO_CLUSTER, Labels, Partition, count_labels
from cloister.records import FloatArray, IntArray

_SEPARATION = 9.0  # 1/3 of the distance is 1/9 of its square


@dataclass(frozen=True, kw_only=True, eq=False)
class LloydRun:
    """Where it ended.

    Attributes
    ----------
    labels
        The cluster of every record.
    rounds
        How many assignments were made.
    converged
        Whether the last one moved no record.
    separated
        Whether the 1/3 rule changed the clusters.
    """

    labels: Labels = field(repr=False)
    rounds: int
    converged: bool
    separated: bool


class _Steps(Protocol):
    """What the two arithmetics have in common."""

    @property
    def labels(self) -> Labels: ...

    def measure(self) -> None: ...

    def separate(self) -> bool: ...

    def assign(self) -> bool: ...


def run_integer_lloyd(
    points: IntArray,
    start: Labels,
    *,
    clusters: int,
    field: Field,
    rounds_max: int,
    separate_after: int | None,
) -> LloydRun:
    """Run it on rounded records, in a field where nothing overflows.

    Parameters
    ----------
    points
        (m, d), on the integer grid.
    start
        The first assignment.
    clusters
        k.
    field
        Where the distances are computed; without shares, so that an element is its own integer.
    rounds_max, separate_after
        As :class:`~cloister.protocols.secfc.agreement.SecfcAgreement` has them.
    """
    return _follow(_IntegerSteps(points, start, clusters, field), rounds_max, separate_after)


def run_double_lloyd(
    points: FloatArray, start: Labels, *, clusters: int, rounds_max: int, separate_after: int | None
) -> LloydRun:
    """Run it in doubles; as :func:`run_integer_lloyd`."""
    return _follow(_DoubleSteps(points, start, clusters), rounds_max, separate_after)


def _follow(steps: _Steps, rounds_max: int, separate_after: int | None) -> LloydRun:
    """Algorithm 1, lines 6 to 19, with the separation of section 5 after this many assignments."""
    rounds, moved, separated = 0, True, False
    pending = separate_after is not None
    while moved and rounds < rounds_max:
        steps.measure()
        if pending and rounds == separate_after:
            pending = False
            separated = steps.separate()
            if separated:
                continue
        moved = steps.assign()
        rounds += 1
    return LloydRun(labels=steps.labels, rounds=rounds, converged=not moved, separated=separated)


class _IntegerSteps:
    """The coordinator's partition, fed with distances of records instead of shares."""

    def __init__(self, points: IntArray, start: Labels, clusters: int, field: Field) -> None:
        self._field = field
        self._clusters = clusters
        self._records = CodedRecords(field, field.encode(points))
        self._partition = Partition(field, start, clusters)

    @property
    def labels(self) -> Labels:
        return self._partition.labels

    def measure(self) -> None:
        columns = self._partition.stale
        if columns:
            sums = self._records.sum_clusters(self.labels, self._clusters)[:, list(columns)]
            measured = self._records.measure(sums, self._partition.counts[list(columns)])
            self._partition.take(columns, self._field.decode_distances(measured))

    def separate(self) -> bool:
        return self._partition.separate()

    def assign(self) -> bool:
        return self._partition.assign()


class _DoubleSteps:
    """The same rules in doubles, written apart from the protocol's."""

    def __init__(self, points: FloatArray, start: Labels, clusters: int) -> None:
        self._points = points
        self._clusters = clusters
        self._squared_distances = np.empty((len(points), clusters))
        self.labels = start

    def measure(self) -> None:
        centres = np.stack([self._points[self.labels == h].mean(axis=0) for h in range(self._clusters)])
        self._squared_distances = cdist(self._points, centres, "sqeuclidean")

    def separate(self) -> bool:
        """S'_h = {i : |x_i - mu_h| <= |x_i - mu_s| / 3 for all s != h}; a cluster left empty keeps its free members."""
        others = self._squared_distances.copy()
        rows, nearest = np.arange(len(others)), self._squared_distances.argmin(axis=1)
        own = others[rows, nearest]
        others[rows, nearest] = np.inf
        groups = np.where(_SEPARATION * own <= others.min(axis=1), nearest, NO_CLUSTER)
        for h in np.flatnonzero(count_labels(groups.astype(np.int32), self._clusters) == 0):
            groups[(groups == NO_CLUSTER) & (self.labels == h)] = h
        full = set(groups.tolist()) >= set(range(self._clusters))
        return full and self._move(groups)

    def assign(self) -> bool:
        """Nearest centres; an empty cluster takes the record that is farthest from its own, if that is not alone."""
        labels = self._squared_distances.argmin(axis=1)
        away = self._squared_distances[np.arange(len(labels)), labels]
        for h in range(self._clusters):
            sizes = np.bincount(labels, minlength=self._clusters)
            if not sizes[h]:
                labels[np.where(sizes[labels] > 1, away, -1.0).argmax()] = h
        return self._move(labels)

    def _move(self, labels: IntArray) -> bool:
        moved = bool((labels != self.labels).any())
        self.labels = labels.astype(np.int32)
        return moved
