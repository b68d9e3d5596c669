"""What a table reads from: a source of raw values, and how the job's columns are found in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

from cloister.columns import Column
from cloister.data.faults import Faults, count_of
from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray

Match = Literal["order", "name"]


class Source(Protocol):
    """One party's raw records, in original units and in the job's column order."""

    @property
    def label(self) -> str:
        """What a message calls this source: a path, or the kind of object."""

    @property
    def in_memory(self) -> bool:
        """Whether the records are in memory already; then the encoded ones are kept whatever their size."""

    @property
    def read_once(self) -> bool:
        """Whether a second reading is impossible."""

    def read(self, faults: Faults, most_rows: int) -> Iterator[FloatArray]:
        """Yield (n, d) arrays of at most ``most_rows`` rows; a cell that ``faults`` counted is NaN."""


def find_columns(header: Sequence[Any], columns: Sequence[Column], match: Match, label: str) -> tuple[int, ...]:
    """Return where each of the job's columns stands in a header.

    Only the job's own names are ever shown. What stands in the first line of a file may be a record.
    """
    if match not in ("order", "name"):
        raise ConfigError(f'match must be "order" or "name"; got {match!r}. Use match = "order".')
    names = [column.name for column in columns]
    counts = Counter(name for name in header if isinstance(name, str))
    missing = [name for name in names if not counts[name]]
    if missing:
        numbers = sum(_is_number(name) for name in header)
        hint = (
            "Its first line has one cell: the cells must be separated by commas."
            if len(header) == 1 and len(names) > 1
            else f"{numbers} of them are numbers: if the first line is a record, add a header line."
            if numbers
            else "Names are compared letter by letter."
        )
        raise DataError(
            f"{label}: the table must have the job's columns {_listed(names)}; {_listed(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not among its {count_of(len(header), 'column')}. {hint}"
        )
    twice = [name for name in names if counts[name] > 1]
    if twice:
        raise DataError(
            f"{label}: each of the job's columns must stand once in the table; got "
            f"{', '.join(f'{name!r} {counts[name]} times' for name in twice)}. Rename or drop the others."
        )
    positions = tuple(header.index(name) for name in names)
    if match == "order" and list(positions) != sorted(positions):
        found = [name for _, name in sorted(zip(positions, names, strict=True))]
        raise DataError(
            f"{label}: the job's columns must stand in the job's order {_listed(names)}; found "
            f'{_listed(found)}. Reorder them, or use match = "name", which takes columns by name.'
        )
    return positions


def _listed(names: Sequence[str]) -> str:
    """Return the names in quotes, with commas."""
    return ", ".join(repr(name) for name in names)


def _is_number(name: Any) -> bool:
    """Tell whether a header cell reads as a number."""
    try:
        float(name)
    except (TypeError, ValueError):
        return False
    return True
