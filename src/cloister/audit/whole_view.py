"""Everything that a run leaves behind, as one view: what does not follow from what was released is a leak.

The attacks of :mod:`~cloister.audit.attack` judge what is released. This one judges all the rest that somebody sees:
the result folder, the report, progress, errors and messages. Nothing is chosen by hand: whatever is there is flattened
into values by path.

**What is tested.** Let R be all values that were released with noise, and V the view. R costs what the card says. If V
is a function of R and of the secrets of the session (keys, pads), V is post-processing and costs nothing. So runs come
in pairs of neighbouring inputs, with the same secrets, fresh ones for each pair, and with noise that makes R equal:
the noise of one run is that of the other, less what the record adds. Then V must be equal, value by value. A value that
differs is known to whoever can recompute it with the record and without: the common seed lets any party do so.

A run is repeated as it was, too. What differs there (the time of day) cannot be judged, and is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from cloister.records import IntArray

Leaf = str | bytes | int | float | None
View = Mapping[str, Leaf]


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """What one session released.

    Attributes
    ----------
    drawn_by
        The number of a role whose noise is in every vector; None if roles sample it jointly.
    draws
        Which of that role's draws, from 0, is in each.
    vectors
        What was released, as whoever reads all of it reads it.
    given
        Released values whose noise is not among those draws.
    follows
        Which frames follow from what was released, to the last bit: all; those to parties, where what reaches the
        coordinator is masked and carries no noise; or none, where they are encrypted. Of the others only lengths do.
    """

    drawn_by: int | None
    draws: tuple[int, ...] = ()
    vectors: tuple[IntArray, ...] = field(default=(), repr=False)
    given: tuple[Any, ...] = field(default=(), repr=False)
    follows: Literal["all", "to parties", "none"]

    def find_shift(self, other: Released) -> tuple[int, IntArray] | None:
        """Return the first draw in which another session differs, and by how much; None if nothing differs.

        Later vectors may differ because of that one: what is asked follows from what was released before.
        """
        for draw, wanted, got in zip(self.draws, self.vectors, other.vectors, strict=False):
            if not np.array_equal(wanted, got):
                return draw, wanted - got
        return None


def flatten(value: Any, path: str) -> Iterator[tuple[str, Leaf]]:
    """Yield every value in nested ones, by its path; a collection's length is one, too, and so is a line of a text."""
    match value:
        case str() if "\n" in value:
            yield from flatten(value.splitlines(), path)
        case str() | bytes() | int() | float() | None:
            yield path, value
        case np.ndarray():
            yield f"{path}: shape", str(value.shape)
            yield from flatten(value.tolist(), path)
        case Mapping():
            yield f"{path}: length", len(value)
            for key, inner in value.items():
                yield from flatten(inner, f"{path}.{key}")
        case Sequence():
            yield f"{path}: length", len(value)
            for place, inner in enumerate(value):
                yield from flatten(inner, f"{path}[{place}]")
        case _:
            inside = _look_into(value)
            yield from [(path, repr(value))] if inside is None else flatten(inside, path)


def _look_into(value: Any) -> dict[str, Any] | None:
    """Return what is in an object, by name; None if it cannot be told."""
    if isinstance(value, BaseException):
        return {"class": type(value).__name__, "text": str(value)}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return None


@dataclass(frozen=True, kw_only=True)
class WholeViewReport:
    """What pairs of runs show.

    Attributes
    ----------
    pairs
        How many there were.
    values
        How many values the largest view had.
    unjudged
        Values that differ when a run is repeated.
    exposed
        Values that differ with the record although everything that was released is the same.
    """

    pairs: int
    values: int
    unjudged: tuple[str, ...]
    exposed: tuple[str, ...]

    @property
    def violates(self) -> bool:
        """Whether something says more than what was released."""
        return bool(self.exposed)

    def text(self) -> str:
        """Plain words."""
        if not self.pairs:
            return (
                "Everything else that a run leaves behind was not compared: no two runs released the same, or the "
                "protocol does not say what it released."
            )
        looked = (
            "Everything else that a run leaves behind (result folder, report, progress, errors, messages) was compared "
            f"in {self.pairs} pairs of runs that released the same on neighbouring inputs"
        )
        if not self.exposed:
            unjudged = f" Not judged, since it changes anyway: {', '.join(self.unjudged)}." if self.unjudged else ""
            return f"{looked}: nothing differs.{unjudged}"
        shown = ", ".join(self.exposed[:_MOST_SHOWN])
        more = len(self.exposed) - _MOST_SHOWN
        return f"{looked}. IT TELLS MORE THAN WAS RELEASED: {shown}" + (f" and {more:,} more." if more > 0 else ".")


_MOST_SHOWN = 10


def compare_views(pairs: Sequence[tuple[View, View, View]]) -> WholeViewReport:
    """Compare the views of pairs of runs: without the record, the same again, and with it."""
    unjudged, exposed, values = dict[str, None](), dict[str, None](), 0
    for without, again, present in pairs:
        values = max(values, len(without), len(present))
        unjudged |= dict.fromkeys(_list_differences(without, again))
        exposed |= dict.fromkeys(_list_differences(without, present))
    return WholeViewReport(
        pairs=len(pairs),
        values=values,
        unjudged=tuple(unjudged),
        exposed=tuple(path for path in exposed if path not in unjudged),
    )


def _list_differences(one: View, other: View) -> Iterator[str]:
    """Yield the paths of values that differ, or that only one of two views has."""
    missing = object()
    for path in dict.fromkeys((*one, *other)):
        if one.get(path, missing) != other.get(path, missing):
            yield path
