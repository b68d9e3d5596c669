"""Labels on their way: the coordinator tells a client what changed since the labels that it is known to hold."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from cloister.errors import RemoteProtocolError
from cloister.protocols.secfc.messages import LabelNews
from cloister.records import IntArray
from cloister.wire import Array

Labels = NDArray[np.int32]

NO_CLUSTER = -1
_NOTHING = Array.of(np.empty(0, dtype=np.uint32))


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
    """A client's copy of the labels: the newest version that it was told."""

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


def count_labels(labels: Labels, clusters: int) -> IntArray:
    """Return how many records each cluster has."""
    return np.bincount(labels + 1, minlength=clusters + 1)[1:].astype(np.int64)


def _code_type(clusters: int) -> np.dtype[np.uint8] | np.dtype[np.uint32]:
    """One byte for a label where that is enough."""
    return np.dtype(np.uint8) if clusters < 256 else np.dtype(np.uint32)
