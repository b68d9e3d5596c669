"""What the compiler may make of a distance: the sum that is written, in that order, with fused products at most.

Labels of two parties, or of one record in two places, agree to the last bit only if nobody reorders this sum. With
more freedom ("fastmath") results stay close, so that no tolerance notices; here they are compared bit by bit with the
few results that the order allows, in exact arithmetic.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cloister.kmeans import blocks, nearest


def fused(a: float, b: float, c: float) -> float:
    """a * b + c, rounded once."""
    return float(Fraction(a) * Fraction(b) + Fraction(c))


# Without fused products; with them, where of the first two squares of a sum either may be the one that is rounded.
WAYS = ("rounded", "first fused", "second fused")


def distance_in_order(record: np.ndarray, centre: np.ndarray, way: str) -> float:
    """The kernel's sum: two features first if there are two over, then four at a time added to what there is."""
    differences = [float(x) - float(c) for x, c in zip(record, centre, strict=True)]
    differences += [0.0] * (len(differences) % 2)
    start = len(differences) % 4
    total = add_squares(differences[:start], way) if start else 0.0
    for first in range(start, len(differences), 4):
        total += add_squares(differences[first : first + 4], way)
    return total


def add_squares(differences: list[float], way: str) -> float:
    if way == "rounded":
        total = 0.0
        for difference in differences:  # not sum(), which since Python 3.12 rounds once at the end
            total += difference * difference
        return total
    first, second, *rest = differences if way == "second fused" else (differences[1], differences[0], *differences[2:])
    total = fused(second, second, first * first)
    for difference in rest:
        total = fused(difference, difference, total)
    return total


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 6, 7, 8, 11, 14])
def test_every_distance_is_the_written_sum_to_the_last_bit(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    points, centres = rng.uniform(-1, 1, (150, dimensions)), rng.uniform(-1, 1, (9, dimensions))
    found = nearest(points, centres, threads=1)
    pairs = [(point, centres[label]) for point, label in zip(points, found.labels, strict=True)]
    assert any(found.squared_distances.tolist() == [distance_in_order(*pair, way) for pair in pairs] for way in WAYS)


@pytest.mark.parametrize("dimensions", [4, 8, 11])
def test_the_orders_can_be_told_apart(dimensions: int) -> None:
    """Adding the same squares one by one, as a compiler with more freedom would, gives other bits somewhere."""
    rng = np.random.default_rng(dimensions)
    points, centre = rng.uniform(-1, 1, (150, dimensions)), rng.uniform(-1, 1, dimensions)
    for way in WAYS:
        written = [distance_in_order(point, centre, way) for point in points]
        backwards = [distance_in_order(point[::-1], centre[::-1], way) for point in points]
        assert written != backwards


def test_only_sums_may_be_reordered() -> None:
    """Of what is compiled, the one function that decides no label; infinity and nan mean what they say everywhere."""
    compiled = {name: kernel.compile() for name, kernel in vars(blocks).items() if hasattr(kernel, "compile")}
    freedom = {
        name: set(function.targetoptions["fastmath"])
        for name, function in compiled.items()
        if hasattr(function, "targetoptions")
    }
    assert len(freedom) > 6
    assert freedom.pop("_reduce_few") == {"contract", "reassoc", "nsz"}
    assert set(map(frozenset, freedom.values())) == {frozenset({"contract"})}
