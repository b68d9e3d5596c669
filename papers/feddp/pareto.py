"""The Pareto front of cost against total epsilon (5, "Evaluation Procedure")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Point = TypeVar("Point")


def find_front(
    points: Sequence[Point], *, epsilon: Callable[[Point], float], cost: Callable[[Point], float]
) -> tuple[Point, ...]:
    """Return the points that no other one beats, by rising epsilon.

    One beats another if neither its epsilon nor its cost is larger and one of them is smaller; of equal points the
    first is kept.
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda each: (epsilon(each), cost(each))):
        if not front or cost(point) < cost(front[-1]):
            front.append(point)
    return tuple(front)
