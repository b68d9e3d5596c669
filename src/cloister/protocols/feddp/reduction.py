"""The reductions of appendix E: of the diameter (Lemma 16), and of the server's points (Algorithm 4).

**Diameter.** Groups of records that are far apart are moved closer, without mixing. One histogram counts the records
near each of the server's points. Points without records around them are dropped; the rest form groups, in which two
points are linked if they are closer than D = 4 log(n) sqrt(d) sigma_max. A record moves with the group of its nearest
point: the i-th group's first point goes to (100 D' i, 0, ..., 0), where D' is the widest group's diameter. If that does
not make the whole smaller, nothing is moved. Results are moved back.

**SimplifyServerData.** If a cluster has very many of the server's points, each represents so few records that noise
hides them all. Round by round, points with a clear weight are frozen and kept; every second one of the others is
dropped, and the records that it represented go to its neighbours. Noise here is Gaussian with a standard
deviation s, so the threshold, which is 2 log n / epsilon for Laplace noise, is 2 s sqrt(2 ln(T |Q|)): twice what the
noise on T |Q| numbers reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from cloister.crypto import Stream
from cloister.kmeans import nearest
from cloister.protocols.feddp.initialisation import ask_weights
from cloister.protocols.feddp.options import Separation
from cloister.protocols.feddp.settings import FeddpSettings, count_simplify_rounds
from cloister.protocols.guided_sums.query import IDLE, Asking, Query
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.records import FloatArray, Records

NEAR = "records near each of the server's points"
_GAP = 100.0  # times the widest group's diameter between two groups (proof of Lemma 16)


@dataclass(frozen=True, kw_only=True, eq=False)
class Relocation:
    """Where every record goes: by its nearest remaining server point, and then all closer to the origin."""

    points: FloatArray
    """The server's remaining points, before the move."""
    shifts: FloatArray
    """The shift of the records that are nearest to each of them."""
    scale: float
    """The factor by which all are then scaled, so that they are in [-1, 1]^d again."""

    @property
    def moved_points(self) -> FloatArray:
        """The server's remaining points, after the move."""
        return (self.points + self.shifts) * self.scale

    def move(self, points: FloatArray) -> FloatArray:
        """Return where points go; each moves independently of all others."""
        moved = (points + self.shifts[nearest(points, self.points).labels]) * self.scale
        return np.clip(moved, -1.0, 1.0)

    def move_back(self, centres: FloatArray) -> FloatArray:
        """Return where centres came from."""
        back = centres / self.scale - self.shifts[nearest(centres, self.moved_points).labels]
        return np.clip(back, -1.0, 1.0)

    def apply(self, query: Query) -> Query:
        """Return the same query about moved records."""
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
    """Drop isolated points, group the others, and say where each group goes.

    Parameters
    ----------
    points, weights
        The server's points, and how many records each represents.
    reach
        D: points closer than this are in one group.
    least_records
        A point with fewer records than this within D is dropped, unless it is frozen.
    least_points
        A point with this many server points within D is frozen: the noise on that many weights would hide the records.
    """
    near = cdist(points, points) <= reach
    keep = (near.sum(axis=1) >= least_points) | (near @ weights >= least_records)
    if not keep.any():
        keep[:] = True
    left = np.ascontiguousarray(points[keep])
    groups, labels = connected_components(near[np.ix_(keep, keep)], directed=False)
    # Even a group of one point has records around it, up to D away.
    widest = max(reach, *(_measure_diameter(left[labels == group]) for group in range(groups)))
    targets = np.zeros((groups, points.shape[1]))
    targets[:, 0] = _GAP * widest * np.arange(groups)
    first = [int(np.flatnonzero(labels == group)[0]) for group in range(groups)]
    shifts = (targets - left[first])[labels]
    if groups == 1 or _measure_diameter(left + shifts) >= _measure_diameter(left):
        return Relocation(points=left, shifts=np.zeros_like(left), scale=1.0)
    shifts = shifts - (left + shifts).mean(axis=0)
    # Leave room for records that are further out than the points of their group.
    outermost = float(np.abs(left + shifts).max()) + widest
    return Relocation(points=left, shifts=shifts, scale=min(1.0, 1.0 / outermost))


def _measure_diameter(points: FloatArray) -> float:
    return float(cdist(points, points).max()) if len(points) > 1 else 0.0


def simplify_server(
    settings: FeddpSettings, points: FloatArray, subspace: Subspace, *, l2_squared: int, stream: Stream
) -> Asking[NDArray[np.intp]]:
    """Release weights round by round; return the indices of the points that are kept, in order.

    Privacy
    -------
    T rounds, each a histogram in which a record adds a to one entry: T a^2 <= ``l2_squared``. Which points are in a
    round follows from earlier totals and the common stream.
    """
    rounds = count_simplify_rounds(settings.stamp.points)
    share = l2_squared // rounds
    threshold = 2 * sqrt(2 * log(max(rounds * len(points), 2))) / settings.signal(share)
    frozen = np.zeros(len(points), dtype=bool)
    waiting = np.ones(len(points), dtype=bool)
    for t in range(rounds):
        present = np.flatnonzero(frozen | waiting)
        if not waiting.any():
            yield IDLE
            continue
        noisy = yield from ask_weights(f"weights while simplifying, {t}", points[present], subspace, l2_squared=share)
        heavy = np.zeros(len(points), dtype=bool)
        heavy[present] = noisy > threshold
        frozen |= waiting & heavy
        waiting &= ~heavy & (stream.child(t).uniform(len(points)) < 0.5)
    kept = np.flatnonzero(frozen)
    # Too few for k clusters: noise hides everything, so all points are kept.
    return kept if len(kept) >= settings.clusters else np.arange(len(points))
