"""From cells to doubles, one column at a time, by the column's kind; what cannot be used is counted in `Faults`.

A boolean becomes 0 or 1, a date the days since 1970, a category the position of its level, a missing cell NaN. Only
counts leave the reader: exceptions of NumPy, Arrow or the csv module quote the offending cell, so they are never
re-raised, chained or shown. Numbers have a fast path for clean columns, and a careful one that looks at single cells
once something is wrong.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.columns import UNKNOWN_LEVEL, Column, count_days
from cloister.data.faults import Fault, Faults
from cloister.records import FloatArray

EXACT_LIMIT = 2**53  # beyond it, doubles no longer distinguish neighbouring integers
MISSING_TEXTS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"})
"""What programs write, in lower case, for a cell that holds nothing; "nan" alone is counted as NaN."""
_BOOLEANS = dict.fromkeys(("0", "false", "f", "no", "n"), 0.0) | dict.fromkeys(("1", "true", "t", "yes", "y"), 1.0)
_DOTTED_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")

Reading = float | Fault


def read_texts(cells: Sequence[str], column: Column, place: int, faults: Faults, *, decimal: str = ".") -> FloatArray:
    """Read the text of a column's cells, as a CSV file holds them."""
    if column.kind != "number":
        return _collect(_read_distinct(cells, _text_reader(column)), len(cells), place, faults)
    joined = "".join(cells)
    # float() also accepts '1_000' and the digits of every script; a data file with those is more likely broken.
    if joined.isascii() and "_" not in joined and (decimal == "." or "." not in joined):
        try:
            values = np.array(list(map(float, cells if decimal == "." else (c.replace(decimal, ".") for c in cells))))
        except ValueError:
            values = None  # nothing is raised here: the exception quotes the cell
        if values is not None and bool((np.abs(values) < EXACT_LIMIT).all()):
            return values
    return _collect((_read_number(cell, decimal) for cell in cells), len(cells), place, faults)


def read_array(
    cells: NDArray[Any], column: Column, place: int, faults: Faults, *, empty: NDArray[np.bool_] | None = None
) -> FloatArray:
    """Read a one-dimensional NumPy array of any type; ``empty`` marks cells that hold nothing."""
    empty = np.zeros(cells.shape, dtype=np.bool_) if empty is None else empty
    if column.kind == "number" and cells.dtype.kind not in "OUS":
        faults.add(place, Fault.EMPTY, np.flatnonzero(empty))
        return _read_numbers(cells, place, faults, empty)
    if cells.dtype.kind == "M":
        cells = cells.astype("M8[us]")  # which become Python's dates
    listed = [None if nothing else cell for cell, nothing in zip(cells.tolist(), empty.tolist(), strict=True)]
    readings = map(_read_object, listed) if column.kind == "number" else _read_distinct(listed, _object_reader(column))
    return _collect(readings, len(listed), place, faults)


def _read_numbers(cells: NDArray[Any], place: int, faults: Faults, empty: NDArray[np.bool_]) -> FloatArray:
    """Read an array of one machine type as numbers."""
    kind = cells.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore"):  # a long double beyond the range of doubles becomes infinite and is counted
            values = cells.astype(np.float64)
        faults.add(place, Fault.NAN, np.flatnonzero(np.isnan(values) & ~empty))
        faults.add(place, Fault.INFINITE, np.flatnonzero(np.isinf(values) & ~empty))
        values[~np.isfinite(values)] = np.nan
    elif kind in "iu":
        values = cells.astype(np.float64)
        if cells.dtype.itemsize == 8:
            large = cells > EXACT_LIMIT if kind == "u" else (cells > EXACT_LIMIT) | (cells < -EXACT_LIMIT)
            faults.add(place, Fault.LARGE_INTEGER, np.flatnonzero(large & ~empty))
    else:
        absent = empty | np.isnat(cells) if kind in "mM" else empty
        faults.add(place, Fault.EMPTY, np.flatnonzero(absent & ~empty))
        fault = {"b": Fault.BOOLEAN, "m": Fault.DATE, "M": Fault.DATE}.get(kind, Fault.OTHER)
        faults.add(place, fault, np.flatnonzero(~absent))
        return np.full(cells.shape, np.nan)
    if empty.any():
        values[empty] = np.nan
    return values


def _collect(readings: Iterable[Reading], count: int, place: int, faults: Faults) -> FloatArray:
    """Gather readings, each a double or a fault, and count the faults."""
    values = np.full(int(count), np.nan)
    wrong: dict[Fault, list[int]] = {}
    for index, reading in enumerate(readings):
        if isinstance(reading, Fault):
            wrong.setdefault(reading, []).append(index)
        else:
            values[index] = reading
    for fault, cells in wrong.items():
        faults.add(place, fault, cells)
    return values


def _read_distinct(cells: Iterable[object], read: Callable[[Any], Reading]) -> Iterable[Reading]:
    """Read cells of which many are equal; 1, 1.0 and true are equal, but not of one type."""
    known: dict[object, Reading] = {}
    for cell in cells:
        key = cell if isinstance(cell, str) else (type(cell), cell)
        try:
            reading = known.get(key)
        except TypeError:  # a list, say, cannot be a key
            yield Fault.NESTED
            continue
        if reading is None:
            reading = known[key] = read(cell)
        yield reading


def _text_reader(column: Column) -> Callable[[str], Reading]:
    """Return what reads the text of a boolean, a date or a level."""
    if column.kind == "boolean":
        return _read_boolean
    if column.kind == "date":
        return _read_date
    places = {level: float(place) for place, level in enumerate(column.levels)}

    def read(cell: str) -> Reading:
        text = cell.strip()
        if text in places:
            return places[text]
        return _missing(text) or UNKNOWN_LEVEL

    return read


def _object_reader(column: Column) -> Callable[[object], Reading]:
    """Return what reads a Python object as a boolean, a date or a level."""
    read_text = _text_reader(column)

    def read(cell: object) -> Reading:
        found = _read_object(cell)
        if isinstance(cell, str):
            return read_text(cell)
        if found in (Fault.EMPTY, Fault.NAN, Fault.NESTED, Fault.OTHER) or isinstance(cell, bytes):
            return found
        if column.kind == "date":
            return count_days(cell) if isinstance(cell, datetime.date) else _or_number(found)
        text = str(cell).lower() if isinstance(cell, bool | np.bool_) else str(cell)
        if isinstance(found, float) and found.is_integer() and abs(found) < EXACT_LIMIT:
            text = str(int(found))  # a level "1" is also 1.0
        reading = read_text(text)
        return _or_number(found) if reading is Fault.TEXT else reading

    return read


def _or_number(found: Reading) -> Fault:
    """Return why a cell of a boolean or a date is unusable: it may be a number."""
    return found if isinstance(found, Fault) else Fault.NUMBER


def _missing(text: str) -> Fault | None:
    """Return EMPTY or NAN for the text of a cell that holds nothing."""
    lowered = text.lower()
    if lowered not in MISSING_TEXTS:
        return None
    return Fault.NAN if lowered == "nan" else Fault.EMPTY


def _read_boolean(cell: str) -> Reading:
    """Read one cell of text as 0 or 1."""
    text = cell.strip().lower()
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    fault = _missing(text) or _read_number(text, ".")
    return fault if isinstance(fault, Fault) else _BOOLEANS.get(f"{fault:g}", Fault.NUMBER)


def _read_date(cell: str) -> Reading:
    """Read 2024-12-31, with a time or not, or 31.12.2024; 12/31/2024 could be another day elsewhere."""
    text = cell.strip()
    dotted = _DOTTED_DATE.fullmatch(text)
    try:
        if dotted:
            day, month, year = map(int, dotted.groups())
            return count_days(datetime.date(year, month, day))
        return count_days(datetime.datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        pass
    fault = _missing(text) or _read_number(text, ".")
    return fault if isinstance(fault, Fault) else Fault.NUMBER


def _read_number(cell: str, decimal: str) -> Reading:
    """Read one cell of text as a number."""
    text = cell.strip()
    fault = _missing(text)
    if fault is not None:
        return fault
    if not text.isascii() or "_" in text or (decimal != "." and "." in text):
        return Fault.TEXT
    try:
        value = float(text if decimal == "." else text.replace(decimal, "."))
    except ValueError:
        return Fault.COMMA if decimal == "." and _COMMA_NUMBER.fullmatch(text) else _name_text(text)
    if abs(value) >= EXACT_LIMIT and text.lstrip("+-").isdigit() and math.isfinite(value):
        return _read_integer(int(text))
    return _read_double(value)


def _name_text(text: str) -> Fault:
    """Say what a text is that is not a number."""
    if text.lower() in ("true", "false", "yes", "no"):
        return Fault.BOOLEAN
    return Fault.DATE if text[:4].isdigit() and not isinstance(_read_iso(text), Fault) else Fault.TEXT


def _read_iso(text: str) -> Reading:
    try:
        return count_days(datetime.datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return Fault.TEXT


def _read_object(cell: object) -> Reading:  # noqa: PLR0911
    """Read one Python object as a number; the order matters, as bool is an int and a datetime a date."""
    if cell is None or type(cell).__name__ in (
        "NAType",
        "NaTType",
    ):  # pandas' marks; pandas may not be installed
        return Fault.EMPTY
    if isinstance(cell, str):
        return Fault.TEXT if _missing(cell.strip()) is None else Fault.EMPTY
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


def _read_integer(number: int) -> Reading:
    """Accept an integer that a double holds exactly."""
    return float(number) if abs(number) <= EXACT_LIMIT else Fault.LARGE_INTEGER


def _read_double(value: float) -> Reading:
    """Accept a finite double."""
    if math.isnan(value):
        return Fault.NAN
    return Fault.INFINITE if math.isinf(value) else value
