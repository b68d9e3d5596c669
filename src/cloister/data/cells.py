"""From cells to doubles, one column at a time, counting what is not a usable number.

Each function has a fast path for a clean column, and a careful one that looks at single cells once something
is off.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.data.faults import EXACT_LIMIT, Fault, Faults
from cloister.records import FloatArray


def convert_text(cells: Sequence[str], column: int, faults: Faults) -> FloatArray:
    """Read decimal text, as a CSV file holds it."""
    joined = "".join(cells)
    # float() also takes '1_000' and the digits of every script; a data file with those is more likely broken.
    if joined.isascii() and "_" not in joined:
        try:
            values = np.array(list(map(float, cells)), dtype=np.float64)
        except ValueError:
            values = None  # nothing is raised from here: the exception quotes the cell
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
        with np.errstate(over="ignore"):  # a long double beyond the doubles becomes infinite, and is counted
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
    """Put values back between the empty cells."""
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
    """Take an integer that a double holds exactly."""
    return float(number) if abs(number) <= EXACT_LIMIT else Fault.LARGE_INTEGER


def _read_double(value: float) -> float | Fault:
    """Take a finite double."""
    if math.isnan(value):
        return Fault.NAN
    return Fault.INFINITE if math.isinf(value) else value
