"""The smallest cluster that can be seen, by the up-and-down method (Dixon and Mood 1948).

Plant a compact, separate cluster of some size and run the algorithm. If the cluster gets a centre, make it smaller
the next time; if not, larger. The sizes then vary around the one that is found in half of the runs. A centre that is
there even without the cluster is luck and does not count: if there is nothing but noise, centres are anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

from cloister.crypto import Stream
from cloister.forecast.families import Planting
from cloister.records import FloatArray

_COARSE, _FINE = 2.0, 2.0**0.5  # the factor between two sizes, before and after the first turn
_WARM_UP = 4  # trials that do not count
_AT_THE_TOP = 0.8  # of an even share: sizes above this show that an even share is hardly seen
_SMALLEST = 2.0


@dataclass(frozen=True, kw_only=True)
class Visibility:
    """What was seen of planted clusters.

    Attributes
    ----------
    size
        The number of records at which a cluster is seen in half of the runs; at most an even share.
    hidden
        Whether a cluster with an even share is also missed about as often as not.
    """

    size: float
    hidden: bool


Finder = Callable[[FloatArray, Stream], FloatArray]
"""From records to centres."""
Planter = Callable[[Stream], Planting]
"""Draws clusters to plant into, different ones in every trial."""


def find_smallest_cluster(
    find_centres: Finder, plant: Planter, *, most: float, start: float, trials: int, stream: Stream
) -> Visibility:
    """Return the size at which a planted cluster is found in half of the runs.

    Parameters
    ----------
    find_centres
        The algorithm.
    plant
        Draws the clusters.
    most, start
        An even share of the records, and the first size.
    trials
        How many runs; the first few lead from ``start`` to the relevant sizes.
    stream
        Determines the records, their order and the noise.
    """
    size, factor = min(max(start, _SMALLEST), most), _COARSE
    sizes: list[float] = []
    last: bool | None = None
    for trial in range(trials):
        found = is_seen(find_centres, plant(stream.child("plant", trial)), round(size), stream.child(trial))
        sizes.append(size)
        if last is not None and found != last:
            factor = _FINE
        last = found
        size = min(max(size / factor if found else size * factor, _SMALLEST), most)
    counted = sizes[min(_WARM_UP, trials // 2) :]
    middle = exp(sum(map(log, counted)) / len(counted))
    return Visibility(size=middle, hidden=middle >= _AT_THE_TOP * most)


def is_seen(find_centres: Finder, planting: Planting, size: int, stream: Stream) -> bool:
    """Whether a planted cluster gets a centre that is not there without it, under the same noise."""

    def is_found(size: int) -> bool:
        points = planting.with_size(size)
        # Shuffled, so that a split among clients does not give all planted records to the last one.
        points = points[stream.child("order").permutation(len(points))]
        return planting.is_found_by(find_centres(points, stream.child("run")))

    return is_found(size) and not is_found(0)
