"""The smallest cluster that can be seen, by the up-and-down method (Dixon and Mood 1948).

Plant a compact cluster, apart from all others, of some size and run the algorithm. If it gets a centre, make it smaller
the next time; if not, larger. The sizes then wander around the one that is found in half of the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from cloister.crypto import Stream
from cloister.planning.families import Planting
from cloister.planning.trial import Scaling

_COARSE, _FINE = 2.0, 2.0**0.5  # the factor between two sizes, before and after the first turn
_WARM_UP = 4  # trials that do not count
_AT_THE_TOP = 0.8  # of an even share: sizes that wander there show that an even share is hardly seen
_SMALLEST = 2.0


@dataclass(frozen=True, kw_only=True)
class Visibility:
    """What was seen of planted clusters.

    Attributes
    ----------
    size
        The number of tried records that is seen in half of the runs, at most an even share.
    hidden
        Whether even an even share is missed about as often as not.
    """

    size: float
    hidden: bool


def find_smallest_cluster(
    scaling: Scaling, plantings: Sequence[Planting], *, start: float, trials: int, stream: Stream
) -> Visibility:
    """Return the size, in tried records, at which a planted cluster is found in half of the runs.

    Parameters
    ----------
    scaling
        The trial.
    plantings
        Clusters to plant into, taken in turn.
    start
        The first size.
    trials
        How many runs; the first few lead from ``start`` to where sizes matter.
    stream
        Decides the noise.
    """
    most = min(min(len(planting.planted) for planting in plantings), scaling.tried / scaling.settings.clusters)
    size, factor = min(max(start, _SMALLEST), most), _COARSE
    sizes: list[float] = []
    last: bool | None = None
    for trial in range(trials):
        planting = plantings[trial % len(plantings)]
        points = planting.with_size(max(1, round(size)), records=scaling.tried)
        # Whoever splits the records among clients must not give all of the planted ones to the last.
        points = points[stream.child("order", trial).permutation(len(points))]
        found = planting.is_found_by(scaling.run(points, stream.child("run", trial)).finding.centres)
        sizes.append(size)
        if last is not None and found != last:
            factor = _FINE
        last = found
        size = min(max(size / factor if found else size * factor, _SMALLEST), most)
    counted = sizes[min(_WARM_UP, trials // 2) :]
    middle = exp(sum(map(log, counted)) / len(counted))
    return Visibility(size=middle, hidden=middle >= _AT_THE_TOP * most)
