"""Statistics: the exact integer totals of a query, and the weights with which Alice computes them under encryption.

`exact_total` is what a session must decrypt to, before noise, to the last digit. `measure_weights` is Alice's half of
it: she knows neither the cells nor the residuals, so she gives her integers for every cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.protocols.vertical.clipping import round_to_length
from cloister.protocols.vertical.codebooks import Codebooks
from cloister.protocols.vertical.decision import decide_labels
from cloister.protocols.vertical.layout import Layout, join_cells
from cloister.protocols.vertical.query import HistogramQuery, LloydQuery, Query
from cloister.records import FloatArray, IntArray

_BLOCK_ROWS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class AlignedRecords:
    """The records as the algorithm sees them: Alice's columns, and what the holders encrypt; in one place only here.

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
    """What Alice knows of a block of records in one round.

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
