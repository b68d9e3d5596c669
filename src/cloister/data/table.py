"""One party's table: from a file or an object in memory to records in [-1, 1]^d on the fixed-point grid.

Every local statistic is a reduction over :meth:`Table.batches`. A table that fits the memory budget is
encoded once, in the pass that checks it, and later rounds read the encoded batches. A file that does
not fit is read again in each round, a bounded batch at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from cloister.columns import (
    UNKNOWN_LEVEL,
    Column,
    Coordinate,
    clip_unit,
    list_coordinates,
    spread_levels,
    to_unit,
)
from cloister.data.faults import Faults, Missing
from cloister.data.source import Source
from cloister.errors import ConfigError, DataError
from cloister.numeric import FixedPoint
from cloister.records import Encoding, FloatArray, IntArray

BATCH_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20
MEMORY_BUDGET_BYTES = 256 << 20


@dataclass(frozen=True, kw_only=True)
class TableCheck:
    """What one pass over a table found. It describes one party's records and must stay with that party."""

    records: int
    """The number of records."""
    clipped: tuple[int, ...]
    """For each column, the number of cells outside the public bounds, or that are none of the public levels."""
    batches: int
    """The number of batches of one pass."""
    dropped: int = 0
    """The number of records that were left out because cells are missing; not in ``records``."""


class Table:
    """Records of one party, scaled by the public bounds, clipped to them and rounded to the grid.

    Implements :class:`cloister.records.Records`. Make one with :func:`cloister.data.open_table`.

    Parameters
    ----------
    source
        Where the raw values come from.
    columns
        The job's columns.
    coordinates
        Those of these columns in the job; by default those of a job with these columns only.
    fixed_point
        The grid.
    batch_rows
        Rows in a batch; by default 65,536, or fewer where these would take more than 16 MiB.
    memory_budget_bytes
        The largest encoded size at which a file is kept in memory between rounds.
    missing
        What becomes of a record with a missing cell: the table is refused, or the record is left out, or it stays, with
        NaN in the cell's coordinates.
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
        coordinates: Sequence[Coordinate] | None = None,
        fixed_point: FixedPoint,
        batch_rows: int | None = None,
        memory_budget_bytes: int = MEMORY_BUDGET_BYTES,
        missing: Missing = "refuse",
        may_be_empty: bool = False,
        see_ids: Callable[[Sequence[object]], None] | None = None,
    ) -> None:
        if batch_rows is not None and batch_rows < 1:
            raise ConfigError(f"batch_rows must be at least 1; got {batch_rows}. Leave it out for the default.")
        if memory_budget_bytes < 0:
            raise ConfigError(f"memory_budget_bytes must not be negative; got {memory_budget_bytes}. Use 0 to stream.")
        self._source = source
        self._columns = tuple(columns)
        self._coordinates = list_coordinates(columns) if coordinates is None else tuple(coordinates)
        self._fixed_point = fixed_point
        self._batch_rows = batch_rows or max(1, min(BATCH_ROWS, _BATCH_BYTES // (8 * len(self._coordinates))))
        self._memory_budget_bytes = memory_budget_bytes
        self._missing = missing
        self._may_be_empty = may_be_empty
        self._see_ids = see_ids
        self._check: TableCheck | None = None
        self._kept: list[FloatArray] | None = None
        self._kept_raw: list[FloatArray] = []  # of a stream, which cannot be read again
        self._encoded: EncodedTable | None = None  # the last encoding serves many rounds
        self._id_cells: list[object] | None = None
        self._digest = b""  # of the raw values in order: every later reading must give the same

    @property
    def columns(self) -> tuple[Column, ...]:
        """The job's columns, in the job's order."""
        return self._columns

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What the batches hold."""
        return self._coordinates

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""
        return len(self._coordinates)

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
            If a cell is not what its column says, or if required records are missing. Names columns, counts and rows
            only.
        """
        if self._check is not None:
            return self._check
        faults = Faults(self._columns, self._missing)
        records = batches = kept_bytes = 0
        clipped = np.zeros(len(self._columns), dtype=np.int64)
        kept: list[FloatArray] | None = []
        id_cells: list[object] | None = None if self._source.id_column is None else []
        digest = hashlib.blake2b()
        left_out: list[int] = []
        for values in self._read_raw(faults, id_cells, left_out):
            self._show_ids(id_cells, records, len(values))
            records += len(values)
            batches += 1
            digest.update(values.tobytes())
            if faults:
                kept = None  # the table will be refused; only its faults are still counted
                continue
            clipped += self._count_outside(values)
            if self._source.read_once:
                self._kept_raw.append(values)
            kept_bytes += 8 * len(values) * self.dimensions
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
        self._check = TableCheck(
            records=records,
            clipped=tuple(int(count) for count in clipped),
            batches=batches,
            dropped=sum(left_out),
        )
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
        """Yield the values of the columns, (n_b, columns), neither clipped nor rounded: what `spread_levels` takes."""
        self.check()
        if self._source.read_once:
            yield from self._kept_raw
            return
        yield from self._read_again()

    def encoded_by(self, encoding: Encoding) -> EncodedTable:
        """Return the same records, encoded by another map from their values in original units."""
        if self._encoded is None or self._encoded.encoding != encoding:
            self._encoded = EncodedTable(self, encoding, keep=self._kept is not None)
        return self._encoded

    def identified_batches(self) -> Iterator[tuple[FloatArray, list[object]]]:
        """Yield the records as `raw_batches` does, each batch with its cells in the ID column."""
        self.check()
        ids: list[object] = []  # the reader fills it
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
        faults = Faults(self._columns, self._missing)
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

    def _read_raw(
        self, faults: Faults, id_cells: list[object] | None = None, left_out: list[int] | None = None
    ) -> Iterator[FloatArray]:
        """Yield raw values in batches of exactly ``batch_rows`` rows, except for the last."""
        rows = self._batch_rows
        waiting: list[FloatArray] = []
        count = 0
        for values in self._read_kept(faults, id_cells, left_out):
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

    def _read_kept(
        self, faults: Faults, id_cells: list[object] | None, left_out: list[int] | None
    ) -> Iterator[FloatArray]:
        """Yield the source's rows without those that are left out, which is decided row by row."""
        cells: list[object] | None = None if id_cells is None else []  # the source may read some rows ahead
        for values in self._source.read(faults, self._batch_rows, cells):
            usable: NDArray[np.bool_] = np.ones(len(values), dtype=np.bool_)
            if self._missing == "drop":
                usable = np.logical_not(np.isnan(values).any(axis=1))
                if left_out is not None:
                    left_out.append(int(np.count_nonzero(~usable)))
            if cells is not None and id_cells is not None:
                id_cells += compress(cells, usable)  # as many as there are rows
                del cells[: len(values)]
            yield values[usable]

    def _count_outside(self, values: FloatArray) -> IntArray:
        """Count the cells of each column outside the public bounds or levels."""
        counts: IntArray = np.zeros(len(self._columns), dtype=np.int64)
        for place, (column, cells) in enumerate(zip(self._columns, values.T, strict=True)):
            if column.kind == "category":
                counts[place] = np.count_nonzero(cells == UNKNOWN_LEVEL)
            else:
                counts[place] = np.count_nonzero((cells < column.low) | (cells > column.high))
        return counts

    def _encode(self, values: FloatArray) -> FloatArray:
        """Scale coordinates to [-1, 1], clip them, and round to the grid, which includes -1 and 1."""
        unit = clip_unit(to_unit(spread_levels(values, self._columns), self._coordinates), self._coordinates)
        missing = np.isnan(unit) if self._missing == "impute" else None
        if missing is None:
            return np.ascontiguousarray(self._fixed_point.quantise(unit))
        points = np.ascontiguousarray(self._fixed_point.quantise(np.where(missing, 0.0, unit)))
        points[missing] = np.nan
        return points


class EncodedTable:
    """A table's records, encoded by another map than its columns' bounds.

    Parameters
    ----------
    table, encoding
        Whose records; the map from original units.
    keep
        Keep the encoded batches in memory; else the table is read and encoded again in each round.
    """

    def __init__(self, table: Table, encoding: Encoding, *, keep: bool) -> None:
        self.encoding = encoding
        self._table = table
        self._kept = list(self._read()) if keep else None

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""
        return self._table.dimensions

    def check(self) -> TableCheck:
        """Return what was found in the table."""
        return self._table.check()

    def batches(self) -> Iterator[FloatArray]:
        """Yield C-contiguous (n_b, d) arrays on the grid; each call starts again from the first record."""
        if self._kept is not None:
            yield from self._kept
        else:
            yield from self._read()

    def _read(self) -> Iterator[FloatArray]:
        for values in self._table.raw_batches():
            yield self.encoding.encode(spread_levels(values, self._table.columns))


def _join(arrays: list[FloatArray]) -> FloatArray:
    """Stack arrays; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
