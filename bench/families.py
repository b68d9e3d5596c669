"""Synthetic public families on which the synopsis was tuned (docs/study-synopsis.md); no real table is among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from sklearn.cluster import KMeans

Points = np.ndarray


def _scale(points: Points) -> Points:
    """To [-1, 1] by the extremes, on the grid of the records."""
    low, high = points.min(axis=0), points.max(axis=0)
    return np.round((2 * (points - low) / (high - low) - 1) * 65536) / 65536


def _mix(
    rng: np.random.Generator, n: int, d: int, k: int, std: float, *, sizes: list[float] | None = None, shape: float = 0
) -> Points:
    """Draw k Gaussians with centres anywhere in the cube; ``shape`` makes them of unequal widths."""
    centres = rng.uniform(-1, 1, (k, d))
    parts = np.full(k, 1 / k) if sizes is None else np.array(sizes) / sum(sizes)
    labels = rng.choice(k, n, p=parts)
    widths = std * np.exp(shape * rng.standard_normal((k, d)))
    return centres[labels] + widths[labels] * rng.standard_normal((n, d))


def _loosen(points: Points, rng: np.random.Generator) -> Points:
    """As if the bounds were ten times too wide."""
    shift = rng.uniform(-0.8, 0.8, points.shape[1])
    return np.round((0.1 * points + shift) * 65536) / 65536


def _skewed(rng: np.random.Generator) -> Points:
    points = _mix(rng, 50_000, 6, 6, 0.4, shape=0.7)
    points[:, :3] = np.round(np.exp(points[:, :3]) * 3)
    return _scale(points)


def _heavy(rng: np.random.Generator) -> Points:
    points = _mix(rng, 5000, 2, 5, 0.1)
    return _scale(points + 0.05 * rng.standard_t(1.5, points.shape))


_SIZES = [2000.0, 1500, 1000, 800, 600, 300, 200, 100]
FAMILIES: dict[str, tuple[int, Callable[[np.random.Generator], Points]]] = {
    "n150d4k3": (3, lambda rng: _scale(_mix(rng, 150, 4, 3, 0.25, shape=0.3))),
    "n400d2k3": (3, lambda rng: _scale(_mix(rng, 400, 2, 3, 0.25, shape=0.5))),
    "n2000d3k3": (3, lambda rng: _scale(_mix(rng, 2000, 3, 3, 0.3, shape=0.5))),
    "n5000d2k15": (15, lambda rng: _scale(_mix(rng, 5000, 2, 15, 0.07))),
    "n600d2k15": (15, lambda rng: _scale(_mix(rng, 600, 2, 15, 0.07))),
    "unbal6500d2k8": (8, lambda rng: _scale(_mix(rng, 6500, 2, 8, 0.06, sizes=_SIZES))),
    "loose5000d2k5": (5, lambda rng: _loosen(_scale(_mix(rng, 5000, 2, 5, 0.1)), rng)),
    "loose5000d2k15": (15, lambda rng: _loosen(_scale(_mix(rng, 5000, 2, 15, 0.07)), rng)),
    "heavy5000d2k5": (5, _heavy),
    "n5000d4k5": (5, lambda rng: _scale(_mix(rng, 5000, 4, 5, 0.2))),
    "unif1000d3k4": (4, lambda rng: _scale(rng.uniform(-1, 1, (1000, 3)))),
    "n20kd3k20": (20, lambda rng: _scale(_mix(rng, 20_000, 3, 20, 0.1))),
    "n25kd2k100": (100, lambda rng: _scale(_mix(rng, 25_000, 2, 100, 0.02))),
    "disc50kd6k3": (3, _skewed),
    "n12kd20k8": (8, lambda rng: _scale(_mix(rng, 12_500, 20, 8, 0.3))),
    "n5000d10k5": (5, lambda rng: _scale(_mix(rng, 5000, 10, 5, 0.3))),
    "loose20kd8k5": (5, lambda rng: _loosen(_scale(_mix(rng, 20_000, 8, 5, 0.2)), rng)),
    "n10kd100k10": (10, lambda rng: _scale(_mix(rng, 10_000, 100, 10, 0.5))),
}


@cache
def load_family(name: str, instance: int) -> tuple[Points, int, float]:
    """Return one draw of a family: points, k, and the loss of k-means without privacy, best of ten starts."""
    k, make = FAMILIES[name]
    points = make(np.random.default_rng([instance, *name.encode()]))
    floor = KMeans(k, n_init=10, random_state=0).fit(points).inertia_ / len(points)
    return points, k, float(floor)
