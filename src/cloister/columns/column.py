"""Columns: what people have. Numbers with public bounds, booleans, dates, and categories with public levels.

Every party must scale its records in the same way, so bounds and levels are part of the job and everyone sees them.
They are therefore chosen from what is known about the quantity (an age lies in 0..120), never computed from the
records.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cloister.errors import ConfigError
from cloister.refusals import KeyPath, check_number, check_text, quote_key, refuse, show_value

Kind = Literal["number", "boolean", "date", "category"]

OTHER = "other"
"""The level that takes the values that are not among the levels, if it is one of them."""
LEVELS_MOST = 1000
WEIGHT_LEAST, WEIGHT_MOST = 1e-3, 1e3
MAGNITUDE_MOST = 2.0**44
"""Values beyond, where nobody knows bounds, are taken for this."""
EPOCH = datetime.date(1970, 1, 1)
"""Dates are counted in days from here."""
WHY_PUBLIC = (
    "The smallest and largest values of a column are two people's records, so they are not "
    "public and Cloister does not take them from the data. Choose them from what is known about the quantity; values "
    "outside are clipped."
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the job: a number as it stands here; `boolean`, `dates` and `category` make the other kinds.

    Parameters
    ----------
    name
        The column's name in every party's table.
    low, high
        Public bounds in original units, low < high; of dates, in days since 1970.
    weight
        How much a difference in this column counts beside the others; only ratios matter.
    kind
        What its cells are.
    levels
        Of a category: its public values, as text. With the level "other", all other values are that one.
    bounds
        With "private" nobody knows bounds, and a part of the budget finds them; low and high are left out.
    """

    name: str
    low: float = math.nan
    high: float = math.nan
    weight: float = 1.0
    kind: Kind = "number"
    levels: tuple[str, ...] = ()
    bounds: Literal["public", "private"] = "public"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError(f"a column must have a name; got {self.name!r}. Write the name in the table's header.")
        path: KeyPath = ("columns", self.name)
        if self.kind == "category":
            object.__setattr__(self, "levels", _check_levels((*path, "levels"), self.levels))
        if self.kind in ("boolean", "category"):
            low, high = 0.0, 1.0
        elif self.bounds == "private":
            low, high = -MAGNITUDE_MOST, MAGNITUDE_MOST
        else:
            low, high = check_bounds(path, self.low, self.high)
        weight = _check_number((*path, "weight"), self.weight)
        if not WEIGHT_LEAST <= weight <= WEIGHT_MOST:
            must = f"be from {WEIGHT_LEAST:g} to {WEIGHT_MOST:g}"
            refuse((*path, "weight"), must, show_value(self.weight), "Leave out a column that should not count.")
        for field, value in (("low", low), ("high", high), ("weight", weight)):
            object.__setattr__(self, field, value)

    @classmethod
    def boolean(cls, name: str, *, weight: float = 1.0) -> Column:
        """Make a column of 0 and 1, false and true, or no and yes."""
        return cls(name=name, kind="boolean", weight=weight)

    @classmethod
    def dates(cls, name: str, first: datetime.date, last: datetime.date, *, weight: float = 1.0) -> Column:
        """Make a column of dates between two public ones."""
        return cls(name=name, kind="date", low=count_days(first), high=count_days(last), weight=weight)

    @classmethod
    def category(cls, name: str, levels: Sequence[str], *, weight: float = 1.0) -> Column:
        """Make a column of a few public values."""
        return cls(name=name, kind="category", levels=tuple(levels), weight=weight)

    @classmethod
    def unbounded(cls, name: str, *, weight: float = 1.0) -> Column:
        """Make a column of numbers whose bounds nobody knows."""
        return cls(name=name, bounds="private", weight=weight)

    def list_agreed(self) -> dict[str, Any]:
        """Return what the parties agree on of this column, for digests and files; a plain number as it always was."""
        agreed: dict[str, Any] = {"name": self.name, "low": self.low, "high": self.high}
        extra: dict[str, tuple[Any, Any]] = {
            "weight": (self.weight, 1.0),
            "kind": (self.kind, "number"),
            "levels": (self.levels, ()),
            "bounds": (self.bounds, "public"),
        }
        return agreed | {key: value for key, (value, usual) in extra.items() if value != usual}


def count_days(moment: datetime.date) -> float:
    """Return the days from 1970 to a date, or to a time on it (in UTC, if it has a zone)."""
    if not isinstance(moment, datetime.datetime):
        return float((moment - EPOCH).days)
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return (moment - datetime.datetime(EPOCH.year, EPOCH.month, EPOCH.day)) / datetime.timedelta(days=1)


def show_date(days: float) -> str:
    """Return the date that is so many days after 1970."""
    return str(EPOCH + datetime.timedelta(days=round(days)))


def show_bounds(name: str) -> str:
    """Return an example of what to write for a column."""
    return f"{quote_key(name)} = {{ low = 0, high = 100 }}"


def require_distinct(columns: Sequence[Column]) -> None:
    """Refuse an empty list of columns, and a name that occurs twice."""
    if not columns:
        raise ConfigError(f"a job must have at least one column with public bounds; got none. {WHY_PUBLIC}")
    twice = sorted(name for name, times in Counter(column.name for column in columns).items() if times > 1)
    if twice:
        raise ConfigError(f"column names must differ; got {', '.join(map(repr, twice))} twice. Rename or drop one.")


def check_bounds(path: KeyPath, low: object, high: object) -> tuple[float, float]:
    """Return public bounds, or refuse what are not two finite numbers with low < high."""
    low_number, high_number = _check_number((*path, "low"), low), _check_number((*path, "high"), high)
    if low_number == high_number:
        refuse((*path, "high"), "be greater than low", f"low = high = {show_value(low)}", "Widen the bounds.")
    if low_number > high_number:
        got = f"low = {show_value(low)}, high = {show_value(high)}"
        refuse((*path, "high"), "be greater than low", got, "Swap them.")
    # Two finite bounds can differ by more than the largest double.
    if not math.isfinite(high_number - low_number):
        refuse(path, "have bounds whose difference is a finite double", "bounds too far apart", "Narrow them.")
    return low_number, high_number


def _check_number(path: KeyPath, value: object) -> float:
    return check_number(path, value.item() if isinstance(value, np.generic) else value)


def _check_levels(path: KeyPath, levels: object) -> tuple[str, ...]:
    """Return levels as text, or refuse what are not several different ones."""
    if not isinstance(levels, list | tuple):
        refuse(path, "be a list", show_value(levels), 'Write its values: levels = ["a", "b"]')
    if not 2 <= len(levels) <= LEVELS_MOST:
        refuse(path, f"be 2 to {LEVELS_MOST} values", str(len(levels)), "A column with one value tells nothing apart.")
    texts = []
    for place, level in enumerate(levels):
        text = str(level) if isinstance(level, int) and not isinstance(level, bool) else level
        check_text((*path, place), text, longest=200)
        if text in texts:
            refuse((*path, place), "be named once", show_value(level), "Remove it.")
        texts.append(text)
    return tuple(texts)
