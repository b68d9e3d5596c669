"""Reducing the diameter (Lemma 16): groups of records that are far apart are brought nearer, without mixing.

One histogram tells how many records are near each of the server's points. Points without records around them are
dropped; those that are left fall into groups, linked where two are closer than D = 4 log(n) sqrt(d) sigma_max. A record
moves with the group of its nearest point: the i-th group's first point goes to (100 D' i, 0, ..., 0), where D' is the
widest group's diameter. If that makes the whole no smaller, nothing is moved. Results are moved back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from cloister.kmeans.kernel import nearest
from cloister.protocols.feddp.options import Separation
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.feddp.weights import ask_weights
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.records import FloatArray, Records

NEAR = "records near each of the server's points"
_GAP = 100.0  # times the widest group's diameter between two groups (proof of Lemma 16)


@dataclass(frozen=True, kw_only=True, eq=False)
class Relocation:
    """Where every record goes: by the nearest of the server's points that are left, then all closer to the origin."""

    points: FloatArray
    """Of the server, before; those that are left."""
    shifts: FloatArray
    """What is added to the records that are nearest to each of them."""
    scale: float
    """What sums are then multiplied by, so that all of them lie in [-1, 1]^d again."""

    @property
    def moved_points(self) -> FloatArray:
        """Where the server's points are afterwards."""
        return (self.points + self.shifts) * self.scale

    def move(self, points: FloatArray) -> FloatArray:
        """Return where points go; where one goes depends on no other."""
        moved = (points + self.shifts[nearest(points, self.points).labels]) * self.scale
        return np.clip(moved, -1.0, 1.0)

    def move_back(self, centres: FloatArray) -> FloatArray:
        """Return where centres came from."""
        back = centres / self.scale - self.shifts[nearest(centres, self.moved_points).labels]
        return np.clip(back, -1.0, 1.0)

    def apply(self, query: Query) -> Query:
        """Ask the same of moved records."""
        if query.length == 0:
            return query
        state = query.state + self.points.tobytes() + self.shifts.tobytes()
        return replace(query, measure=lambda records: query.measure(MovedRecords(records, self)), state=state)


class MovedRecords:
    """A party's records, each moved with its group."""

    def __init__(self, records: Records, relocation: Relocation) -> None:
        self._records, self._relocation = records, relocation

    @property
    def dimensions(self) -> int:
        """The number of columns d."""
        return self._records.dimensions

    def batches(self) -> Iterator[FloatArray]:
        """Yield moved batches."""
        for batch in self._records.batches():
            yield self._relocation.move(batch)


def find_relocation(
    settings: FeddpSettings, points: FloatArray, separation: Separation, *, l2_squared: int, records: float
) -> Asking[Relocation]:
    """Release how many records are nearest to each of the server's points, and plan the moves."""
    noisy = yield from ask_weights(NEAR, points, None, l2_squared=l2_squared)
    clusters_least = records * separation.weight_min
    return plan_relocation(
        points,
        noisy,
        reach=4 * log(max(records, 3.0)) * sqrt(settings.dimensions) * separation.sigma_max,
        least_records=clusters_least / 3,
        least_points=settings.signal(l2_squared) * clusters_least / (200 * log(max(len(points), 3))),
    )


def plan_relocation(
    points: FloatArray, weights: FloatArray, *, reach: float, least_records: float, least_points: float
) -> Relocation:
    """Drop lonely points, group the others, and say where each group goes.

    Parameters
    ----------
    points, weights
        The server's, and how many records each stands for.
    reach
        D: points closer than this are in one group.
    least_records
        Fewer records than this within D of a point: it is dropped, unless it is frozen.
    least_points
        So many of the server's points within D of one freeze it: noise on so many weights would hide the records.
    """
    near = cdist(points, points) <= reach
    keep = (near.sum(axis=1) >= least_points) | (near @ weights >= least_records)
    if not keep.any():
        keep[:] = True
    left = np.ascontiguousarray(points[keep])
    groups, labels = connected_components(near[np.ix_(keep, keep)], directed=False)
    # A group of one point has records around it all the same, up to D away.
    widest = max(reach, *(_measure_diameter(left[labels == group]) for group in range(groups)))
    targets = np.zeros((groups, points.shape[1]))
    targets[:, 0] = _GAP * widest * np.arange(groups)
    first = [int(np.flatnonzero(labels == group)[0]) for group in range(groups)]
    shifts = (targets - left[first])[labels]
    if groups == 1 or _measure_diameter(left + shifts) >= _measure_diameter(left):
        return Relocation(points=left, shifts=np.zeros_like(left), scale=1.0)
    shifts = shifts - (left + shifts).mean(axis=0)
    # Room for records that are further out than the points of their group.
    outermost = float(np.abs(left + shifts).max()) + widest
    return Relocation(points=left, shifts=shifts, scale=min(1.0, 1.0 / outermost))


def _measure_diameter(points: FloatArray) -> float:
    return float(cdist(points, points).max()) if len(points) > 1 else 0.0
