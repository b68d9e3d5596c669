"""The front is what no other point beats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from papers.feddp.pareto import find_front

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def front(points: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return find_front(points, epsilon=lambda point: point[0], cost=lambda point: point[1])


def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


@given(POINTS)
def test_a_point_is_in_the_front_exactly_if_none_beats_it(points: list[tuple[int, int]]) -> None:
    expected = {point for point in points if not any(beats(other, point) for other in points)}
    found = front(points)
    assert set(found) == expected
    assert len(found) == len(expected)
    assert list(found) == sorted(found)


def test_of_equal_points_the_first_is_kept() -> None:
    points = [(1, 2, "first"), (1, 2, "second")]
    assert find_front(points, epsilon=lambda p: p[0], cost=lambda p: p[1]) == ((1, 2, "first"),)
