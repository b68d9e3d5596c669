"""One party's table: from a file or an object in memory to records in [-1, 1]^d on the fixed-point grid.

Every local statistic is a reduction over :meth:`Table.batches`. A table that fits the memory budget is
encoded once, in the pass that checks it, and later rounds read the encoded batches. A file that does
not fit is read again in each round, a bounded batch at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cloister.columns import Column, column_highs, column_lows, to_original, to_unit
from cloister.data.cells import Faults
from cloister.data.source import Source
from cloister.errors import ConfigError, DataError
from cloister.numeric import FixedPoint
from cloister.records import FloatArray, IntArray

BATCH_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20
MEMORY_BUDGET_BYTES = 256 << 20


@dataclass(frozen=True, kw_only=True)
class TableCheck:
    """What one pass over a table found. It describes one party's records and must stay with that party."""

    records: int
    """The number of records."""
    clipped: tuple[int, ...]
    """For each column, the number of cells outside the public bounds."""
    batches: int
    """The number of batches of one pass."""


class Table:
    """Records of one party, scaled by the public bounds, clipped to them and rounded to the grid.

    Implements :class:`cloister.records.Records`. Make one with :func:`cloister.data.open_table`.

    Parameters
    ----------
    source
        Where the raw values come from.
    columns
        The job's columns.
    fixed_point
        The grid.
    batch_rows
        Rows in a batch; by default 65,536, or fewer where these would take more than 16 MiB.
    memory_budget_bytes
        The largest encoded size at which a file is kept in memory between rounds.
    may_be_empty
        Accept a table without records. A differentially private job must: a refusal would reveal whether the last
        record is there.
    see_ids
        Told the cells of the ID column, a batch after the other, when the table is checked. They are then not kept,
        but of a stream; `identified_batches` reads them again.
    """

    def __init__(
        self,
        source: Source,
        columns: Sequence[Column],
        *,
        fixed_point: FixedPoint,
        batch_rows: int | None = None,
        memory_budget_bytes: int = MEMORY_BUDGET_BYTES,
        may_be_empty: bool = False,
        see_ids: Callable[[Sequence[object]], None] | None = None,
    ) -> None:
        if batch_rows is not None and batch_rows < 1:
            raise ConfigError(f"batch_rows must be at least 1; got {batch_rows}. Leave it out for the default.")
        if memory_budget_bytes < 0:
            raise ConfigError(f"memory_budget_bytes must not be negative; got {memory_budget_bytes}. Use 0 to stream.")
        self._source = source
        self._columns = tuple(columns)
        self._fixed_point = fixed_point
        self._batch_rows = batch_rows or max(1, min(BATCH_ROWS, _BATCH_BYTES // (8 * len(columns))))
        self._memory_budget_bytes = memory_budget_bytes
        self._may_be_empty = may_be_empty
        self._see_ids = see_ids
        self._check: TableCheck | None = None
        self._kept: list[FloatArray] | None = None
        self._id_cells: list[object] | None = None
        self._digest = b""  # of the raw values in order: every later reading must give the same

    @property
    def columns(self) -> tuple[Column, ...]:
        """The job's columns, in the job's order."""
        return self._columns

    @property
    def dimensions(self) -> int:
        """The number of columns d."""
        return len(self._columns)

    @property
    def fixed_point(self) -> FixedPoint:
        """The grid that the records lie on."""
        return self._fixed_point

    @property
    def label(self) -> str:
        """What messages call this table."""
        return self._source.label

    @property
    def id_cells(self) -> list[object] | None:
        """The cells of the ID column as they are stored, in the order of the records; None if none was named."""
        self.check()
        return self._id_cells

    def check(self) -> TableCheck:
        """Read the whole table once and count; later calls return the same result.

        Returns
        -------
        TableCheck

        Raises
        ------
        DataError
            If a cell of the job's columns is not a finite number, or if required records are missing. Names
            columns and counts only.
        """
        if self._check is not None:
            return self._check
        faults = Faults(self._columns)
        records = batches = kept_bytes = 0
        clipped = np.zeros(self.dimensions, dtype=np.int64)
        kept: list[FloatArray] | None = []
        id_cells: list[object] | None = None if self._source.id_column is None else []
        digest = hashlib.blake2b()
        for values in self._read_raw(faults, id_cells):
            self._show_ids(id_cells, records, len(values))
            records += len(values)
            batches += 1
            digest.update(values.tobytes())
            if faults:
                kept = None  # the table will be refused; only its faults are still counted
                continue
            clipped += self._count_outside(values)
            kept_bytes += values.nbytes
            if kept is not None and (self._source.in_memory or kept_bytes <= self._memory_budget_bytes):
                kept.append(self._encode(values))
            else:
                kept = None
        if faults:
            raise faults.to_error(self.label)
        if not records and not self._may_be_empty:
            raise DataError(
                f"{self.label}: a table must hold at least one record; got none. Add records, or leave out the party."
            )
        self._kept, self._id_cells = kept, id_cells
        self._digest = digest.digest()
        self._check = TableCheck(records=records, clipped=tuple(int(count) for count in clipped), batches=batches)
        return self._check

    def batches(self) -> Iterator[FloatArray]:
        """Yield C-contiguous (n_b, d) arrays on the grid; each call starts again from the first record.

        Raises
        ------
        DataError
            As :meth:`check` does; also if the file has changed since.
        """
        self.check()
        if self._kept is not None:
            yield from self._kept
            return
        for values in self._read_again():
            yield self._encode(values)

    def raw_batches(self) -> Iterator[FloatArray]:
        """Yield the records in original units, neither clipped nor rounded, for a fingerprint that recognises them.

        A stream that can be read only once has already been read: its encoded records are mapped back instead.
        """
        self.check()
        if self._source.read_once:
            for batch in self.batches():
                yield to_original(batch, self._columns)
            return
        yield from self._read_again()

    def identified_batches(self) -> Iterator[tuple[FloatArray, list[object]]]:
        """Yield the records as `raw_batches` does, each batch with its cells in the ID column."""
        self.check()
        ids: list[object] = []  # the reader fills it, some rows ahead
        if self._source.read_once:
            ids = list(self._id_cells or ())
        for values in self.raw_batches() if self._source.read_once else self._read_again(ids):
            yield values, ids[: len(values)]
            del ids[: len(values)]

    def _show_ids(self, id_cells: list[object] | None, before: int, count: int) -> None:
        """Show the cells of a batch's IDs to whoever checks them, and forget those that can be read again."""
        if self._see_ids is None or id_cells is None:
            return
        start = before if self._source.read_once else 0
        self._see_ids(id_cells[start : start + count])
        if not self._source.read_once:
            del id_cells[:count]

    def _read_again(self, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield the raw values again; raise, at the end at the latest, if they are not those that were checked."""
        faults = Faults(self._columns)
        digest = hashlib.blake2b()
        for values in self._read_raw(faults, id_cells):
            if faults:
                raise faults.to_error(self.label)
            digest.update(values.tobytes())
            yield values
        if faults or digest.digest() != self._digest:
            raise DataError(
                f"{self.label}: a file must stay the same during a run; its numbers have changed since it was checked. "
                "Run again with a copy that nothing writes to."
            )

    def _read_raw(self, faults: Faults, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield raw values in batches of exactly ``batch_rows`` rows, except for the last."""
        rows = self._batch_rows
        waiting: list[FloatArray] = []
        count = 0
        for values in self._source.read(faults, rows, id_cells):
            waiting.append(values)
            count += len(values)
            if count >= rows:
                # A source yields at most ``rows`` rows at once, so the remainder belongs to this array.
                surplus = count - rows
                waiting[-1], rest = np.split(values, [len(values) - surplus])
                yield _join(waiting)
                waiting, count = [rest], surplus
        if count:
            yield _join(waiting)

    def _count_outside(self, values: FloatArray) -> IntArray:
        """Count the cells of each column outside the public bounds."""
        outside = (values < column_lows(self._columns)) | (values > column_highs(self._columns))
        counts: IntArray = outside.sum(axis=0, dtype=np.int64)
        return counts

    def _encode(self, values: FloatArray) -> FloatArray:
        """Scale to [-1, 1], clip, and round to the grid, which includes -1 and 1."""
        unit = to_unit(values, self._columns)
        return np.ascontiguousarray(self._fixed_point.quantise(np.clip(unit, -1.0, 1.0, out=unit)))


def _join(arrays: list[FloatArray]) -> FloatArray:
    """Stack arrays; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
