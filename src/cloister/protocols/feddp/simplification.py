"""SimplifyServerData (Algorithm 4): the server's points are thinned out until each stands for many records.

Where a cluster has very many of the server's points, each of them stands for so few records that noise hides them all.
Round by round, points with a clear weight are frozen and kept; of the others every second one is dropped, and the
records that they stood for go to their neighbours. Noise here is Gaussian with a standard deviation s, so the
threshold, which is 2 log n / epsilon for Laplace noise, is 2 s sqrt(2 ln(T |Q|)): twice what the noise on T |Q|
numbers reaches.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from cloister.crypto.stream import Stream
from cloister.protocols.feddp.options import count_simplify_rounds
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.feddp.weights import ask_weights
from cloister.protocols.guided_sums.query import IDLE, Asking
from cloister.protocols.guided_sums.subspace import Subspace
from cloister.records import FloatArray


def simplify_server(
    settings: FeddpSettings, points: FloatArray, subspace: Subspace, *, l2_squared: int, stream: Stream
) -> Asking[NDArray[np.intp]]:
    """Release weights round by round; return the places of the points that are kept, in order.

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
    # Too few for k clusters: noise hides everything, and there is nothing to go by but the points as they are.
    return kept if len(kept) >= settings.clusters else np.arange(len(points))
