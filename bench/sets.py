"""The papers' data sets for benchmarks, from ``../shared/data`` beside the repository; never copied."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[2] / "shared" / "data"
KS = {"iris": 3, "lsun": 3, "s1": 15, "house": 3, "adult": 3, "birch2": 100}


@cache
def load_unit(name: str) -> np.ndarray:
    """One data set, each column scaled to [-1, 1] by its extremes, as the papers do."""
    path = FOLDER / f"{name}.txt"
    if not path.exists():
        raise SystemExit(f"this benchmark needs {path}, which is not here: see README, Benchmarks")
    points = np.loadtxt(path)
    low, high = points.min(axis=0), points.max(axis=0)
    return 2 * (points - low) / (high - low) - 1
