"""What cannot be used in a table: counted by column and kind, with the first row numbers, and never shown.

A table is read to its end before it is refused, so that one message describes everything that needs cleaning. The
message is for the table's owner alone (`cloister.errors.told_to_owner`), and even there it holds no cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cloister.columns import Column
from cloister.errors import DataError
from cloister.records import IntArray

Missing = Literal["refuse", "drop", "impute"]
_ROWS_SHOWN = 3


class Fault(Enum):
    """Why a cell cannot be used; the value is the wording in messages."""

    TEXT = "text"
    COMMA = "with a decimal comma"
    EMPTY = "empty"
    NAN = "NaN"
    BOOLEAN = "boolean"
    DATE = "date or time"
    NUMBER = "another number"
    NESTED = "nested"
    OTHER = "of another type"
    INFINITE = "infinite"
    LARGE_INTEGER = "integer beyond 2^53"


_OUT_OF_RANGE = frozenset({Fault.INFINITE, Fault.LARGE_INTEGER})
_MISSING = frozenset({Fault.EMPTY, Fault.NAN})
_WANTED = {
    "number": ("a number", "numbers"),
    "boolean": ("0 or 1", "0 or 1"),
    "date": ("a date", "dates"),
    "category": ("a level", "levels"),
}


class Faults:
    """A running count of unusable cells and rows.

    Parameters
    ----------
    columns
        The job's columns.
    missing
        What becomes of missing cells: unless they are refused, they are no faults.
    """

    def __init__(self, columns: Sequence[Column], missing: Missing = "refuse") -> None:
        self._columns = tuple(columns)
        self._refuses_missing = missing == "refuse"
        self._cells: tuple[Counter[Fault], ...] = tuple(Counter() for _ in columns)
        self._rows: tuple[list[int], ...] = tuple([] for _ in columns)
        self._ragged: list[int] = []
        self._ragged_rows = 0
        self._count = 0
        self._numbers: IntArray = np.zeros(0, dtype=np.int64)

    def __bool__(self) -> bool:
        return self._ragged_rows > 0 or any(counts.total() for counts in self._cells)

    def begin(self, rows: int, *, ragged: Sequence[int] = ()) -> None:
        """Start a chunk of so many rows, of which ``ragged``, by position, do not have as many cells as the header."""
        numbers = np.arange(self._count + 1, self._count + rows + 1)
        if ragged:
            self._ragged_rows += len(ragged)
            self._ragged += numbers[list(ragged)].tolist()
            del self._ragged[_ROWS_SHOWN:]
            numbers = np.delete(numbers, list(ragged))
        self._numbers = numbers
        self._count += rows

    def add(self, place: int, fault: Fault, cells: ArrayLike) -> None:
        """Count unusable cells of one column, by position among the chunk's rows that are not ragged."""
        where = np.asarray(cells, dtype=np.int64)
        if not where.size or (fault in _MISSING and not self._refuses_missing):
            return
        self._cells[place][fault] += where.size
        first = {*self._rows[place], *self._numbers[where[:_ROWS_SHOWN]].tolist()}
        self._rows[place][:] = sorted(first)[:_ROWS_SHOWN]

    def to_error(self, label: str) -> DataError:
        """Return the error that says what must be cleaned, by column, count and row."""
        parts = []
        if self._ragged_rows:
            verb = "does" if self._ragged_rows == 1 else "do"
            rows = f"{count_of(self._ragged_rows, 'row')} {verb} not have as many cells as the header"
            parts.append(f"{rows} ({_list_rows(self._ragged, self._ragged_rows)})")
        for column, counts, first in zip(self._columns, self._cells, self._rows, strict=True):
            if counts.total():
                rows = _list_rows(first, counts.total())
                parts.append(f"column {column.name!r}: {_describe_cells(column, counts)} ({rows})")
        return DataError(
            f"{label}: every cell of the job's columns must be what [columns] says; {'; '.join(parts)}. "
            + " ".join(self._list_remedies())
        )

    def _list_remedies(self) -> list[str]:
        """Say what to do: a column that is mostly of another kind is left out or named as it is."""
        remedies, correct, fill = [], self._ragged_rows > 0, False
        for column, counts in zip(self._columns, self._cells, strict=True):
            empty = sum(counts[fault] for fault in _MISSING)
            wrong = counts.total() - empty
            fill = fill or empty > 0
            if counts[Fault.COMMA]:
                how = 'write decimal = "," beside data (with predict: --decimal ,)'
                remedies.append(f"Column {column.name!r} has decimal commas: {how}.")
            elif wrong and 2 * wrong >= self._count - empty:
                remedies.append(f"Leave {column.name!r} out of [columns], or {_advise(column, counts)}.")
            else:
                correct = correct or wrong > 0
        if correct:
            remedies.append("Correct those cells, or leave out their rows.")
        if fill:
            remedies.append('Fill empty cells, or write missing = "drop" in [data] to leave out their rows.')
        return remedies


def count_of(count: int, noun: str) -> str:
    """Return '1 row' or '3 rows'."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _list_rows(first: list[int], count: int) -> str:
    """Return 'row 5' or 'rows 1, 2, 3, ...'; rows are counted from 1, without the header."""
    return f"{'row' if count == 1 else 'rows'} {', '.join(map(str, first))}" + (", ..." if count > len(first) else "")


def _describe_cells(column: Column, counts: Counter[Fault]) -> str:
    """Return what is wrong with a column's cells."""
    unfit = {kind: counts[kind] for kind in Fault if counts[kind] and kind not in _OUT_OF_RANGE}
    out_of_range = {kind: counts[kind] for kind in Fault if counts[kind] and kind in _OUT_OF_RANGE}
    one, several = _WANTED[column.kind]
    clauses = []
    if unfit:
        clauses.append(_describe(unfit, f"is not {one}", f"are not {several}"))
    if out_of_range:
        clauses.append(_describe(out_of_range, "is out of range", "are out of range"))
    return " and ".join(clauses)


def _describe(kinds: dict[Fault, int], one: str, several: str) -> str:
    """Return '3 cells are not numbers (2 text, 1 empty)'."""
    total = sum(kinds.values())
    listed = ", ".join(f"{count} {kind.value}" for kind, count in kinds.items())
    return f"{count_of(total, 'cell')} {one if total == 1 else several} ({listed})"


def _advise(column: Column, counts: Counter[Fault]) -> str:
    """Say as what a column could be used."""
    most = max((fault for fault in Fault if fault not in _MISSING), key=lambda fault: counts[fault])
    if most is Fault.DATE and column.kind != "date":
        return "give it dates: { from = 2015-01-01, to = 2024-12-31 }"
    if most is Fault.BOOLEAN and column.kind != "boolean":
        return "write { boolean = true } for it"
    if most is Fault.TEXT:
        return 'give it levels: { levels = ["a", "b"] }'
    return "give it the kind that its cells are"
