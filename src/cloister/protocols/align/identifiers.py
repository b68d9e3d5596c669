"""From cells of an ID column to bytes: the same bytes at all parties if and only if two IDs are equal.

Messages, which only the party sees, say which rows are at fault, from 1 and without the header; never their content.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import Enum

import numpy as np

from cloister.data.persons import is_missing
from cloister.errors import DataError
from cloister.protocols.align.terms import NormalForm

_ROWS_SHOWN = 5
_INTEGER = re.compile(r"([+-]?)0*([0-9]+)", flags=re.ASCII)


class _Fault(Enum):
    """Why a cell is not a valid ID: the wording in messages, and what to do."""

    EMPTY = ("empty", "Give every row an ID, or leave those rows out.")
    BLANKS = (
        "with blanks at either end",
        "Remove them, or trim at all parties (--trim, or id_trim = true in a vertical job).",
    )
    INVISIBLE = ("with invisible characters", "Remove them: they would make equal IDs differ.")
    NOT_TEXT = (
        "neither text nor a whole number",
        "Store the IDs as text. Whole numbers in a column with gaps are often stored as decimal fractions.",
    )
    NOT_INTEGER = ("not a whole number", "Correct them, or compare IDs as text at all parties (--form text).")
    REPEATED = ("with the ID of an earlier row", "Keep one row for each ID.")


def normalise_ids(cells: Iterable[object], form: NormalForm, *, label: str, column: str) -> list[bytes]:
    """Return each row's ID in normal form.

    Parameters
    ----------
    cells
        Text, whole numbers or bytes, in the order of the rows.
    form
        When two IDs are equal; agreed with the other parties.
    label, column
        What messages call the table and the column.

    Raises
    ------
    DataError
        If a cell is not a valid ID, or two rows have the same ID. Names rows and reasons, never a cell.
    """
    ids: list[bytes] = []
    faults: dict[_Fault, list[int]] = {}
    first_rows: set[bytes] = set()
    for row, cell in enumerate(cells, start=1):
        found = _normalise(cell, form)
        if not isinstance(found, _Fault) and found in first_rows:
            found = _Fault.REPEATED
        if isinstance(found, _Fault):
            faults.setdefault(found, []).append(row)
        else:
            first_rows.add(found)
            ids.append(found)
    if faults:
        listed = "; ".join(
            f"{_count_cells(rows)} {fault.value[0]} ({_show_rows(rows)})" for fault, rows in faults.items()
        )
        raise DataError(
            f"{label}: every row must have its own ID in column {column!r}; got {listed}. "
            + " ".join(fault.value[1] for fault in faults)
        )
    return ids


def _count_cells(rows: list[int]) -> str:
    """Return '1 cell' or '3 cells'."""
    return "1 cell" if len(rows) == 1 else f"{len(rows)} cells"


def _show_rows(rows: list[int]) -> str:
    """Return 'row 4' or 'rows 4, 9 and 3 more'."""
    shown = ", ".join(str(row) for row in rows[:_ROWS_SHOWN])
    more = len(rows) - _ROWS_SHOWN
    return f"row{'s' if len(rows) > 1 else ''} {shown}" + (f" and {more} more" if more > 0 else "")


def _normalise(cell: object, form: NormalForm) -> bytes | _Fault:  # noqa: PLR0911
    """Return one cell's normal form, or what is wrong with it."""
    if is_missing(cell):
        return _Fault.EMPTY
    if form.kind == "raw":
        raw = cell.encode(errors="surrogatepass") if isinstance(cell, str) else cell
        return (bytes(raw) or _Fault.EMPTY) if isinstance(raw, bytes | bytearray) else _Fault.NOT_TEXT
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return str(int(cell)).encode()
    if not isinstance(cell, str):
        return _Fault.NOT_TEXT
    text = cell.strip()
    if not text:
        return _Fault.EMPTY
    if text != cell and not form.trim:
        return _Fault.BLANKS
    return _normalise_integer(text) if form.kind == "integer" else _normalise_text(text, form)


def _normalise_integer(text: str) -> bytes | _Fault:
    """Strip a plus sign and leading zeros; as text, because Python limits the digits that it converts."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return _Fault.NOT_INTEGER
    sign = "-" if match[1] == "-" and match[2] != "0" else ""
    return (sign + match[2]).encode()


def _normalise_text(text: str, form: NormalForm) -> bytes | _Fault:
    """Normalise equal-looking text: NFC and, if agreed, without case."""
    if not text.isprintable():
        return _Fault.INVISIBLE
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if form.ignore_case:
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())
    return text.encode()
