"""Parquet and Arrow: a file, a folder of Parquet files, or an Arrow table or stream in memory.

Files are read one batch and one column chunk buffer at a time, so memory is bounded by the batch
and not by the file or its row groups. This needs the optional package pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cloister.columns import Column
from cloister.data.cells import read_array
from cloister.data.faults import Fault, Faults
from cloister.data.source import Match, find_columns, find_id_column
from cloister.errors import DataError, MissingExtraError
from cloister.records import FloatArray

_PARQUET = (".parquet", ".pq")
_READ_BUFFER_BYTES = 1 << 20
_LOOK_ROWS = 1 << 12


class ArrowSource:
    """An Arrow table or stream in memory; a stream is read once, and the table keeps its records."""

    in_memory = True

    def __init__(
        self,
        source: Any,
        columns: Sequence[Column],
        match: Match,
        *,
        id_column: str | None = None,
        label: str | None = None,
    ) -> None:
        pa = _import_pyarrow("reading Arrow data")
        self.label = label or f"Arrow {type(source).__name__}"
        self.id_column = id_column
        self.read_once = isinstance(source, pa.RecordBatchReader)
        self._spent = False
        self._source = source
        self._columns = tuple(columns)
        _find_all(self._open().schema.names, columns, match, id_column, self.label)

    def read(self, faults: Faults, most_rows: int, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield raw values in chunks; see :class:`cloister.data.source.Source`."""
        if self._spent:
            raise DataError(f"{self.label}: a stream must be unread; this one is not. Make a new one, or pass a table.")
        self._spent = self.read_once
        batches = iter(self._open())
        while (batch := _next_batch(batches, self.label)) is not None:
            for part in _cut(batch, most_rows):
                if id_cells is not None and self.id_column is not None:
                    id_cells += part.column(self.id_column).to_pylist()
                yield _read_batch(part, self._columns, faults)

    def _open(self) -> Any:
        """Return a reader of record batches."""
        pa = _import_pyarrow("reading Arrow data")
        return self._source if self.read_once else pa.RecordBatchReader.from_stream(self._source)


class ArrowFiles:
    """A Parquet or Arrow file, or a folder of Parquet files in the order of their paths."""

    in_memory = False
    read_once = False

    def __init__(
        self, path: Path, columns: Sequence[Column], match: Match, *, id_column: str | None = None, label: str
    ) -> None:
        _import_pyarrow("reading Parquet" if path.is_dir() or path.suffix.lower() in _PARQUET else "reading Arrow")
        self.label = label
        self.id_column = id_column
        self._columns = tuple(columns)
        self._match = match
        self._paths = [path]
        if path.is_dir():
            self._paths = sorted(
                file for file in path.rglob("*") if _is_part(file.relative_to(path)) and file.is_file()
            )
            if not self._paths:
                raise DataError(f"{label}: a folder must hold at least one .parquet file; got none. Check the path.")
        for file in self._paths:
            with _open_file(file, self._label_of(file)) as opened:
                self._find(opened, file)

    def read(self, faults: Faults, most_rows: int, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield raw values in chunks; see :class:`cloister.data.source.Source`."""
        names = tuple(column.name for column in self._columns)
        id_names = () if self.id_column is None or id_cells is None else (self.id_column,)
        for file in self._paths:
            label = self._label_of(file)
            with _open_file(file, label) as opened:
                self._find(opened, file)  # the file may have changed since the last round
                batches = _iterate_batches(opened, (*names, *id_names), most_rows)
                while (batch := _next_batch(batches, label)) is not None:
                    for part in _cut(batch, most_rows):
                        if id_cells is not None and id_names:
                            id_cells += part.column(id_names[0]).to_pylist()
                        yield _read_batch(part, self._columns, faults)

    @property
    def first(self) -> Path:
        """The first file."""
        return self._paths[0]

    def _find(self, opened: Any, file: Path) -> None:
        """Check one file's columns."""
        schema = opened.schema_arrow if hasattr(opened, "schema_arrow") else opened.schema
        _find_all(schema.names, self._columns, self._match, self.id_column, self._label_of(file))

    def _label_of(self, file: Path) -> str:
        """Name a file of a folder."""
        return self.label if len(self._paths) == 1 else f"{self.label} ({file.name})"


def read_names(path: Path) -> list[str]:
    """Return the names of a file's columns, or of those of the first file in a folder, from its schema alone."""
    with _open_first(path) as opened:
        schema = opened.schema_arrow if hasattr(opened, "schema_arrow") else opened.schema
        return list(schema.names)


def read_rows(path: Path, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield rows of such a file as text by column, "" for a missing cell."""
    with _open_first(path) as opened:
        for batch in _iterate_batches(opened, names, _LOOK_ROWS):
            for row in batch.select(list(names)).to_pylist():
                yield {name: "" if cell is None else str(cell) for name, cell in row.items()}


@contextmanager
def _open_first(path: Path) -> Iterator[Any]:
    """Open a file, or the first of a folder."""
    source = ArrowFiles(path, (), "name", label=str(path))
    with _open_file(source.first, str(path)) as opened:
        yield opened


def _find_all(
    header: Sequence[str], columns: Sequence[Column], match: Match, id_column: str | None, label: str
) -> None:
    """Check that the job's columns and the ID column are there."""
    find_columns(header, columns, match, label)
    if id_column is not None:
        find_id_column(header, id_column, label)


def _is_part(file: Path) -> bool:
    """Return whether a path in a folder is data; by convention, names that start with . or _ are writers' leftovers."""
    return file.suffix.lower() in _PARQUET and not any(part.startswith((".", "_")) for part in file.parts)


def _import_pyarrow(feature: str) -> Any:
    """Import the optional package; if it is missing, say how to install it."""
    try:
        import pyarrow  # noqa: PLC0415 (optional)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(feature, "pyarrow", "parquet") from None
    return pyarrow


@contextmanager
def _open_file(path: Path, label: str) -> Iterator[Any]:
    """Open a Parquet or Arrow file; Arrow's own error message is not shown."""
    pa = _import_pyarrow("reading Parquet")
    opened = None
    try:
        if path.suffix.lower() in _PARQUET:
            opened = pa.parquet.ParquetFile(path, buffer_size=_READ_BUFFER_BYTES, pre_buffer=False)
        else:
            opened = pa.ipc.open_file(pa.memory_map(str(path)))
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        pass  # raised below, outside this handler
    if opened is None:
        kind = "Parquet" if path.suffix.lower() in _PARQUET else "Arrow"
        raise DataError(f"{label}: the file must be a readable {kind} file; it is not. Write it again.")
    with opened:
        yield opened


def _iterate_batches(opened: Any, names: Sequence[str], most_rows: int) -> Iterator[Any]:
    """Yield record batches of an open file."""
    if hasattr(opened, "iter_batches"):
        yield from opened.iter_batches(batch_size=most_rows, columns=list(names))
    else:
        for index in range(opened.num_record_batches):
            yield opened.get_batch(index)


def _next_batch(batches: Iterator[Any], label: str) -> Any:
    """Return the next batch, or None at the end; Arrow's exceptions may quote cells, so they stop here."""
    pa = _import_pyarrow("reading Parquet")
    try:
        return next(batches, None)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        pass
    raise DataError(f"{label}: the data must be readable to the end; a part is damaged. Write it again.")


def _cut(batch: Any, most_rows: int) -> Iterator[Any]:
    """Yield a record batch in slices of at most ``most_rows`` rows."""
    for start in range(0, batch.num_rows, most_rows):
        yield batch.slice(start, most_rows)


def _read_batch(batch: Any, columns: Sequence[Column], faults: Faults) -> FloatArray:
    """Read a record batch."""
    values = np.empty((batch.num_rows, len(columns)))
    faults.begin(batch.num_rows)
    for place, column in enumerate(columns):
        values[:, place] = _read_column(batch.column(column.name), column, place, faults)
    return values


def _read_column(array: Any, column: Column, place: int, faults: Faults) -> FloatArray:
    """Read one Arrow array."""
    pa = _import_pyarrow("reading Arrow data")
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if column.kind != "number":
        cells = np.empty(len(array), dtype=object)
        cells[:] = array.to_pylist()
        return read_array(cells, column, place, faults)
    fault = _fault_of(array.type)
    if fault is not None:
        absent = array.is_null().to_numpy(zero_copy_only=False)
        faults.add(place, Fault.EMPTY, np.flatnonzero(absent))
        faults.add(place, fault, np.flatnonzero(~absent))
        return np.full(len(array), np.nan)
    if pa.types.is_decimal(array.type) or pa.types.is_float16(array.type):
        array = array.cast(pa.float64())
    empty = None
    if array.null_count:
        empty = array.is_null().to_numpy(zero_copy_only=False)
        array = array.fill_null(0)
    return read_array(array.to_numpy(zero_copy_only=False), column, place, faults, empty=empty)


def _fault_of(kind: Any) -> Fault | None:
    """Return what is wrong with every cell of an Arrow type, or None for numbers."""
    types = _import_pyarrow("reading Arrow data").types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return None
    for test, fault in (
        (types.is_boolean, Fault.BOOLEAN),
        (types.is_temporal, Fault.DATE),
        (types.is_nested, Fault.NESTED),
        (types.is_string, Fault.TEXT),
        (types.is_large_string, Fault.TEXT),
        (types.is_binary, Fault.TEXT),
        (types.is_large_binary, Fault.TEXT),
    ):
        if test(kind):
            return fault
    return Fault.OTHER  # also the null type, whose cells count as empty
