"""One party's part of the aligned records: its own columns, in the order that all parties share.

Where columns are split, row p is the same record at every party. A party therefore does not read its whole table, only
the rows that have a place in the common order, in that order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cloister.columns import Column
from cloister.data.table import Table
from cloister.errors import DataError
from cloister.records import FloatArray, IntArray

_BATCH_ROWS = 1 << 16


class AlignedTable:
    """The aligned records of one party, in [-1, 1] on the fixed-point grid.

    Implements :class:`cloister.records.Records`. The values are kept in memory, 8 bytes each: the common order is not
    that of the file, so they cannot be streamed.

    Parameters
    ----------
    table
        The party's whole table; None for a party that holds no columns.
    rows
        The table's row at each place of the common order.

    Raises
    ------
    DataError
        If the table does not have these rows, or has changed since it was checked.
    """

    def __init__(self, table: Table | None, rows: IntArray) -> None:
        self._table = table
        self._points = np.empty((len(rows), 0)) if table is None else _gather(table, rows)
        self._points.flags.writeable = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The party's columns, in its own order."""
        return () if self._table is None else self._table.columns

    @property
    def dimensions(self) -> int:
        """The number of its columns; zero for a party that only computes."""
        return len(self.columns)

    @property
    def records(self) -> int:
        """The number of aligned records n: public, and the same at all parties."""
        return len(self._points)

    @property
    def points(self) -> FloatArray:
        """All aligned records, (n, d), read-only."""
        return self._points

    def batches(self) -> Iterator[FloatArray]:
        """Yield C-contiguous (n_b, d) arrays in the common order; each call starts again."""
        for first in range(0, self.records, _BATCH_ROWS):
            yield self._points[first : first + _BATCH_ROWS]

    def raw_batches(self) -> Iterator[FloatArray]:
        """Yield the party's *whole* table in original units, by which its ledger recognises its records.

        The aligned records alone would not do: the same people, aligned with another partner, would look like other
        records, and could spend the cap again.
        """
        if self._table is not None:
            yield from self._table.raw_batches()


def _gather(table: Table, rows: IntArray) -> FloatArray:
    """Return the rows in the order given, from one pass over the table."""
    records = table.check().records
    if rows.size and not (rows.min() >= 0 and rows.max() < records):
        raise DataError(
            f"{table.label}: an alignment must name rows of the table, which has {records}; this one names others. "
            "Use the table that was aligned, or align again."
        )
    order = np.argsort(rows, kind="stable")  # the places, in the order in which the table is read
    sorted_rows = rows[order]
    points = np.empty((len(rows), table.dimensions))
    first = 0
    for batch in table.batches():
        begin, end = np.searchsorted(sorted_rows, [first, first + len(batch)])
        points[order[begin:end]] = batch[sorted_rows[begin:end] - first]
        first += len(batch)
    return points
