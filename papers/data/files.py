"""Where the data sets are, and measurements of the authors' own code beside them."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray

ENVIRONMENT = "CLOISTER_DATA"
SOURCES = (
    f"Give their folder with --data or {ENVIRONMENT}. The six text files are public: iris and adult are from the UCI "
    "repository, lsun from FCPS, s1, birch2 and house from the clustering basic benchmark; the repository of "
    "FastLloyd's authors has them all."
)
"""Where to get the files of FastLloyd and the thesis."""
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"

Row = TypeVar("Row")


def find_data(given: Path | None = None) -> Path | None:
    """Return the folder of data sets: the one given, that of the environment, or ``shared/data`` beside the checkout.

    Raises
    ------
    ConfigError
        If a folder was named that is not there.
    """
    named = given or (Path(os.environ[ENVIRONMENT]) if os.environ.get(ENVIRONMENT) else None)
    if named is None:
        return _BESIDE if _BESIDE.is_dir() else None
    if not named.is_dir():
        raise ConfigError(f"--data or {ENVIRONMENT} must be a folder with data sets; {named} is not one. {SOURCES}")
    return named


def read_numbers(path: Path, *, records_min: int) -> FloatArray:
    """Read a table of numbers with blanks between them; what cannot be read is not quoted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file is an error below
            points = np.loadtxt(path, dtype=np.float64, ndmin=2)
    except (OSError, ValueError):
        raise DataError(
            f"{path} must be a table of numbers with blanks between them; it could not be read as one. "
            "See docs/reproduction-fastlloyd.md for what the files hold."
        ) from None
    if len(points) < records_min or not np.isfinite(points).all():
        raise DataError(
            f"{path} must hold at least {records_min} records of finite numbers; it does not. Replace the file."
        )
    return points


def read_measurements(path: Path, columns: str, convert: Callable[[dict[str, str]], Row]) -> tuple[Row, ...]:
    """Read a CSV file of measurements, none where there is no file; ``columns`` names what it must have."""
    if not path.is_file():
        return ()
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(convert(row) for row in csv.DictReader(file))
    except (KeyError, ValueError):
        raise DataError(
            f"{path} must have the columns {columns}, with numbers; it has not. Remove or replace it."
        ) from None
