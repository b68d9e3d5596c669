"""A first look at a table, for whoever writes a job file: its columns' names, and of what kind their cells seem to be.

Names come from the header alone. Kinds are guessed from the cells of the writer's own table. No value leaves this
module but, if the writer asks for them, levels that many records have: levels are values of records, and only a person
knows whether they are public. Bounds are never guessed.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, cast

import numpy as np

from cloister.columns import Column
from cloister.data.cells import MISSING_TEXTS, read_texts
from cloister.data.csv_source import SEPARATORS
from cloister.data.faults import Faults
from cloister.data.opening import is_text
from cloister.errors import ConfigError

Guess = Literal["number", "boolean", "date", "levels", "id", "text", "empty"]

_MOST_HEADER_BYTES = 1 << 20
_ROWS = 20_000
_MOSTLY = 0.95
_FEW_LEVELS, _LEVEL_ROWS = 20, 20
_UNIQUE_ROWS = 50
_INDEX = re.compile(r"(|Unnamed: \d+|__index_level_\d+__)")
_ID = re.compile(r"(^|[\W_])(id|ids|uid|uuid|mrn|ssn|key|nr|no|number|code|patient|pseudonym)($|[\W_])", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Header:
    """The names of a table's columns.

    Attributes
    ----------
    names
        Without an index that pandas wrote.
    separator
        Of a CSV file, what separates its cells.
    """

    names: tuple[str, ...]
    separator: str | None = None


@dataclass(frozen=True, kw_only=True)
class ColumnLook:
    """What a column's cells seem to be.

    Attributes
    ----------
    name, guess
        The column's name, and the kind of its cells.
    has_gaps
        Whether cells are missing.
    levels
        Its values, if they are few, of which each is in many rows.
    decimal_commas
        Whether its numbers have decimal commas.
    """

    name: str
    guess: Guess
    has_gaps: bool
    levels: tuple[str, ...] = ()
    decimal_commas: bool = False


def read_header(path: Path) -> Header:
    """Read the column names of a table, and not one byte more of a CSV file: the rest are records.

    Raises
    ------
    ConfigError
        If there is no header. Its cells are not shown, because they may be a record.
    """
    if is_text(path):
        return _read_text_header(path)
    if path.is_dir() or path.suffix.lower() in (".parquet", ".pq", ".arrow", ".feather"):
        from cloister.data.arrow_source import read_names  # noqa: PLC0415 (pyarrow is optional)

        if not path.exists():
            raise ConfigError(f"the table must be readable; got {path}: No such file. Check the path.")
        return Header(names=_check_names(path, read_names(path)))
    raise ConfigError(f"the table must be a .csv or .tsv file (or .gz), Parquet or Arrow; got {path}. Convert it.")


def _read_text_header(path: Path) -> Header:
    try:
        # Without a buffer, readline reads byte by byte and stops at the end of the line.
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb", buffering=0) as file:
            raw = file.readline(_MOST_HEADER_BYTES)
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise ConfigError(f"the table must be readable; got {path}: {reason}. Check the path.") from None
    found: dict[str, list[str]] = {}
    signs = ("\t",) if path.name.lower().endswith((".tsv", ".tsv.gz")) else SEPARATORS
    for separator in signs:
        try:
            line = raw.decode("utf-8-sig").rstrip("\r\n")
            found[separator] = next(csv.reader([line], delimiter=separator, strict=True), [])
        except (UnicodeDecodeError, csv.Error):
            continue
    separator = max(found, key=lambda one: len(found[one]), default="")
    if not found or (len(found[separator]) <= 1 and len(found) < len(signs)):
        raise ConfigError(
            f"the first line of {path} must be a header in UTF-8 with closed quotes; it is not. Correct it."
        )
    return Header(names=_check_names(path, [cell.strip() for cell in found[separator]]), separator=separator)


def _check_names(path: Path, cells: Sequence[str]) -> tuple[str, ...]:
    """Refuse a first line that cannot be a header; the message has counts only."""
    numbers = sum(_is_number(name) for name in cells)
    if numbers:
        raise ConfigError(
            f"the first line of {path} must be a header; {numbers} of its {len(cells)} cells are numbers, "
            "so it may be a record. Add a line with the columns' names."
        )
    if not any(cells):
        raise ConfigError(f"{path} must start with a line of column names; the file is empty. Add one.")
    names = tuple(name for place, name in enumerate(cells) if place or not _INDEX.fullmatch(name))
    names = tuple(name for name in names if not name.startswith("__index_level_"))
    unusable = sum(not name or not name.isprintable() or len(name) > 200 for name in names)
    if unusable:
        raise ConfigError(
            f"the first line of {path} must name every column; {unusable} of {len(cells)} names are empty, "
            "too long or not printable. Correct the header."
        )
    if len(set(names)) < len(names):
        raise ConfigError(
            f"the columns of {path} must have different names; {len(names) - len(set(names))} repeat one. Rename them."
        )
    return names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def look_at_columns(path: Path, header: Header) -> list[ColumnLook]:
    """Guess what the cells of each column of one's own table are, from its first rows."""
    rows = _read_cells(path, header)
    cells: dict[str, list[str]] = {name: [] for name in header.names}
    for row in islice(rows, _ROWS):
        for name, cell in row.items():
            if name in cells:
                cells[name].append(cell)
    return [_guess(name, found) for name, found in cells.items()]


def _read_cells(path: Path, header: Header) -> Iterator[dict[str, str]]:
    """Yield rows as text by column; a row that cannot be read ends it, as the run will say what is wrong."""
    if header.separator is None:
        from cloister.data.arrow_source import read_rows  # noqa: PLC0415 (pyarrow is optional)

        yield from read_rows(path, header.names)
        return
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(cast("Iterable[str]", file), delimiter=header.separator)
        names = [name.strip() for name in next(reader, [])]
        try:
            for row in reader:
                if len(row) == len(names):
                    yield dict(zip(names, row, strict=True))
        except (UnicodeDecodeError, csv.Error, OSError, EOFError):
            return


def _guess(name: str, cells: Sequence[str]) -> ColumnLook:
    """Guess what one column is."""
    present = [cell.strip() for cell in cells if cell.strip().lower() not in MISSING_TEXTS]
    distinct = Counter(present)
    guess = _guess_kind(name, present, distinct)
    number = Column(name=name, low=0, high=1)
    return ColumnLook(
        name=name,
        guess=guess,
        has_gaps=len(present) < len(cells),
        levels=_list_levels(distinct) if guess == "levels" else (),
        decimal_commas=guess == "number" and not _mostly(present, number),
    )


def _guess_kind(name: str, present: Sequence[str], distinct: Counter[str]) -> Guess:
    """Return the first kind that nearly all cells are of."""
    number, date = Column(name=name, low=0, high=1), Column(name=name, low=0, high=1, kind="date")
    unique = len(distinct) == len(present) >= _UNIQUE_ROWS and not any(" " in cell for cell in present)
    identifies = unique or _ID.search(name) is not None
    if not present:
        return "empty"
    if _mostly(present, Column.boolean(name)):
        return "boolean"
    if _mostly(present, number) or _mostly(present, number, decimal=","):
        return "id" if identifies and all(cell.lstrip("+-").isdigit() for cell in present) else "number"
    if _mostly(present, date):
        return "date"
    few = len(distinct) <= _FEW_LEVELS and 5 * len(distinct) <= len(present)
    return "id" if identifies else "levels" if few else "text"


def _list_levels(distinct: Counter[str]) -> tuple[str, ...]:
    """Return the values that many rows have."""
    return tuple(sorted(level for level, count in distinct.items() if count >= _LEVEL_ROWS and level.isprintable()))


def _mostly(cells: Sequence[str], column: Column, *, decimal: str = ".") -> bool:
    """Return whether nearly all cells can be read as a column's."""
    return _share_of(cells, column, decimal=decimal) >= _MOSTLY


def _share_of(cells: Sequence[str], column: Column, *, decimal: str = ".") -> float:
    """Return which part of the cells can be read as a column's."""
    faults = Faults((column,))
    faults.begin(len(cells))
    return float(np.isfinite(read_texts(cells, column, 0, faults, decimal=decimal)).mean())
