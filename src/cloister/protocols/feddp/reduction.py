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

from math import log, sqrt

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from cloister.crypto.stream import Stream
from cloister.late import load_late
from cloister.protocols.feddp.initialisation import ask_weights
from cloister.protocols.feddp.options import Separation
from cloister.protocols.feddp.questions import MOVED, Relocation, Weights, pack_places
from cloister.protocols.feddp.settings import GAP, NEAR, FeddpSettings, count_simplify_rounds
from cloister.protocols.guided_sums.query import IDLE, Asking, Ground, Idle, Query, pose
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.records import FloatArray

graphs = load_late("scipy.sparse.csgraph")
distance = load_late("scipy.spatial.distance")


def ask_moved(settings: FeddpSettings, relocation: Relocation, query: Query) -> Query:
    """Ask the same of moved records."""
    question = query.question
    if isinstance(question, Idle):
        return query
    if isinstance(question, Weights):  # its places are among the points that are left
        kept = relocation.left
        if question.kept is not None:
            bits = np.unpackbits(np.frombuffer(question.kept, np.uint8), bitorder="little")
            kept = kept[np.flatnonzero(bits)]
        question = structs.replace(question, kept=pack_places(kept, len(relocation.server)))
    moved = MOVED[type(question)](move=relocation.pack(), question=question)  # type: ignore[call-arg]
    return pose(Ground(settings=settings, points=relocation.server), query.name, moved)


def find_relocation(
    settings: FeddpSettings, points: FloatArray, separation: Separation, *, l2_squared: int, records: float
) -> Asking[Relocation]:
    """Release how many records are nearest to each of the server's points, and plan the moves."""
    noisy = yield from ask_weights(settings, NEAR, points, None, None, l2_squared=l2_squared)
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
    near = distance.cdist(points, points) <= reach
    keep = (near.sum(axis=1) >= least_points) | (near @ weights >= least_records)
    if not keep.any():
        keep[:] = True
    left = np.ascontiguousarray(points[keep])
    number, labels = graphs.connected_components(near[np.ix_(keep, keep)], directed=False)
    # A group of one point has records around it all the same, up to D away.
    widest = max(reach, *(_measure_diameter(left[labels == group]) for group in range(number)))
    targets = np.zeros((number, points.shape[1]))
    targets[:, 0] = GAP * widest * np.arange(number)
    first = [int(np.flatnonzero(labels == group)[0]) for group in range(number)]
    shifts = targets - left[first]
    groups = np.full(len(points), -1, dtype=np.int32)
    if number == 1 or _measure_diameter(left + shifts[labels]) >= _measure_diameter(left):
        groups[keep] = 0
        return Relocation(server=points, groups=groups, group_shifts=np.zeros_like(shifts[:1]), scale=1.0)
    groups[keep] = labels
    shifts = shifts - (left + shifts[labels]).mean(axis=0)
    # Room for records that are further out than the points of their group.
    outermost = float(np.abs(left + shifts[labels]).max()) + widest
    return Relocation(server=points, groups=groups, group_shifts=shifts, scale=min(1.0, 1.0 / outermost))


def _measure_diameter(points: FloatArray) -> float:
    return float(distance.cdist(points, points).max()) if len(points) > 1 else 0.0


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
        name = f"weights while simplifying, {t}"
        noisy = yield from ask_weights(settings, name, points, present, subspace, l2_squared=share)
        heavy = np.zeros(len(points), dtype=bool)
        heavy[present] = noisy > threshold
        frozen |= waiting & heavy
        waiting &= ~heavy & (stream.child(t).uniform(len(points)) < 0.5)
    kept = np.flatnonzero(frozen)
    # Too few for k clusters: noise hides everything, so all points are kept.
    return kept if len(kept) >= settings.clusters else np.arange(len(points))
