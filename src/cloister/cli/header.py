"""The header of a CSV file, and not one byte more: what follows are records."""

from __future__ import annotations

import csv
from pathlib import Path

from cloister.errors import ConfigError

_MOST_BYTES = 1 << 20


def read_header(path: Path) -> tuple[str, ...]:
    """Read the column names of a CSV (or, with tabs, TSV) file.

    Raises
    ------
    ConfigError
        If the first line is not a header. Its cells are not shown, because they may be a record.
    """
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise ConfigError(f"the table must be a .csv or .tsv file; got {path}. Write the job by hand for others.")
    try:
        # Without a buffer, readline takes byte after byte and stops at the end of the line.
        with path.open("rb", buffering=0) as file:
            raw = file.readline(_MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"the table must be readable; got {path}: {error.strerror}. Check the path.") from None
    try:
        line = raw.decode("utf-8-sig").rstrip("\r\n")
        cells = next(csv.reader([line], delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        raise ConfigError(
            f"the first line of {path} must be a header in UTF-8 with closed quotes; it is not. Correct it."
        ) from None
    names = tuple(cell.strip() for cell in cells)
    _check_names(path, names, line)
    return names


def _check_names(path: Path, names: tuple[str, ...], line: str) -> None:
    """Refuse a first line that cannot be a header; counts only."""
    numbers = sum(_is_number(name) for name in names)
    if numbers:
        raise ConfigError(
            f"the first line of {path} must be a header; {numbers} of its {len(names)} cells are numbers, "
            "so it may be a record. Add a line with the columns' names."
        )
    unusable = sum(not name or not name.isprintable() or len(name) > 200 for name in names)
    if not names:
        raise ConfigError(f"{path} must begin with a line of column names; the file is empty. Add one.")
    if unusable:
        raise ConfigError(
            f"the first line of {path} must name every column; {unusable} of {len(names)} names are empty, "
            "too long or not printable. Correct the header."
        )
    if len(set(names)) < len(names):
        raise ConfigError(
            f"the columns of {path} must have different names; {len(names) - len(set(names))} repeat one. Rename them."
        )
    if len(names) == 1 and any(sign in line for sign in ";\t|"):
        raise ConfigError(f"the columns of {path} must be separated by commas; other signs were found. Convert it.")


def _is_number(cell: str) -> bool:
    """Tell whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
