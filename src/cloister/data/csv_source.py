"""CSV files, streamed with the standard library, so that the base install needs nothing else.

The dialect: UTF-8 with or without a byte-order mark, a header line, one separator, double quotes, LF or CRLF; packed
by gzip, if the name ends in .gz. Blank lines are skipped. Every row must have as many cells as the header.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import numpy as np

from cloister.columns import Column
from cloister.data.cells import read_texts
from cloister.data.faults import Faults, count_of
from cloister.data.source import Match, find_columns, find_id_column
from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray

SEPARATORS = (",", ";", "\t", "|")
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
    separator
        One character; by default that of `SEPARATORS` by which the header has the most of the wanted columns.
    decimal
        What stands before the decimals of a number: a point or a comma.
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
        separator: str | None = None,
        decimal: str = ".",
        id_column: str | None = None,
        label: str | None = None,
    ) -> None:
        check_dialect(separator, decimal)
        self.label = label or str(path)
        self.id_column = id_column
        self._path = path
        self._columns = tuple(columns)
        self._match = match
        self._decimal = decimal
        self._separator = "," if separator is None else separator
        if separator is None:
            self._separator = self._find_separator()
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
                if len(full) < len(rows):
                    rows = [row for row in rows if row]  # blank lines are rows without cells
                faults.begin(len(rows), ragged=[i for i, row in enumerate(rows) if len(row) != width])
                if id_cells is not None and id_position is not None:
                    id_cells += [row[id_position] for row in full]
                values = np.empty((len(full), len(positions)))
                for place, (column, position) in enumerate(zip(self._columns, positions, strict=True)):
                    cells = [row[position] for row in full]
                    values[:, place] = read_texts(cells, column, place, faults, decimal=self._decimal)
                yield values

    def _open(self) -> TextIO:
        """Open the file as text; utf-8-sig drops a byte-order mark."""
        reason = ""
        try:
            return io.TextIOWrapper(self._open_bytes(), encoding="utf-8-sig", newline="")
        except OSError as error:
            reason = error.strerror or "unknown reason"
        raise DataError(f"{self.label}: the file must be readable; got: {reason}. Check its path and permissions.")

    def _open_bytes(self) -> BinaryIO:
        """Open the file as bytes, unpacked."""
        return cast("BinaryIO", gzip.open(self._path)) if self._path.suffix.lower() == ".gz" else self._path.open("rb")

    def _find_separator(self) -> str:
        """Return the separator by which the header has the most of the wanted columns, or the most columns."""
        wanted = {column.name for column in self._columns} | {self.id_column}
        found = []
        for separator in SEPARATORS:
            self._separator = separator
            try:
                with self._open() as stream:
                    header = self._read_header(self._start(stream))
            except DataError:
                continue  # quotes that are broken with this separator; with the first it is told
            found.append((len(wanted.intersection(header)), len(header), separator))
        return max(found, key=lambda one: one[:2], default=(0, 0, SEPARATORS[0]))[2]

    def _start(self, stream: TextIO) -> Iterator[list[str]]:
        """Start the tokeniser in strict mode, so that a broken quotation is an error and not one huge cell."""
        return csv.reader(stream, delimiter=self._separator, strict=True)

    def _find(self, reader: Iterator[list[str]]) -> tuple[int, tuple[int, ...], int | None]:
        """Read the header; return its width and the positions of the job's columns and of the ID column."""
        header = self._read_header(reader)
        positions = find_columns(header, self._columns, self._match, self.label)
        id_position = None if self.id_column is None else find_id_column(header, self.id_column, self.label)
        return len(header), positions, id_position

    def _read_header(self, reader: Iterator[list[str]]) -> list[str]:
        """Read lines until one is not blank; return its names."""
        while rows := self._take(reader, 1):
            if rows[0]:
                return [name.strip() for name in rows[0]]
        raise DataError(f"{self.label}: a CSV file must have a header line; the file is empty. Add one.")

    def _take(self, reader: Iterator[list[str]], count: int) -> list[list[str]]:
        """Return the next rows; caught exceptions hold cells, so errors are raised outside the handlers."""
        try:
            return list(islice(reader, count))
        except UnicodeDecodeError:
            reason = "text"
        except csv.Error:
            reason = "quotes"
        except (OSError, EOFError, zlib.error):
            reason = "packed"
        if reason == "packed":
            raise DataError(f"{self.label}: the file must be readable to its end; it is not. Write it again.")
        if reason == "quotes":
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
        with self._open_bytes() as stream:
            return sum(not _is_utf8(line) for line in stream)


def check_dialect(separator: str | None, decimal: str) -> None:
    """Refuse what cannot separate cells, or stand before decimals."""
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ConfigError(f"separator must be one character, not a quote or a line end; got {separator!r}. Use ','.")
    if decimal not in (".", ",") or decimal == separator:
        raise ConfigError(f'decimal must be "." or ",", and not the separator; got {decimal!r}. Use ".".')


def _is_utf8(line: bytes) -> bool:
    """Return whether a line is UTF-8 text."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
