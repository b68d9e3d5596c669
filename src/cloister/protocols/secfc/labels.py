"""Labels: how the coordinator decides them (Algorithm 1, lines 14-18), and how clients receive them.

The coordinator never sees a record. Its decisions follow from the sizes c_h and the integers
d'_ih = |sum over S_h of x - c_h x_i|^2, so that it decides as the algorithm on the records would, to the last tie. A
client is sent what changed since the labels that it is known to hold.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream
from cloister.errors import DataError, RemoteProtocolError
from cloister.field import Distances, Field, Words, find_nearest
from cloister.protocols.secfc.messages import LabelNews
from cloister.records import FloatArray, IntArray
from cloister.wire import Array

Labels = NDArray[np.int32]

NO_CLUSTER = -1
_NOTHING = Array.of(np.empty(0, dtype=np.uint32))
_CLOSE = 2.0**-40  # ratios of doubles are within 2^-50 of the true ones: what differs by more needs no second look
_SEPARATION = 9  # 1/3 of the distance is 1/9 of its square


def count_labels(labels: Labels, clusters: int) -> IntArray:
    """Return how many records each cluster has."""
    return np.bincount(labels + 1, minlength=clusters + 1)[1:].astype(np.int64)


def draw_labels(records: int, clusters: int, stream: Stream) -> Labels:
    """Return a random assignment to clusters whose sizes differ by at most one (Algorithm 1, line 6).

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


# --- on their way -----------------------------------------------------------------------------------------------------


def write_news(version: int, labels: Labels, clusters: int, base: int = 0, known: Labels | None = None) -> LabelNews:
    """Return labels as a message, relative to ``known``, which the reader holds as version ``base``, if shorter."""
    kind = _code_type(clusters)
    if known is not None:
        changed = np.flatnonzero(labels != known)
        if len(changed) * (4 + kind.itemsize) < len(labels) * kind.itemsize:
            codes = (labels[changed] + 1).astype(kind)
            return LabelNews(version, base, Array.of(changed.astype(np.uint32)), Array.of(codes))
    return LabelNews(version, 0, _NOTHING, Array.of((labels + 1).astype(kind)))


class LabelBook:
    """A client's copy of the labels: the newest version that it has received."""

    __slots__ = ("_clusters", "_records", "digest", "labels", "version")

    def __init__(self, *, records: int, clusters: int) -> None:
        self._records = records
        self._clusters = clusters
        self.version = 0
        self.labels: Labels = np.full(records, NO_CLUSTER, dtype=np.int32)
        self.digest = b""

    def read(self, news: LabelNews) -> Labels:
        """Return the labels of a version as new as ours or newer; changes nothing.

        Raises
        ------
        RemoteProtocolError
            If the version is older, builds on one that we do not hold, is not what we were told before, or is
            malformed.
        """
        if news.version < self.version or news.base not in (0, self.version):
            raise RemoteProtocolError(
                f"labels must be of version {self.version} or newer, whole or built on it; got version {news.version} "
                f"built on {news.base}."
            )
        kind = _code_type(self._clusters).type
        count = news.codes.shape[0] if news.base and len(news.codes.shape) == 1 else self._records
        codes = news.codes.to_numpy(kind, count)
        if count and codes.max() > self._clusters:
            raise RemoteProtocolError(f"labels must name clusters up to {self._clusters}; some do not.")
        labels = self.labels.copy() if news.base else np.empty(self._records, dtype=np.int32)
        fresh = codes.astype(np.int32) - 1
        if news.base:
            places = news.places.to_numpy(np.uint32, count)
            if count and (places[-1] >= self._records or (places[1:] <= places[:-1]).any()):
                raise RemoteProtocolError("changed labels must be of existing records, by rising index; they are not.")
            labels[places] = fresh
        else:
            news.places.to_numpy(np.uint32, 0)
            labels[:] = fresh
        if news.version == self.version and not np.array_equal(labels, self.labels):
            raise RemoteProtocolError(f"labels of version {self.version} must be those we were told; they are others.")
        return labels

    def keep(self, version: int, labels: Labels) -> None:
        """Take the labels that :meth:`read` returned."""
        if version != self.version:
            self.version, self.labels = version, labels
            self.digest = hashlib.sha256(labels.astype("<i4", copy=False).tobytes()).digest()


def _code_type(clusters: int) -> np.dtype[np.uint8] | np.dtype[np.uint32]:
    """One byte for a label where that is enough."""
    return np.dtype(np.uint8) if clusters < 256 else np.dtype(np.uint32)
