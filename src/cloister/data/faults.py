"""What is wrong with a table, counted by column and kind; never a cell's content.

A table is read to its end before it is refused, so that one message tells the whole cleaning job. The counts
are all that leaves the reader: an exception of NumPy, Arrow or the csv module quotes the cell it stumbled
over, so none of those is ever raised on, chained or shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from cloister.columns import Column
from cloister.errors import DataError

EXACT_LIMIT = 2**53  # beyond it a double no longer tells neighbouring integers apart


class Fault(Enum):
    """Why a cell cannot be used; the value is how a message calls it."""

    TEXT = "text"
    EMPTY = "empty"
    NAN = "NaN"
    BOOLEAN = "boolean"
    DATE = "date or time"
    NESTED = "nested"
    OTHER = "of another type"
    INFINITE = "infinite"
    LARGE_INTEGER = "integer beyond 2^53"


_OUT_OF_RANGE = frozenset({Fault.INFINITE, Fault.LARGE_INTEGER})


class Faults:
    """A running count of unusable cells and rows."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._names = tuple(column.name for column in columns)
        self._cells: tuple[Counter[Fault], ...] = tuple(Counter() for _ in columns)
        self._ragged_rows = 0

    def __bool__(self) -> bool:
        return self._ragged_rows > 0 or any(counts.total() for counts in self._cells)

    def add_cells(self, column: int, fault: Fault, count: int = 1) -> None:
        """Count unusable cells of one column."""
        if count:
            self._cells[column][fault] += int(count)

    def add_ragged_rows(self, count: int) -> None:
        """Count rows that do not have as many cells as the header."""
        self._ragged_rows += count

    def to_error(self, label: str) -> DataError:
        """Say what must be cleaned, by column and count."""
        parts = []
        if self._ragged_rows:
            verb = "does" if self._ragged_rows == 1 else "do"
            parts.append(f"{count_of(self._ragged_rows, 'row')} {verb} not have as many cells as the header")
        for name, counts in zip(self._names, self._cells, strict=True):
            not_numbers = {kind: counts[kind] for kind in Fault if counts[kind] and kind not in _OUT_OF_RANGE}
            out_of_range = {kind: counts[kind] for kind in Fault if counts[kind] and kind in _OUT_OF_RANGE}
            clauses = []
            if not_numbers:
                clauses.append(_describe(not_numbers, "is not a number", "are not numbers"))
            if out_of_range:
                clauses.append(_describe(out_of_range, "is out of range", "are out of range"))
            if clauses:
                parts.append(f"column {name!r}: " + " and ".join(clauses))
        return DataError(
            f"{label}: every cell of the job's columns must be a finite number; {'; '.join(parts)}. "
            f"Correct or leave out those rows, then run again."
        )


def count_of(count: int, noun: str) -> str:
    """Return '1 row' or '3 rows'."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _describe(kinds: dict[Fault, int], one: str, several: str) -> str:
    """Return '3 cells are not numbers (2 text, 1 empty)'."""
    total = sum(kinds.values())
    listed = ", ".join(f"{count} {kind.value}" for kind, count in kinds.items())
    return f"{count_of(total, 'cell')} {one if total == 1 else several} ({listed})"
