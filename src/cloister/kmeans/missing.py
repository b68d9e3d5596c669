"""Missing cells in a round of Lloyd's algorithm: a record takes the coordinates of its own centre there.

Its own centre is the nearest over the cells that are there, the first of several (k-POD: Chi, Chi and Baraniuk 2016).
So a missing cell adds nothing to a step, and a mean over the cells that are there is not drawn to a guess.
"""

from __future__ import annotations

import numpy as np

from cloister.compiled import compile_loop
from cloister.records import FloatArray


def fill_from_centres(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Return the points with missing cells filled, each row's from its own centre; depends on no other row."""
    gaps = np.isnan(points).any(axis=1)
    if not gaps.any():
        return points
    filled = points.copy()
    some = filled[gaps]
    _fill(some, centres)
    filled[gaps] = some
    return filled


@compile_loop
def _fill(points: FloatArray, centres: FloatArray) -> None:
    for i in range(len(points)):
        best, own = np.inf, 0
        for j in range(len(centres)):
            square = 0.0
            for h in range(points.shape[1]):
                if not np.isnan(points[i, h]):
                    offset = points[i, h] - centres[j, h]
                    square += offset * offset
            if square < best:
                best, own = square, j
        for h in range(points.shape[1]):
            if np.isnan(points[i, h]):
                points[i, h] = centres[own, h]
