"""Equal centres: a result has always k different ones."""

from __future__ import annotations

import numpy as np

from cloister.crypto.stream import Stream
from cloister.kmeans.initialisation import random_in_domain
from cloister.records import FloatArray


def part_equal_centres(centres: FloatArray, stream: Stream) -> FloatArray:
    """Replace centres that are equal to an earlier one by random points: there are always k different ones."""
    parted = centres.copy()
    while True:
        _, first = np.unique(parted, axis=0, return_index=True)
        again = np.setdiff1d(np.arange(len(parted)), first)
        if not again.size:
            return parted
        parted[again] = random_in_domain(stream, len(again), parted.shape[1])
