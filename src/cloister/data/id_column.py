"""The ID column of a table, cell by cell as it is stored; what makes an ID is the alignment's business.

Rows come in the order, and with the omissions (blank lines of a CSV file), of :class:`cloister.data.Table`, so that row
numbers mean the same in both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cloister.columns import Column
from cloister.data.csv_source import CsvSource
from cloister.data.faults import count_of
from cloister.data.source import find_columns
from cloister.errors import DataError

_CHUNK_ROWS = 1 << 12


def read_id_cells(source: Any, column: str, *, label: str) -> Iterator[object]:
    """Yield the cells of one column.

    Parameters
    ----------
    source
        A path of a ``.csv``, ``.tsv``, ``.parquet`` or Arrow file or of a folder of Parquet files, a pandas DataFrame,
        or anything with ``__arrow_c_stream__``: what :func:`cloister.data.open_table` takes, but for arrays.
    column
        Its name.
    label
        What messages call the table.

    Raises
    ------
    DataError
        If the table cannot be read or has no such column.
    """
    wanted = (Column(name=column, low=0.0, high=1.0),)  # the bounds play no part: nothing is scaled
    if isinstance(source, str | Path):
        return _read_file(Path(source), wanted, label)
    pandas = sys.modules.get("pandas")  # who holds a DataFrame has imported it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        (position,) = find_columns(list(source.columns), wanted, "name", label)
        return iter(source.iloc[:, position].tolist())
    if hasattr(source, "__arrow_c_stream__"):
        return _read_arrow_stream(source, wanted, label)
    raise DataError(
        f"{label}: a table with IDs must be a path, a pandas DataFrame or an Arrow table; got {type(source).__name__}. "
        "Convert it to one of these."
    )


def _read_file(path: Path, wanted: tuple[Column], label: str) -> Iterator[object]:
    """Choose the reader by the file's extension."""
    if not path.exists():
        raise DataError(f"{label}: the file must exist; nothing is there. Check the path.")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in (".parquet", ".pq", ".arrow", ".feather"):
        return _read_arrow_files(path, wanted, label)
    if suffix in (".csv", ".tsv"):
        return _CsvCells(path, wanted, "name", delimiter="\t" if suffix == ".tsv" else ",", label=label).read_cells()
    raise DataError(
        f"{label}: the file name must end in .csv, .tsv, .parquet, .pq, .arrow or .feather; got "
        f"{repr(suffix) if suffix else 'no extension'}. Rename the file after its format."
    )


class _CsvCells(CsvSource):
    """A CSV file of which one column is taken as text."""

    def read_cells(self) -> Iterator[object]:
        """Yield the column; a row of another width than the header is refused, since its cells may have shifted."""
        with self._open() as stream:
            reader = self._start(stream)
            width, (position,) = self._find(reader)
            while rows := self._take(reader, _CHUNK_ROWS):
                ragged = sum(len(row) not in (0, width) for row in rows)
                if ragged:
                    raise DataError(
                        f"{self.label}: every row must have as many cells as the header, {width}; "
                        f"{count_of(ragged, 'row')} of {len(rows)} up to line {getattr(reader, 'line_num', 0)} "
                        f"{'does' if ragged == 1 else 'do'} not. Correct those rows."
                    )
                yield from (row[position] for row in rows if row)


def _read_arrow_stream(source: Any, wanted: tuple[Column], label: str) -> Iterator[object]:
    """Yield the column of an Arrow table or stream in memory."""
    from cloister.data import arrow_source  # noqa: PLC0415 (pyarrow is optional)

    pa = arrow_source._import_pyarrow("reading Arrow data")
    reader = pa.RecordBatchReader.from_stream(source)
    find_columns(reader.schema.names, wanted, "name", label)
    batches = iter(reader)
    while (batch := arrow_source._next_batch(batches, label)) is not None:
        yield from batch.column(wanted[0].name).to_pylist()


def _read_arrow_files(path: Path, wanted: tuple[Column], label: str) -> Iterator[object]:
    """Yield the column of a Parquet or Arrow file, or of a folder of Parquet files, a batch at a time."""
    from cloister.data import arrow_source  # noqa: PLC0415 (pyarrow is optional)

    files = arrow_source.ArrowFiles(path, wanted, "name", label=label)
    for file in files._paths:
        with arrow_source._open_file(file, label) as opened:
            batches = arrow_source._iterate_batches(opened, [wanted[0].name], _CHUNK_ROWS)
            while (batch := arrow_source._next_batch(batches, label)) is not None:
                yield from batch.column(wanted[0].name).to_pylist()
