"""The one pass over the data that every protocol makes: nearest centre, sums, counts and loss, fused.

No n x k matrix is ever made; beside the records, memory is a few blocks and one row of sums per chunk of
records (at most 1/64 of the data). Threads are ours: numba's are not safe to enter from several threads, and
a runtime calls this from one thread per party.

Results do not depend on the number of threads, bit for bit: chunks have a fixed size, each has its own sums,
and these are added in order. A record's label does not depend on how records are split into batches. For
records on the grid 2^-16 Z in [-1, 1] nor do the sums: they are integers over 2^16, exact in float64 up to
2^37 records. The loss is rounded, so its last bits depend on the split into batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError
from cloister.kmeans.blocks import BLOCK, CENTRE_TILE, FEATURE_PAD, reduce_chunks
from cloister.kmeans.pool import available_cores, run_in_threads
from cloister.kmeans.values import check_at_least, check_centres, check_finite_loss, check_points
from cloister.records import FloatArray, IntArray, Records

_CHUNK_ROWS = 4096
# What a pass takes, roughly, on one core of 2023. A second thread costs 50 to 100 microseconds to wake and to join.
_NANOSECONDS_PER_RECORD = 6.0
_NANOSECONDS_PER_PRODUCT = 0.09
_NANOSECONDS_PER_THREAD = 180_000


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterSums:
    """What one Lloyd step needs of some records; adds up over batches and over parties.

    Attributes
    ----------
    sums
        (k, d): the sum of each cluster's records.
    counts
        (k,): the number of each cluster's records.
    loss
        The sum of squared distances of the counted records to their centres.
    excluded
        The number of records that count nowhere.
    """

    sums: FloatArray
    counts: IntArray
    loss: float
    excluded: int

    def __add__(self, other: ClusterSums) -> ClusterSums:
        if self.sums.shape != other.sums.shape:
            raise ConfigError(
                f"cluster sums must have the same shape to be added; got {self.sums.shape} and "
                f"{other.sums.shape}. Use the same centres for both."
            )
        return ClusterSums(
            sums=self.sums + other.sums,
            counts=self.counts + other.counts,
            loss=self.loss + other.loss,
            excluded=self.excluded + other.excluded,
        )

    @classmethod
    def zero(cls, k: int, d: int) -> ClusterSums:
        """Return the sums of no records."""
        return cls(sums=np.zeros((k, d)), counts=np.zeros(k, dtype=np.int64), loss=0.0, excluded=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """Each record's nearest centre (lowest index on ties) and its squared distance."""

    labels: NDArray[np.int32]
    squared_distances: FloatArray


def cluster_sums(
    records: Records | FloatArray | NDArray[np.float32],
    centres: FloatArray,
    *,
    radius: float | FloatArray | None = None,
    threads: int | None = None,
) -> ClusterSums:
    """Assign each record to its nearest centre and sum up each cluster, in one pass.

    Parameters
    ----------
    records
        Records, or an (n, d) array of float64 or float32. With float32, distances are compared in float32;
        sums and loss are float64. An array that is not C-contiguous is copied.
    centres
        (k, d), finite.
    radius
        One number, or one per centre: a record further than this from its nearest centre counts nowhere.
    threads
        At most this many, and never more than the work pays for; by default the machine's cores. The result is the
        same for any number.

    Returns
    -------
    ClusterSums

    Raises
    ------
    ConfigError
        If shapes, types or values of the arguments do not fit.
    DataError
        If a record holds a number that is not finite. With a radius, such a record is as far out as can be: excluded.
    """
    target = _Target(centres)
    squared_radii = _check_radius(radius, target.k)
    if isinstance(records, np.ndarray):
        return target.reduce(records, squared_radii, threads, _NO_LABELS, _NO_DISTANCES)
    total: ClusterSums | None = None
    for batch in records.batches():
        part = target.reduce(batch, squared_radii, threads, _NO_LABELS, _NO_DISTANCES)
        total = part if total is None else total + part
    return ClusterSums.zero(target.k, target.d) if total is None else total


def nearest(points: FloatArray | NDArray[np.float32], centres: FloatArray, *, threads: int | None = None) -> Nearest:
    """Find each record's nearest centre; the same labels that :func:`cluster_sums` counts by."""
    target = _Target(centres)
    labels = np.empty(len(points), dtype=np.int32)
    squared_distances = np.empty(len(points))
    target.reduce(points, _check_radius(None, target.k), threads, labels, squared_distances)
    return Nearest(labels=labels, squared_distances=squared_distances)


_NO_LABELS = np.empty(0, dtype=np.int32)
_NO_DISTANCES = np.empty(0)


class _Target:
    """Validated centres, in the padded form that the compiled code reads."""

    __slots__ = ("_padded", "centres", "d", "k")

    def __init__(self, centres: FloatArray) -> None:
        self.centres = check_centres(centres)
        self.k, self.d = self.centres.shape
        self._padded: dict[np.dtype[Any], NDArray[Any]] = {}

    def pad(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the centres in this type, with centres at infinity and zero features for the rest of the tiles."""
        if dtype not in self._padded:
            rows = -(-self.k // CENTRE_TILE) * CENTRE_TILE
            padded = np.zeros((rows, -(-self.d // FEATURE_PAD) * FEATURE_PAD), dtype=dtype)
            padded[: self.k, : self.d] = self.centres
            padded[self.k :] = np.inf
            self._padded[dtype] = padded
        return self._padded[dtype]

    def reduce(
        self,
        points: NDArray[Any],
        squared_radii: FloatArray,
        threads: int | None,
        labels: NDArray[np.int32],
        squared_distances: FloatArray,
    ) -> ClusterSums:
        """Run the compiled pass over one array, in chunks and on as many threads as pay."""
        points = check_points(points, self.d).view()
        points.flags.writeable = False  # so that one compiled version serves writeable and other arrays
        rows = points.shape[0]
        if rows == 0:
            return ClusterSums.zero(self.k, self.d)
        padded = self.pad(points.dtype)
        integer = np.int64 if points.dtype == np.float64 else np.int32
        # At least 64 records for each centre, so that the sums of all chunks take at most 1/64 of the data.
        chunk_rows = max(_CHUNK_ROWS, 64 * self.k)
        chunks = -(-rows // chunk_rows)
        sums = np.zeros((chunks, self.k, self.d))
        counts = np.zeros((chunks, self.k), dtype=np.int64)
        losses = np.zeros(chunks)
        excluded = np.zeros(chunks, dtype=np.int64)

        def work(first: int, last: int) -> None:
            reduce_chunks(
                points,
                first,
                last,
                chunk_rows,
                padded,
                squared_radii,
                np.empty(BLOCK, dtype=integer),
                sums,
                counts,
                losses,
                excluded,
                labels,
                squared_distances,
            )

        run_in_threads(work, chunks, _choose_threads(threads, rows, self.k * self.d))
        loss = float(losses[0]) if chunks == 1 else math.fsum(losses)
        check_finite_loss(loss)
        if chunks == 1:
            return ClusterSums(sums=sums[0], counts=counts[0], loss=loss, excluded=int(excluded[0]))
        return ClusterSums(sums=sums.sum(axis=0), counts=counts.sum(axis=0), loss=loss, excluded=int(excluded.sum()))


def _check_radius(radius: float | FloatArray | None, k: int) -> FloatArray:
    """Return one squared radius per centre; infinite for no radius."""
    if radius is None:
        return np.full(k, np.inf)
    radii = np.asarray(radius, dtype=np.float64)
    if radii.shape not in ((), (k,)) or not (radii >= 0).all():
        raise ConfigError(
            f"radius must be one number >= 0, or {k} of them, one per centre; got shape {radii.shape}"
            f"{'' if (radii >= 0).all() else ' with a negative or undefined value'}. Correct the radius."
        )
    return np.full(k, radii * radii)


def _choose_threads(threads: int | None, rows: int, products: int) -> int:
    """Return as many threads as have enough to do, at most the number asked for."""
    if threads is not None:
        check_at_least("threads", threads, 1)
    nanoseconds = rows * (_NANOSECONDS_PER_RECORD + _NANOSECONDS_PER_PRODUCT * products)
    return max(1, min(threads or available_cores(), int(nanoseconds / _NANOSECONDS_PER_THREAD)))
