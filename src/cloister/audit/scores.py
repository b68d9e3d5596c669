"""A score: what an audit computes from one output to tell two inputs apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A function of one output, and what it is in words."""

    words: str
    score: Callable[[NDArray[Any]], FloatArray]
    """(runs, entries) -> (runs,)."""
