"""Statistics: which cluster each record joins, and the exact integer totals of a query.

The computing party knows its columns of a record but not its cell, so it decides for every cell: the squared distance
to a centre is its part plus the representative's part, a table of k x m numbers. `measure_weights` gives the integers
with which it then computes under encryption; `exact_total` is what a session must decrypt to, before noise, to the last
digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.protocols.vertical.codebook import Codebooks
from cloister.protocols.vertical.layout import Layout, join_cells
from cloister.protocols.vertical.query import HistogramQuery, LloydQuery, Query, round_to_length
from cloister.records import FloatArray, IntArray

_BLOCK = 256  # records whose distances to all centres stay in the nearest caches
_BLOCK_ROWS = 4096


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


@compile_loop
def _measure_block(alice: NDArray[Any], centres: NDArray[Any], distances: NDArray[Any]) -> None:
    """Fill (k, rows): squared distances of a block of her records to her part of the centres."""
    rows, columns = alice.shape
    for i in range(len(centres)):
        for r in range(rows):
            distances[i, r] = 0.0
        for j in range(columns):
            centre = centres[i, j]
            for r in range(rows):
                offset = alice[r, j] - centre
                distances[i, r] += offset * offset


@compile_loop
def _decide(alice: NDArray[Any], centres: NDArray[Any], table: NDArray[Any], labels: NDArray[Any]) -> None:
    n = len(alice)
    m, k = table.shape
    distances = np.empty((k, _BLOCK))
    least = np.empty(_BLOCK)
    best = np.empty(_BLOCK, dtype=np.int64)
    for first in range(0, n, _BLOCK):
        rows = min(_BLOCK, n - first)
        _measure_block(alice[first : first + rows], centres, distances)
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


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedRecords:
    """The records as the algorithm sees them, in one place: Alice's columns, and what the holders encrypt.

    Parameters
    ----------
    alice
        (n, d_A).
    alice_cells
        (n,): her cells, for the joint histogram.
    exact_cells
        (n,): the joint cell of each record's encrypted columns.
    exact_residuals
        (n, d_B), in units.
    """

    alice: FloatArray
    alice_cells: NDArray[np.int32]
    exact_cells: IntArray
    exact_residuals: IntArray


def align_records(table: FloatArray, layout: Layout, codebooks: Codebooks) -> AlignedRecords:
    """Sort a table, in the job's column order, into cells; for rehearsals and tests."""
    alice = layout.alice_part(table)
    parts = [layout.holder_part(table, number) for number in range(len(codebooks.holders))]
    cells = [own.assign(part) for own, part in zip(codebooks.holders, parts, strict=True)]
    residuals = [own.residuals(part, found) for own, part, found in zip(codebooks.holders, parts, cells, strict=True)]
    return AlignedRecords(
        alice=alice,
        alice_cells=codebooks.alice.assign(alice),
        exact_cells=join_cells(cells, [own.cells for own in codebooks.holders]),
        exact_residuals=np.concatenate(residuals, axis=1),
    )


def exact_total(query: Query, records: AlignedRecords, codebooks: Codebooks) -> IntArray:
    """Return the sum over all records of what each adds, ``query.length`` integers.

    Privacy
    -------
    One record adds its own vector, whatever the others are; its norms are at most those of ``query.parts``.
    """
    if isinstance(query, HistogramQuery):
        places = records.alice_cells.astype(np.int64) * query.groups + query.group_of[records.exact_cells]
        return np.bincount(places, minlength=query.length).astype(np.int64)
    k, columns = query.clusters, query.alice_count
    sums = np.zeros((k, query.dimensions), dtype=np.int64)
    counts = np.zeros(k, dtype=np.int64)
    reps = codebooks.reps
    for rows in _iterate_rows(len(records.alice)):
        alice, cells = records.alice[rows], records.exact_cells[rows]
        labels = decide_labels(alice, reps, query.centres)[cells, np.arange(len(cells))]
        offsets = alice * query.units - query.origins[labels, :columns]
        added = np.concatenate(
            [
                round_to_length(offsets, query.radius_alice),
                query.constants[labels, cells] + records.exact_residuals[rows],
            ],
            axis=1,
        )
        for j, column in enumerate(added.T):
            np.add.at(sums[:, j], labels, column)
        counts += np.bincount(labels, minlength=k)
    return np.concatenate([sums.ravel(), counts])


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """What Alice knows about a block of records in one round.

    Parameters
    ----------
    labels
        (m, N): the cluster a record joins if its cell is c.
    offsets
        (k, d_A, N): the integers it then adds to the sums of her columns, for each cluster.
    """

    labels: NDArray[np.int16]
    offsets: NDArray[np.int32]


def measure_weights(query: LloydQuery, alice: FloatArray, reps: FloatArray) -> Weights:
    """Return Alice's weights for a block of records, (N, d_A)."""
    n, columns = alice.shape
    offsets = np.empty((query.clusters, columns, n), dtype=np.int32)
    scaled = alice * query.units
    for i, origin in enumerate(query.origins[:, :columns]):
        offsets[i] = round_to_length(scaled - origin, query.radius_alice).T
    return Weights(labels=decide_labels(alice, reps, query.centres), offsets=offsets)


def _iterate_rows(count: int) -> Iterator[slice]:
    for first in range(0, count, _BLOCK_ROWS):
        yield slice(first, first + _BLOCK_ROWS)
