"""The coordinator's Lloyd: labels from decoded distances, by exact comparison (Algorithm 1, lines 14-18).

It never sees a record. Whatever it decides follows from the integers d'_ih = |sum over S_h of x - c_h x_i|^2 and the
sizes c_h, so that it decides as the algorithm on the records would, to the last tie.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cloister.crypto import Stream
from cloister.errors import DataError
from cloister.field import Distances, Field, Words, find_nearest
from cloister.protocols.secfc.labels import NO_CLUSTER, Labels, count_labels
from cloister.records import FloatArray, IntArray

_CLOSE = 2.0**-40  # ratios of doubles are within 2^-50 of the true ones: what differs by more needs no second look
_SEPARATION = 9  # 1/3 of the distance is 1/9 of its square


def draw_labels(records: int, clusters: int, stream: Stream) -> Labels:
    """Return a random assignment to clusters of equal size, but for one record (Algorithm 1, line 6).

    Raises
    ------
    DataError
        If there are fewer records than clusters.
    """
    if records < clusters:
        raise DataError(
            f"there must be at least as many records as clusters, {clusters}; got {records}. Use fewer clusters."
        )
    return (stream.permutation(records) % clusters).astype(np.int32)


class Partition:
    """The present clusters and the distances to their centres.

    Parameters
    ----------
    field
        Where the distances are decoded.
    labels
        The first clusters.
    clusters
        k.
    """

    def __init__(self, field: Field, labels: Labels, clusters: int) -> None:
        self._clusters = clusters
        self._low: Words = np.zeros((len(labels), clusters), dtype=np.uint64)
        self._high: Words | None = np.zeros_like(self._low) if field.residues > 1 else None
        self._stale = np.ones(clusters, dtype=bool)
        self.labels = labels
        self.counts = self._measured_counts = count_labels(labels, clusters)

    @property
    def stale(self) -> tuple[int, ...]:
        """The clusters whose members are not those that their distances were measured for; empty ones have no centre.

        d'_ih depends on the members of h only, so that the other columns need not be sent again.
        """
        return tuple(np.flatnonzero(self._stale & (self.counts > 0)).tolist())

    @property
    def distances(self) -> Distances:
        """d'_ih, (m, k), as far as measured."""
        return Distances(low=self._low, high=self._high)

    def take(self, columns: tuple[int, ...], distances: Distances) -> None:
        """Take the distances to some clusters' present centres."""
        if len(columns) == self._clusters:
            self._low, self._high = distances.low, distances.high
        else:
            self._low[:, columns] = distances.low
            if self._high is not None and distances.high is not None:
                self._high[:, columns] = distances.high
        self._stale[list(columns)] = False

    def assign(self) -> bool:
        """Put every record into the cluster of its nearest centre, the lowest on ties; return whether any moved.

        A cluster that loses all its records takes the one that is farthest from its own centre (ties: the lowest
        index), of a cluster that keeps others. The loss never rises by it, and there are always k clusters.
        """
        labels = find_nearest(self.distances, self.counts)
        counts = count_labels(labels, self._clusters)
        if not counts.all():
            labels = refill_empty(labels, self.distances, self.counts)
            counts = count_labels(labels, self._clusters)
        return self._relabel(labels, counts)

    def separate(self) -> bool:
        """Keep in each cluster the records at most 1/3 as far from its centre as from any other (section 5).

        The others are in no cluster until the next assignment. A cluster that this leaves empty keeps those of its
        members that no other cluster has taken; if it has none, nothing is separated. Returns whether anything was.
        """
        groups = separate_groups(self.distances, self.counts)
        empty = count_labels(groups, self._clusters) == 0
        stays = (groups == NO_CLUSTER) & (self.labels != NO_CLUSTER) & empty[self.labels]
        groups = np.where(stays, self.labels, groups).astype(np.int32)
        counts = count_labels(groups, self._clusters)
        return bool(counts.all()) and self._relabel(groups, counts)

    def sum_squares(self) -> float:
        """Return the sum of squared distances to the nearest of the centres that were measured last."""
        ratios = _ratios(self.distances, self._measured_counts)
        return float(ratios.min(axis=1).sum()) if len(ratios) else 0.0

    def _relabel(self, labels: Labels, counts: IntArray) -> bool:
        """Take new labels, and note which clusters have other members now."""
        moved = labels != self.labels
        touched = np.zeros(self._clusters + 1, dtype=bool)  # the last place answers for label -1
        touched[labels[moved]] = touched[self.labels[moved]] = True
        self._stale |= touched[:-1]
        self._measured_counts = self.counts
        self.labels, self.counts = labels, counts
        return bool(moved.any())


def separate_groups(distances: Distances, counts: IntArray) -> Labels:
    """Return S'_h = {i : |x_i - mu_h| <= |x_i - mu_s| / 3 for all s != h}, as labels; exact.

    Only the nearest centre can meet it; where several are at distance 0, the lowest index takes the record.
    """
    nearest = find_nearest(distances, counts)
    rows = np.arange(len(nearest))
    ratios = _ratios(distances, counts)
    own = _SEPARATION * ratios[rows, nearest]
    ratios[rows, nearest] = np.inf
    other = ratios.min(axis=1)
    inside = own <= other
    # own = 0 is within any distance; inf is "no other centre": neither is a close call
    close = np.flatnonzero((own > 0) & np.isfinite(other) & (np.abs(own - other) <= _CLOSE * other))
    for i in close.tolist():
        mine = int(nearest[i])
        bound = _SEPARATION * _exact_ratio(distances, counts, i, mine)
        others = (h for h in np.flatnonzero(counts).tolist() if h != mine)
        inside[i] = all(bound <= _exact_ratio(distances, counts, i, h) for h in others)
    return np.where(inside, nearest, NO_CLUSTER).astype(np.int32)


def refill_empty(labels: Labels, distances: Distances, counts: IntArray) -> Labels:
    """Return the labels with the farthest records moved, one to each empty cluster in turn; exact."""
    sizes = count_labels(labels, len(counts))
    measured, labels = labels, labels.copy()
    away = _ratios(distances, counts)[np.arange(len(labels)), measured]
    for empty in np.flatnonzero(sizes == 0).tolist():
        movable = np.flatnonzero(sizes[labels] > 1)
        if not len(movable):
            break
        most = away[movable].max()
        close = movable[away[movable] >= most * (1 - _CLOSE)] if most else movable[:1]
        farthest = max(close.tolist(), key=lambda i: (_exact_ratio(distances, counts, i, int(measured[i])), -i))
        sizes[labels[farthest]] -= 1
        labels[farthest] = empty
        sizes[empty] = 1
    return labels


def _ratios(distances: Distances, counts: IntArray) -> FloatArray:
    """Return d'_ih / c_h^2 as doubles, within a relative 2^-50; infinite for empty clusters."""
    squares = counts.astype(np.float64) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = distances.to_floats() / squares
    ratios[:, counts == 0] = np.inf
    return ratios


def _exact_ratio(distances: Distances, counts: IntArray, row: int, column: int) -> Fraction:
    """Return d'_ih / c_h^2 of one record and one cluster that is not empty."""
    high = 0 if distances.high is None else int(distances.high[row, column])
    return Fraction((high << 64) + int(distances.low[row, column]), int(counts[column]) ** 2)
