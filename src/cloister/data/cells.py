"""From cells to doubles, one column at a time; what cannot be used is counted by column and kind, and never shown.

A table is read to its end before it is refused, so that one message describes everything that needs cleaning. Only the
counts leave the reader: exceptions of NumPy, Arrow or the csv module quote the offending cell, so they are never
re-raised, chained or shown. Each conversion has a fast path for clean columns, and a careful one that looks at single
cells once something is wrong.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.columns import Column
from cloister.errors import DataError
from cloister.records import FloatArray

EXACT_LIMIT = 2**53  # beyond it, doubles no longer distinguish neighbouring integers


class Fault(Enum):
    """Why a cell cannot be used; the value is the wording in messages."""

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
        """Return the error that says what must be cleaned, by column and count."""
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


def convert_text(cells: Sequence[str], column: int, faults: Faults) -> FloatArray:
    """Read decimal text, as a CSV file holds it."""
    joined = "".join(cells)
    # float() also accepts '1_000' and the digits of every script; a data file with those is more likely broken.
    if joined.isascii() and "_" not in joined:
        try:
            values = np.array(list(map(float, cells)), dtype=np.float64)
        except ValueError:
            values = None  # nothing is raised here: the exception quotes the cell
        if values is not None and bool((np.abs(values) < EXACT_LIMIT).all()):
            return values
    return _collect((_read_text(cell) for cell in cells), len(cells), column, faults)


def convert_array(
    cells: NDArray[Any], column: int, faults: Faults, *, empty: NDArray[np.bool_] | None = None
) -> FloatArray:
    """Read a one-dimensional NumPy array of any type; ``empty`` marks cells that hold nothing."""
    kind = cells.dtype.kind
    empty = np.zeros(cells.shape, dtype=np.bool_) if empty is None else empty
    faults.add_cells(column, Fault.EMPTY, _count(empty))
    if kind in "OUS":
        values = _collect(map(_read_object, cells[~empty].tolist()), _count(~empty), column, faults)
        return _spread(values, empty)
    if kind == "f":
        with np.errstate(over="ignore"):  # a long double beyond the range of doubles becomes infinite and is counted
            values = cells.astype(np.float64)
        finite = np.isfinite(values) | empty
        if not finite.all():
            faults.add_cells(column, Fault.NAN, _count(np.isnan(values) & ~empty))
            faults.add_cells(column, Fault.INFINITE, _count(np.isinf(values) & ~empty))
    elif kind in "iu":
        values = cells.astype(np.float64)
        if cells.dtype.itemsize == 8:
            large = cells > EXACT_LIMIT if kind == "u" else (cells > EXACT_LIMIT) | (cells < -EXACT_LIMIT)
            faults.add_cells(column, Fault.LARGE_INTEGER, _count(large & ~empty))
    else:
        absent = empty | np.isnat(cells) if kind in "mM" else empty
        faults.add_cells(column, Fault.EMPTY, _count(absent & ~empty))
        fault = {"b": Fault.BOOLEAN, "m": Fault.DATE, "M": Fault.DATE}.get(kind, Fault.OTHER)
        faults.add_cells(column, fault, _count(~absent))
        return np.full(cells.shape, np.nan)
    if empty.any():
        values[empty] = np.nan
    return values


def _count(cells: NDArray[np.bool_]) -> int:
    """Count the true cells."""
    return int(np.count_nonzero(cells))


def _spread(values: FloatArray, empty: NDArray[np.bool_]) -> FloatArray:
    """Put values back around the empty cells."""
    out = np.full(empty.shape, np.nan)
    out[~empty] = values
    return out


def _collect(readings: Iterable[float | Fault], count: int, column: int, faults: Faults) -> FloatArray:
    """Gather readings, each a double or a fault, and count the faults."""
    values = np.full(int(count), np.nan)
    for index, reading in enumerate(readings):
        if isinstance(reading, Fault):
            faults.add_cells(column, reading)
        else:
            values[index] = reading
    return values


def _read_text(cell: str) -> float | Fault:
    """Read one cell of text."""
    text = cell.strip()
    if not text:
        return Fault.EMPTY
    if not text.isascii() or "_" in text:
        return Fault.TEXT
    try:
        value = float(text)
    except ValueError:
        return Fault.TEXT
    if abs(value) >= EXACT_LIMIT and text.lstrip("+-").isdigit() and math.isfinite(value):
        return _read_integer(int(text))
    return _read_double(value)


def _read_object(cell: object) -> float | Fault:  # noqa: PLR0911
    """Read one Python object; the order matters, as bool is an int and a datetime a date."""
    if cell is None or type(cell).__name__ in (
        "NAType",
        "NaTType",
    ):  # pandas' marks; pandas may not be installed
        return Fault.EMPTY
    if isinstance(cell, str):
        return Fault.TEXT if cell.strip() else Fault.EMPTY
    if isinstance(cell, bool | np.bool_):
        return Fault.BOOLEAN
    if isinstance(cell, int | np.integer):
        return _read_integer(int(cell))
    if isinstance(cell, Real | Decimal):
        try:
            return _read_double(float(cell))
        except OverflowError:
            return Fault.INFINITE
        except ValueError:  # a signalling NaN of Decimal
            return Fault.NAN
    if isinstance(cell, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64):
        return Fault.DATE
    if isinstance(cell, list | tuple | set | frozenset | dict | np.ndarray):
        return Fault.NESTED
    return Fault.TEXT if isinstance(cell, bytes) else Fault.OTHER


def _read_integer(number: int) -> float | Fault:
    """Accept an integer that a double holds exactly."""
    return float(number) if abs(number) <= EXACT_LIMIT else Fault.LARGE_INTEGER


def _read_double(value: float) -> float | Fault:
    """Accept a finite double."""
    if math.isnan(value):
        return Fault.NAN
    return Fault.INFINITE if math.isinf(value) else value
