"""Bounds of columns, as they are given to an estimator. They are public, and never taken from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloister.columns import Column
from cloister.errors import ConfigError

_HOW = (
    "Give bounds = (low, high) for all columns, a pair for each column, or a mapping from column names to pairs. "
    "Choose them from what is known about each quantity; values outside are clipped. The smallest and the largest "
    "value are two people's records, so they are not taken from the data."
)


def make_columns(bounds: Any, names: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of a job.

    Parameters
    ----------
    bounds
        A pair of numbers for all columns, one pair for each, or a mapping from names to pairs.
    names
        The columns, in order.

    Raises
    ------
    ConfigError
        If there are none, or they are not of these columns.
    """
    if bounds is None or isinstance(bounds, str):
        got = "none" if bounds is None else repr(bounds)
        raise ConfigError(f"bounds must be given for every column; got {got}. {_HOW}")
    if isinstance(bounds, Mapping):
        missing = [name for name in names if name not in bounds]
        unknown = [str(name) for name in bounds if name not in names]
        if missing or unknown:
            got = f"none for {missing[0]!r}" if missing else f"some for {unknown[0]!r}, which is no column"
            raise ConfigError(f"bounds must name each of the {len(names)} columns and no other; got {got}. {_HOW}")
        pairs = np.array([bounds[name] for name in names], dtype=np.float64)
    else:
        pairs = np.array(bounds, dtype=np.float64)
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (len(names), 1))
    if pairs.shape != (len(names), 2):
        raise ConfigError(f"bounds must be a pair, or {len(names)} pairs; got numbers of shape {pairs.shape}. {_HOW}")
    return tuple(Column(name=name, low=low, high=high) for name, (low, high) in zip(names, pairs.tolist(), strict=True))
