"""A score: what an audit computes from one output to tell two inputs apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from cloister.records import FloatArray


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A function of one output, and what it is in words."""

    words: str
    score: Callable[[NDArray[Any]], FloatArray]
    """(runs, entries) -> (runs,)."""
