"""The nearest centre is exact: against fractions, on ties, near ties, empty clusters, and at the ends of the range."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import LocalProtocolError
from cloister.field import FIELD61, FIELD122, Distances, find_nearest
from tests.field.reference import exact_nearest

FIELDS = (FIELD61, FIELD122)


def distances_of(values, field=FIELD122):
    return field.decode_distances(field.encode_integers(values))


@settings(deadline=None)  # the first call compiles
@given(st.sampled_from(FIELDS), st.integers(1, 6), st.integers(1, 5), st.data())
def test_labels_are_those_of_exact_fractions(field, rows, clusters, data):
    values = st.one_of(st.integers(0, 3), st.integers(0, field.order - 1), st.sampled_from([field.order - 1]))
    matrix = [[data.draw(values) for _ in range(clusters)] for _ in range(rows)]
    count = st.one_of(st.integers(0, 4), st.integers(0, 2**32 - 1))
    counts = data.draw(st.lists(count, min_size=clusters, max_size=clusters).filter(any))
    assert find_nearest(distances_of(matrix, field), np.array(counts)).tolist() == exact_nearest(matrix, counts)


@pytest.mark.parametrize("field", FIELDS)
def test_ties_go_to_the_lowest_index_and_floats_would_not_see_near_ties(field):
    # d / c^2 = x + e for clusters of different sizes: equal, or apart by 1 / c^2, which a double cannot show.
    base, sizes = field.order // 2**22, np.array([999, 1000, 999, 1024])
    exact = [base * int(c) ** 2 for c in sizes]
    assert find_nearest(distances_of([exact], field), sizes).tolist() == [0]
    for h in range(4):
        closer = list(exact)
        closer[h] -= 1
        assert closer[h] / int(sizes[h]) ** 2 == float(base)
        assert find_nearest(distances_of([closer], field), sizes).tolist() == [h]


@pytest.mark.parametrize("field", FIELDS)
def test_an_empty_cluster_is_nobodys_nearest(field):
    matrix = distances_of([[0, 9, 8], [0, 1, 5]], field)
    assert find_nearest(matrix, np.array([0, 3, 1])).tolist() == [1, 1]
    assert find_nearest(matrix, np.array([0, 0, 1])).tolist() == [2, 2]


@pytest.mark.parametrize("counts", [[0, 0], [1], [1, -1], [1, 2**32]])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(LocalProtocolError, match="count"):
        find_nearest(distances_of([[1, 2]]), np.array(counts))


def test_the_largest_count_and_none_are_counts():
    assert find_nearest(distances_of([[1, 2]]), np.array([1, 2**32 - 1])).tolist() == [1]
    assert find_nearest(distances_of([[1, 2]]), np.array([1, 0])).tolist() == [0]


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(0, FIELD122.order - 1), min_size=1, max_size=8))
def test_the_approximation_has_its_proved_relative_error(values):
    bound = Fraction(1, 2**52) + Fraction(1, 2**106)
    for value, approximate in zip(values, distances_of(values).to_floats(), strict=True):
        assert abs(Fraction(float(approximate)) - value) <= bound * value


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(0, 2**128 - 1), min_size=1, max_size=8), st.integers(0, 2**129))
def test_counting_what_is_beyond_a_bound(values, bound):
    high, low = (np.array([word(value) for value in values], dtype=np.uint64) for word in (lambda v: v >> 64, _low))
    assert Distances(low=low, high=high).count_beyond(bound) == sum(value > bound for value in values)
    assert Distances(low=low, high=None).count_beyond(bound) == sum(_low(value) > bound for value in values)


def _low(value):
    return value % 2**64
