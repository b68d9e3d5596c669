"""Persons: which records of a table count where the unit is a person, at most so many of each.

A record counts if it is among those of its person with the smallest tags, a keyed hash of the ID and of the record's
values. So another person's records never decide about it: neither its row, nor the order of reading, nor a coin that
was dealt by position, all of which change for others when a person leaves (docs/proofs/persons.md).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from cloister.data.cells import EXACT_LIMIT
from cloister.data.faults import count_of
from cloister.data.table import MEMORY_BUDGET_BYTES, EncodedTable, Table
from cloister.errors import DataError, LocalProtocolError
from cloister.records import Encoding, FloatArray

PERSON_KEY_BYTES = 32
Entries = NDArray[np.uint64]
"""One a row: two words that stand for the person, the tag, and the row."""

_ENTRY_BYTES = 32
_SORTING = 3  # times the entries, while they are sorted
_ENTRIES_MOST = MEMORY_BUDGET_BYTES // (_SORTING * _ENTRY_BYTES)
_WORDS = 2**64
_ROWS_SHOWN = 5
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*", flags=re.ASCII)
_MISSING_WORDS = frozenset({"nan", "na", "<na>", "#n/a", "none", "null"})
"""What programs write into a cell that has no ID; taken for one, they would make one person of many."""


class _Fault(Enum):
    """Why a cell is no person's ID, in messages."""

    EMPTY = "empty"
    INVISIBLE = "with invisible characters"
    NOT_TEXT = "neither text nor a whole number"
    INEXACT = "numbers beyond 2^53"


def is_missing(cell: object) -> bool:
    """Return whether a cell is missing: None, NaN, or one of pandas' markers."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))


def _name_person(cell: object) -> bytes | _Fault:
    """Return the normal form of an ID: the same for whatever spreadsheets and data frames make of one."""
    if is_missing(cell):
        return _Fault.EMPTY
    if isinstance(cell, float | np.floating):
        if abs(float(cell)) >= EXACT_LIMIT:
            return _Fault.INEXACT
        cell = str(cell)
    if isinstance(cell, Decimal):
        cell = f"{cell:f}"
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return str(int(cell)).encode()
    return _name_text(cell) if isinstance(cell, str) else _Fault.NOT_TEXT


def _name_text(cell: str) -> bytes | _Fault:
    """Strip blanks, and the zeros that make a decimal fraction of a whole number."""
    text = unicodedata.normalize("NFC", cell.strip())
    if not text or text.lower() in _MISSING_WORDS:
        return _Fault.EMPTY
    if not text.isprintable():
        return _Fault.INVISIBLE
    whole = _WHOLE.fullmatch(text)
    return (text if whole is None else whole[1]).encode(errors="surrogatepass")


class PersonCheck:
    """Looks at all cells of an ID column while a table is checked, and refuses those that name nobody.

    Parameters
    ----------
    column
        What messages call it.
    """

    def __init__(self, column: str) -> None:
        self._column = column
        self._rows = 0
        self._faults: dict[_Fault, list[int]] = {}

    def see(self, cells: Sequence[object]) -> None:
        """Look at the next rows' cells."""
        for row, cell in enumerate(cells, start=self._rows + 1):
            named = _name_person(cell)
            if isinstance(named, _Fault):
                self._faults.setdefault(named, []).append(row)
        self._rows += len(cells)

    def require_all(self, label: str) -> None:
        """Raise `DataError` if a row has no ID; names rows of the table and reasons, never a cell."""
        if not self._faults:
            return
        said = "; ".join(
            f"{count_of(len(rows), 'cell')} {fault.value} ({_show_rows(rows)})" for fault, rows in self._faults.items()
        )
        raise DataError(
            f"{label}: every row must say whose record it is, in column {self._column!r}, as text or a whole "
            f"number; got {said}. Give every row an ID, or leave those rows out."
        )


def _show_rows(rows: Sequence[int]) -> str:
    shown, more = ", ".join(map(str, rows[:_ROWS_SHOWN])), len(rows) - _ROWS_SHOWN
    return f"row{'s' if len(rows) > 1 else ''} {shown}" + (f" and {more:,} more" if more > 0 else "")


class PersonRecords:
    """The records of a table that count; implements `cloister.records.Records`.

    Parameters
    ----------
    table
        All records.
    counts
        Which of them count, in the table's order.
    """

    def __init__(self, table: Table | EncodedTable, counts: NDArray[np.bool_]) -> None:
        self._table, self.counts = table, counts

    @property
    def dimensions(self) -> int:
        """The number of coordinates d."""
        return self._table.dimensions

    def batches(self) -> Iterator[FloatArray]:
        """Yield C-contiguous (n_b, d) arrays; each call starts again from the first record."""
        start = 0
        for batch in self._table.batches():
            counts = self.counts[start : start + len(batch)]
            start += len(batch)
            if len(counts) == len(batch) and counts.any():
                yield np.ascontiguousarray(batch[counts])
        if start != len(self.counts):
            raise LocalProtocolError("a table must have the records that persons were counted in; it has others.")

    def encoded_by(self, encoding: Encoding) -> PersonRecords:
        """Return the same records, encoded by this map from the values as they were stored."""
        assert isinstance(self._table, Table)
        return PersonRecords(self._table.encoded_by(encoding), self.counts)


def choose_records(table: Table, *, most: int, key: bytes, entries_most: int = _ENTRIES_MOST) -> PersonRecords:
    """Choose at most so many records of each person, by one reading of the whole table.

    Parameters
    ----------
    table
        Opened with the column of IDs, and checked.
    most
        How many records of a person count.
    key
        Secret, fresh for each session, independent of all records.
    entries_most
        How many records that may count are kept in mind at once, at 32 bytes each. Persons beyond these are left for
        another reading: which records count does not depend on it.

    Privacy
    -------
    Adding or removing all records of one ID changes what is returned by at most ``most`` records, all of this ID
    (docs/proofs/persons.md, claim 1). Nothing is released.
    """
    counts = np.zeros(table.check().records, dtype=np.bool_)
    first = 0
    while first < _WORDS:
        smallest = _Smallest(most, first, entries_most)
        row = 0
        for values, cells in table.identified_batches():
            smallest.add(_mark(values, cells, row, key))
            row += len(values)
        counts[smallest.rows()] = True
        first = smallest.end
    return PersonRecords(table, counts)


def _mark(values: FloatArray, cells: Sequence[object], row: int, key: bytes) -> Entries:
    """Return the entries of a batch whose first row this is."""
    whose = hashlib.blake2b(key=key, digest_size=16, person=b"cloister person")
    which = hashlib.blake2b(key=key, digest_size=8, person=b"cloister record")
    # Adding 0.0 turns -0.0 into 0.0; all gaps get one form. Little-endian on every machine.
    content = np.ascontiguousarray(np.where(np.isnan(values), np.nan, values + 0.0), dtype="<f8").tobytes()
    step = 8 * values.shape[1]
    marks = bytearray()
    for place, cell in enumerate(cells):
        named = _name_person(cell)
        if isinstance(named, _Fault):
            raise DataError("a table's IDs must stay the same during a run; they have changed since they were checked.")
        person, record = whose.copy(), which.copy()
        person.update(named)
        marks += person.digest()
        record.update(person.digest() + content[place * step : (place + 1) * step])
        marks += record.digest()
    entries = np.empty((len(values), 4), dtype=np.uint64)
    entries[:, :3] = np.frombuffer(bytes(marks), dtype="<u8").reshape(-1, 3)
    entries[:, 3] = np.arange(row, row + len(values), dtype=np.uint64)
    return entries


class _Smallest:
    """The entries with the smallest tags of each person whose first word is from ``first`` on, up to `end`.

    Whatever it forgets on the way could not count: there are enough smaller tags of the same person.
    """

    def __init__(self, most: int, first: int, entries_most: int) -> None:
        self._most, self._first, self._entries_most = most, first, max(entries_most, 4 * most)
        self._settled: Entries = np.empty((0, 4), dtype=np.uint64)
        self._waiting: list[Entries] = []
        self._count = 0
        self.end = _WORDS

    def add(self, entries: Entries) -> None:
        """Take some more."""
        words = entries[:, 0]
        inside = (words >= np.uint64(self._first)) & (words <= np.uint64(self.end - 1))
        self._waiting.append(entries[inside])
        self._count += int(inside.sum())
        if self._count > max(len(self._settled), self._entries_most // 4):
            self._settle()

    def rows(self) -> NDArray[np.int64]:
        """Return the rows that count."""
        self._settle()
        return self._settled[:, 3].astype(np.int64)

    def _settle(self) -> None:
        entries = np.concatenate([self._settled, *self._waiting])
        entries = entries[np.lexsort((entries[:, 3], entries[:, 2], entries[:, 1], entries[:, 0]))]
        places, is_first = np.arange(len(entries)), np.ones(len(entries), dtype=np.bool_)
        is_first[1:] = (entries[1:, :2] != entries[:-1, :2]).any(axis=1)
        ranks = places - np.maximum.accumulate(np.where(is_first, places, 0))  # among those of the same person
        self._settled, self._waiting, self._count = entries[ranks < self._most], [], 0
        while len(self._settled) > self._entries_most:  # the upper half of the persons waits for another reading
            self.end = int(self._settled[len(self._settled) // 2, 0])
            self._settled = self._settled[self._settled[:, 0] < np.uint64(self.end)]
