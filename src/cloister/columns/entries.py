"""What stands in [columns], or in a caller's mapping, to columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cloister.columns.column import WHY_PUBLIC, Column, count_days, require_distinct, show_bounds
from cloister.errors import ConfigError
from cloister.refusals import KeyPath, quote_string, refuse, show_value, suggest


def parse_bounds(bounds: Mapping[str, Any] | None, *, names: Sequence[str] | None = None) -> tuple[Column, ...]:
    """Make columns from bounds as a job file or a caller writes them.

    Parameters
    ----------
    bounds
        For each column name a pair ``(low, high)`` of numbers or dates, a table as in a job file, such as
        ``{"low": 0, "high": 100, "weight": 2}`` or ``{"levels": ["f", "m"]}``, or a :class:`Column`.
    names
        The columns wanted, in the job's order; by default those of ``bounds``, in its order.

    Returns
    -------
    tuple of Column

    Raises
    ------
    ConfigError
        If a bound is missing (with the reason why it cannot come from the data), malformed or not finite.
    """
    bounds = {} if bounds is None else bounds
    if not isinstance(bounds, Mapping):
        raise ConfigError(
            f"columns must be a table from column names to bounds; got {type(bounds).__name__}. "
            f"Write: {show_bounds('age')}"
        )
    wanted = tuple(bounds) if names is None else tuple(names)
    missing = [name for name in wanted if name not in bounds]
    if missing or not wanted:
        listed = ", ".join(repr(name) for name in missing) or "any column"
        raise ConfigError(
            f"each column must have public bounds; got none for {listed}. {WHY_PUBLIC} "
            f"Write: {show_bounds(missing[0] if missing else 'age')}"
        )
    columns = tuple(_parse_entry(name, bounds[name]) for name in wanted)
    require_distinct(columns)
    return columns


def _parse_entry(name: str, entry: Any) -> Column:
    """Make one column from a pair, a table or a Column."""
    if isinstance(entry, Column):
        if entry.name != name:
            raise ConfigError(
                f"columns.{name} must hold the bounds of {name!r}; got those of {entry.name!r}. Use one name."
            )
        return entry
    if isinstance(entry, Sequence) and not isinstance(entry, str) and len(entry) == 2:
        first, second = ("from", "to") if isinstance(entry[0], datetime.date) else ("low", "high")
        entry = {first: entry[0], second: entry[1]}
    return parse_column(name, {} if entry is None else entry)


def parse_column(name: str, entry: object) -> Column:
    """Make one column from its table in a job file.

    Raises
    ------
    KeyedConfigError
        If it is not such a table.
    """
    path: KeyPath = ("columns", name)
    if not isinstance(entry, Mapping):
        refuse(path, "be a table of bounds", show_value(entry), f"Write: {show_bounds(name)}")
    first = next((key for key in entry if key in _READERS), "low")
    reader, keys = _READERS[first]
    for key in entry:
        if key not in _KNOWN:
            known = ", ".join((*keys, "weight"))
            refuse((*path, key), f"be a known key ({known})", quote_string(key), suggest(key, _KNOWN) or "Remove it.")
        if key not in (*keys, "weight"):
            what_to_do = f"A column is one of: {', '.join(_EXAMPLES)}."
            refuse((*path, key), f"be left out with {first}", show_value(entry[key]), what_to_do)
    missing = [key for key in keys if key not in entry]
    if missing:
        refuse_missing_bounds(path, name, f"no {' and no '.join(missing)}")
    return reader(name, entry, {"weight": entry["weight"]} if "weight" in entry else {})


def refuse_missing_bounds(path: KeyPath, name: str, got: str) -> None:
    """Refuse missing bounds, and say why they must be written by hand."""
    what_to_do = (
        f"{WHY_PUBLIC} Fill in low and high for column {name}, or from and to for dates, levels for a category, or "
        f"boolean = true. Write: {show_bounds(name)}"
    )
    refuse(path, "have public bounds", got, what_to_do)


Reader = Callable[[str, Mapping[str, Any], dict[str, Any]], Column]


def _read_number(name: str, entry: Mapping[str, Any], weight: dict[str, Any]) -> Column:
    return Column(name=name, low=entry["low"], high=entry["high"], **weight)


def _read_dates(name: str, entry: Mapping[str, Any], weight: dict[str, Any]) -> Column:
    path: KeyPath = ("columns", name)
    days = []
    for key in ("from", "to"):
        if not isinstance(entry[key], datetime.date):
            refuse((*path, key), "be a date", show_value(entry[key]), f"Write, without quotes: {key} = 2024-12-31")
        days.append(count_days(entry[key]))
    if days[0] >= days[1]:
        got = f"from = {entry['from']}, to = {entry['to']}"
        refuse((*path, "to"), "be later than from", got, "Swap them, or widen the bounds.")
    return Column(name=name, kind="date", low=days[0], high=days[1], **weight)


def _read_category(name: str, entry: Mapping[str, Any], weight: dict[str, Any]) -> Column:
    return Column(name=name, kind="category", levels=entry["levels"], **weight)


def _read_boolean(name: str, entry: Mapping[str, Any], weight: dict[str, Any]) -> Column:
    if entry["boolean"] is not True:
        what_to_do = "Write: boolean = true, or low and high for a number."
        refuse(("columns", name, "boolean"), "be true", show_value(entry["boolean"]), what_to_do)
    return Column(name=name, kind="boolean", **weight)


def _read_private(name: str, entry: Mapping[str, Any], weight: dict[str, Any]) -> Column:
    if entry["bounds"] != "private":
        what_to_do = 'Write: bounds = "private", or low and high.'
        refuse(("columns", name, "bounds"), 'be "private"', show_value(entry["bounds"]), what_to_do)
    return Column.unbounded(name, **weight)


_READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "low": (_read_number, ("low", "high")),
    "high": (_read_number, ("low", "high")),
    "from": (_read_dates, ("from", "to")),
    "to": (_read_dates, ("from", "to")),
    "levels": (_read_category, ("levels",)),
    "boolean": (_read_boolean, ("boolean",)),
    "bounds": (_read_private, ("bounds",)),
}
"""By the first key of a table that stands here, what reads it and which keys it must have."""
_KNOWN = (*_READERS, "weight")
_EXAMPLES = (
    "{ low = 0, high = 100 }",
    "{ from = 2015-01-01, to = 2024-12-31 }",
    '{ levels = ["a", "b"] }',
    "{ boolean = true }",
    '{ bounds = "private" }',
)
