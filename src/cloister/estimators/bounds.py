"""Bounds of columns, as an estimator takes them: public, or found privately; never taken from the data unpaid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloister.columns import Column
from cloister.errors import ConfigError

_HOW = (
    "Give bounds = (low, high) for all columns, a pair for each column, or a mapping from column names to pairs; "
    '"private" stands for a pair that nobody knows. Choose them from what is known about each quantity; values outside '
    "are clipped."
)
PRIVATE = "private"


def make_columns(bounds: Any, names: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of a job.

    Parameters
    ----------
    bounds
        A pair of numbers for all columns, one pair for each, or a mapping from names to pairs. ``"private"`` stands for
        a pair, or for all; so does None. A part of the budget then finds them, and a fit with too few records ends
        without a result.
    names
        The columns, in order.

    Raises
    ------
    ConfigError
        If they are not of these columns.
    """
    if bounds is None or isinstance(bounds, str):
        if bounds not in (None, PRIVATE):
            raise ConfigError(f'bounds must be pairs of numbers, or "private"; got {bounds!r}. {_HOW}')
        return tuple(Column.unbounded(name) for name in names)
    return tuple(map(_make_column, names, _list_pairs(bounds, names)))


def _list_pairs(bounds: Any, names: Sequence[str]) -> list[Any]:
    """Return the bounds of each column, in order."""
    if isinstance(bounds, Mapping):
        missing = [name for name in names if name not in bounds]
        unknown = [str(name) for name in bounds if name not in names]
        if missing or unknown:
            got = f"none for {missing[0]!r}" if missing else f"some for {unknown[0]!r}, which is no column"
            raise ConfigError(f"bounds must name each of the {len(names)} columns and no other; got {got}. {_HOW}")
        return [bounds[name] for name in names]
    pairs = list(bounds)
    if len(pairs) == 2 and all(isinstance(bound, int | float | np.number) for bound in pairs):
        return [pairs] * len(names)
    if len(pairs) != len(names):
        raise ConfigError(f"bounds must be a pair, or one for each of {len(names)} columns; got {len(pairs)}. {_HOW}")
    return pairs


def _make_column(name: str, pair: Any) -> Column:
    if isinstance(pair, str) and pair == PRIVATE:
        return Column.unbounded(name)
    numbers = [] if isinstance(pair, str) else list(pair)
    if len(numbers) != 2:
        raise ConfigError(f"bounds of {name!r} must be a pair of numbers; got {len(numbers)}. {_HOW}")
    return Column(name=name, low=float(numbers[0]), high=float(numbers[1]))
