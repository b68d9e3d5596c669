"""CSV files, streamed with the standard library, so that the base install needs nothing else.

The dialect: UTF-8 with or without a byte-order mark, a header line, one delimiter, double quotes, LF or CRLF.
Blank lines are skipped. Every row must have as many cells as the header.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from cloister.columns import Column
from cloister.data.cells import Faults, convert_text, count_of
from cloister.data.source import Match, find_columns, find_id_column
from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray

_CHUNK_CELLS = 1 << 12  # at about 60 bytes per cell, a chunk stays in the cache: 1.4 times as fast as 1 << 17


class CsvSource:
    """A CSV file on disk.

    Parameters
    ----------
    path
        The file.
    columns
        The job's columns; others in the file are ignored.
    match
        How columns are found; see :func:`cloister.data.open_table`.
    delimiter
        One character.
    id_column
        The column of record IDs, if it is to be read.
    label
        What messages call the file.
    """

    in_memory = False
    read_once = False

    def __init__(
        self,
        path: Path,
        columns: Sequence[Column],
        match: Match,
        *,
        delimiter: str = ",",
        id_column: str | None = None,
        label: str | None = None,
    ) -> None:
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ConfigError(
                f"delimiter must be one character, not a quote or a line end; got {delimiter!r}. Use ','."
            )
        self.label = label or str(path)
        self.id_column = id_column
        self._path = path
        self._columns = tuple(columns)
        self._match = match
        self._delimiter = delimiter
        with self._open() as stream:  # a missing file or column is known when the table is opened
            self._find(self._start(stream))

    def read(self, faults: Faults, most_rows: int, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield raw values in chunks; see :class:`cloister.data.source.Source`."""
        with self._open() as stream:
            reader = self._start(stream)
            width, positions, id_position = self._find(reader)
            chunk_rows = max(1, min(most_rows, _CHUNK_CELLS // width))
            while rows := self._take(reader, chunk_rows):
                full = [row for row in rows if len(row) == width]
                if len(full) < len(rows):  # blank lines are rows without cells
                    faults.add_ragged_rows(sum(len(row) not in (0, width) for row in rows))
                if id_cells is not None and id_position is not None:
                    id_cells += [row[id_position] for row in full]
                values = np.empty((len(full), len(positions)))
                for column, position in enumerate(positions):
                    values[:, column] = convert_text([row[position] for row in full], column, faults)
                yield values

    def _open(self) -> TextIO:
        """Open the file as text; utf-8-sig drops a byte-order mark."""
        reason = ""
        try:
            return self._path.open(encoding="utf-8-sig", newline="")
        except OSError as error:
            reason = error.strerror or "unknown reason"
        raise DataError(f"{self.label}: the file must be readable; got: {reason}. Check its path and permissions.")

    def _start(self, stream: TextIO) -> Iterator[list[str]]:
        """Start the tokeniser in strict mode, so that a broken quotation is an error and not one huge cell."""
        return csv.reader(stream, delimiter=self._delimiter, strict=True)

    def _find(self, reader: Iterator[list[str]]) -> tuple[int, tuple[int, ...], int | None]:
        """Read the header; return its width and the positions of the job's columns and of the ID column."""
        header: list[str] = []
        while not header:
            rows = self._take(reader, 1)
            if not rows:
                raise DataError(f"{self.label}: a CSV file must have a header line; the file is empty. Add one.")
            header = [name.strip() for name in rows[0]]
        positions = find_columns(header, self._columns, self._match, self.label)
        id_position = None if self.id_column is None else find_id_column(header, self.id_column, self.label)
        return len(header), positions, id_position

    def _take(self, reader: Iterator[list[str]], count: int) -> list[list[str]]:
        """Return the next rows; caught exceptions hold cells, so errors are raised outside the handlers."""
        try:
            return list(islice(reader, count))
        except UnicodeDecodeError:
            broken_quotes = False
        except csv.Error:
            broken_quotes = True
        if broken_quotes:
            line = int(getattr(reader, "line_num", 0))
            raise DataError(
                f"{self.label}: quoted cells must be closed and hold less than {csv.field_size_limit()} "
                f"characters; 1 does not, near line {line}. Correct the quotes."
            )
        raise DataError(
            f"{self.label}: the file must be UTF-8 text; {count_of(self._count_undecodable_lines(), 'line')} "
            f"cannot be decoded. Save it as UTF-8."
        )

    def _count_undecodable_lines(self) -> int:
        """Count the lines that are not UTF-8."""
        with self._path.open("rb") as stream:
            return sum(not _is_utf8(line) for line in stream)


def _is_utf8(line: bytes) -> bool:
    """Return whether a line is UTF-8 text."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
