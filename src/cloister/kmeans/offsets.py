"""Clipped offsets: for each cluster, its records' offsets from the centre, each of bounded length, summed up.

Their squared lengths are summed too, and tell how wide the cluster is; so is their number. All in integers: a record's
offset is an integer vector whose length is at most ``scale``, exactly, and its square an integer of at most ``weight``,
so that one record's influence on the sums is known to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.errors import ConfigError
from cloister.kmeans.kernel import nearest
from cloister.kmeans.missing import fill_from_centres
from cloister.numeric import find_reach
from cloister.records import FloatArray, IntArray, Records, iterate_chunks


@dataclass(frozen=True, kw_only=True, eq=False)
class Joined:
    """Which cluster each point joins, and how wide it makes it."""

    labels: NDArray[np.int32]
    """-1 for a point that joins none."""
    squares: FloatArray
    """Squared lengths, clipped to 1, in place of the offsets' own."""


Join = Callable[[FloatArray], Joined]
"""What a point joins must depend on no other point."""
_CHUNK_ROWS = 65536
_NO_SQUARES: FloatArray = np.zeros(0)
_RADIUS_LEAST = 1e-100  # squares of shorter offsets are lost; they count as zero


def sum_offsets(
    records: Records,
    centres: FloatArray,
    radii: FloatArray,
    *,
    scale: int,
    weight: int,
    join: Join | None = None,
) -> IntArray:
    """Return (k, d + 2): sums of clipped offsets, of weight times their squared lengths, and weight times the counts.

    Offsets are in units of radius / scale, their squared lengths relative to the radius: from 0 to 1.

    A record x of centre c and radius r adds z = round(y), y = (x - c) / r scaled so that a length of 1 or more
    becomes `find_reach`'s, so |z| <= scale. Its squared length adds an integer from 0 to weight, and so does its count.
    The centre is the nearest and the squared length the offset's, unless ``join`` says otherwise. A missing cell has
    the coordinate of the record's own centre, so its offset is 0.
    """
    k, d = centres.shape
    reach = find_reach(scale, d)
    if not (radii >= _RADIUS_LEAST).all() or np.isinf(radii).any():
        raise ConfigError(f"radii must be finite and at least {_RADIUS_LEAST:g}; got others.")
    out = np.zeros((k, d + 2), dtype=np.int64)
    for chunk in iterate_chunks(records, _CHUNK_ROWS, fill=None):
        points = fill_from_centres(chunk, centres)
        if join is None:
            _add_offsets(points, nearest(points, centres).labels, _NO_SQUARES, centres, radii, reach, weight, out)
        else:
            joined = join(points)
            _add_offsets(points, joined.labels, joined.squares, centres, radii, reach, weight, out)
    return out


@compile_loop
def _add_offsets(
    points: FloatArray,
    labels: NDArray[np.int32],
    squares: FloatArray,
    centres: FloatArray,
    radii: FloatArray,
    reach: float,
    weight: int,
    out: IntArray,
) -> None:
    n, d = points.shape
    for i in range(n):
        j = labels[i]
        if j < 0:
            continue
        square = 0.0
        for h in range(d):
            offset = points[i, h] - centres[j, h]
            square += offset * offset
        length = np.sqrt(square)
        factor = reach / max(radii[j], length)
        for h in range(d):
            out[j, h] += np.int64(np.rint((points[i, h] - centres[j, h]) * factor))
        relative = min(length / radii[j], 1.0)
        part = squares[i] if squares.size else relative * relative
        out[j, d] += np.int64(min(part, 1.0) * weight)
        out[j, d + 1] += weight
