"""A guide: a subspace that is known to hold most of what tells clusters apart, and leads steps of Lloyd's algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from cloister.kmeans.kernel import nearest
from cloister.kmeans.offsets import Join, Joined
from cloister.protocols.guided_sums.subspace import Subspace
from cloister.protocols.guided_sums.swaps import SwapRule
from cloister.records import FloatArray

IN_SUBSPACE = SwapRule(clear=3.0, worth=2.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Guide:
    """Where to look.

    In the first round a record joins the centre that is nearest in the subspace: in the other directions all centres
    start at the mean. How wide a cluster is, is measured in the subspace in every round: a cluster that is really two
    stands out there, where the variance within clusters is that of a few directions only. What a step moves within the
    subspace and across it is shrunk separately (:mod:`.refinement`).

    Parameters
    ----------
    subspace
        Its axes.
    places
        The first centres' coordinates in it, (k, m).
    radius
        The length in it that counts as 1 in a cluster's width.
    clear
        Let only those records into the first round that are this many times nearer to their centre than to any other:
        3 in Part 2 of Algorithm 5 (FedDP-KMeans, appendix F); 1 for all.
    swaps
        Widths in the subspace are clipped, so that what a split gains is more than they tell: it is rated higher, and
        asked to be clearer.
    """

    subspace: Subspace
    places: FloatArray
    radius: float
    clear: float = 1.0
    swaps: SwapRule = IN_SUBSPACE

    def make_join(self, centres: FloatArray, *, first: bool) -> Join:
        """Return which centre a record joins, from these centres on; each record's depends on no other."""
        places = self.places if first else self.subspace.project(centres)
        clear = self.clear if first else 1.0

        def join(points: FloatArray) -> Joined:
            coordinates = self.subspace.project(points)
            labels = nearest(coordinates, places).labels if first else nearest(points, centres).labels
            squares = _measure_squares(coordinates, places, labels, clear) / self.radius**2
            return Joined(labels=labels, squares=squares)

        return join

    def to_bytes(self) -> bytes:
        """Everything that decides which centre a record joins."""
        numbers = (self.subspace.origin, self.subspace.axes, self.places, np.array([self.radius, self.clear]))
        return b"".join(part.tobytes() for part in numbers)


@numba.njit(cache=True, nogil=True)  # type: ignore[misc, unused-ignore]
def _square(coordinates, places, i, j):  # type: ignore[no-untyped-def]
    total = 0.0
    for h in range(places.shape[1]):
        difference = coordinates[i, h] - places[j, h]
        total += difference * difference
    return total


@numba.njit(cache=True, nogil=True)  # type: ignore[misc, unused-ignore]
def _fill_squares(coordinates, places, labels, clear, squares):  # type: ignore[no-untyped-def]
    for i in range(len(labels)):
        squares[i] = _square(coordinates, places, i, labels[i])
        if clear > 1.0:
            own = labels[i]
            for j in range(len(places)):
                if j != own and clear * clear * squares[i] > _square(coordinates, places, i, j):
                    labels[i] = -1
                    break


def _measure_squares(
    coordinates: FloatArray, places: FloatArray, labels: NDArray[np.int32], clear: float
) -> FloatArray:
    """Return squared distances from the places that the labels name; labels that are not clear become -1."""
    squares = np.empty(len(labels))
    _fill_squares(coordinates, places, labels, clear, squares)
    return squares
