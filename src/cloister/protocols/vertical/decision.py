"""The decision: which cluster a record joins if its encrypted columns are in a given cell, for every cell at once.

Alice knows her columns of a record and not its cell, so she decides for all of them. The squared distance to a centre
is her part plus the representative's part, a table of k x m numbers.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from cloister.records import FloatArray

_BLOCK = 256  # records whose distances to all centres stay in the nearest caches


def decide_labels(alice: FloatArray, reps: FloatArray, centres: FloatArray) -> NDArray[np.int16]:
    """Return (m, n): the cluster that each record joins if its cell is c; of equally near centres the first.

    A label depends on its own record, on the representatives and on the centres only: sums are in the order of the
    columns, in doubles, whatever the other records are.

    Parameters
    ----------
    alice
        (n, d_A), Alice's columns; d_A may be 0.
    reps
        (m, d_B), of the joint cells.
    centres
        (k, d_A + d_B), in session order.
    """
    columns = alice.shape[1]
    labels = np.empty((len(reps), len(alice)), dtype=np.int16)
    table = measure_reps(reps, centres[:, columns:])
    _decide(np.ascontiguousarray(alice), np.ascontiguousarray(centres[:, :columns]), table, labels)
    return labels


def measure_reps(reps: FloatArray, centres: FloatArray) -> FloatArray:
    """Return (m, k): squared distances, added up column by column."""
    table = np.zeros((len(reps), len(centres)))
    for own, other in zip(reps.T, centres.T, strict=True):
        table += (own[:, None] - other) ** 2
    return table


@numba.njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[misc, untyped-decorator, unused-ignore]
def _decide(alice: NDArray[Any], centres: NDArray[Any], table: NDArray[Any], labels: NDArray[Any]) -> None:
    n, columns = alice.shape
    m, k = table.shape
    distances = np.empty((k, _BLOCK))
    least = np.empty(_BLOCK)
    best = np.empty(_BLOCK, dtype=np.int64)
    for first in range(0, n, _BLOCK):
        rows = min(_BLOCK, n - first)
        for i in range(k):
            for r in range(rows):
                distances[i, r] = 0.0
            for j in range(columns):
                centre = centres[i, j]
                for r in range(rows):
                    offset = alice[first + r, j] - centre
                    distances[i, r] += offset * offset
        for c in range(m):
            part = table[c, 0]
            for r in range(rows):
                least[r] = distances[0, r] + part
                best[r] = 0
            for i in range(1, k):
                part = table[c, i]
                for r in range(rows):
                    distance = distances[i, r] + part
                    nearer = distance < least[r]
                    least[r] = distance if nearer else least[r]
                    best[r] = i if nearer else best[r]
            for r in range(rows):
                labels[c, first + r] = best[r]
