"""The coordinator's decisions are exact: nearest centres, the 1/3 rule, and which record an empty cluster takes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import DataError
from cloister.field import FIELD61, FIELD122, Distances
from cloister.protocols.secfc.labels import Partition, draw_labels, refill_empty, separate_groups


def distances(rows, wide=False):
    integers = np.array(rows, dtype=object)
    low = (integers % 2**64).astype(np.uint64)
    high = (integers // 2**64).astype(np.uint64)
    return Distances(low=low, high=high if wide else None)


def ratio(rows, counts, i, h):
    return Fraction(int(rows[i][h]), int(counts[h]) ** 2)


TABLES = st.integers(1, 4).flatmap(
    lambda k: st.tuples(
        st.lists(st.lists(st.integers(0, 60), min_size=k, max_size=k), min_size=k, max_size=12),
        st.lists(st.integers(1, 5), min_size=k, max_size=k),
        st.sampled_from([1, 2**40 + 1, 2**90 + 7]),
    )
)


@settings(max_examples=200, deadline=None)
@given(table=TABLES)
def test_separation_is_the_printed_rule(table):
    rows, counts, scale = table
    rows = [[value * scale for value in row] for row in rows]
    found = separate_groups(distances(rows, wide=scale > 2**58), np.array(counts))
    k = len(counts)
    for i in range(len(rows)):
        fits = [
            h
            for h in range(k)
            if all(9 * ratio(rows, counts, i, h) <= ratio(rows, counts, i, s) for s in range(k) if s != h)
        ]
        assert found[i] == (fits[0] if fits else -1)


@pytest.mark.parametrize(("less", "inside"), [(0, True), (1, False), (-1, True)])
def test_separation_decides_at_the_last_bit(less, inside):
    """9 a = b exactly, one less, one more; far beyond the precision of a double."""
    a = 2**116 + 12345
    found = separate_groups(distances([[a, 9 * a - less]], wide=True), np.array([1, 1]))
    assert found[0] == (0 if inside else -1)


@settings(max_examples=200, deadline=None)
@given(table=TABLES, data=st.data())
def test_an_empty_cluster_takes_the_farthest_record(table, data):
    rows, counts, scale = table
    rows = [[value * scale for value in row] for row in rows]
    k = len(counts)
    labels = data.draw(st.lists(st.integers(0, k - 1), min_size=len(rows), max_size=len(rows)))
    expected = list(labels)
    for h in range(k):
        if h not in expected:
            several = [i for i in range(len(rows)) if expected.count(expected[i]) > 1]
            expected[max(several, key=lambda i: (ratio(rows, counts, i, labels[i]), -i))] = h
    found = refill_empty(np.array(labels, np.int32), distances(rows, wide=scale > 2**58), np.array(counts))
    assert found.tolist() == expected
    assert set(found) == set(range(k))


def test_the_farthest_is_found_at_the_last_bit():
    a = 2**116
    table = distances([[a, 5 * a], [a + 1, 5 * a], [a, 5 * a]], wide=True)
    assert refill_empty(np.zeros(3, np.int32), table, np.array([2, 1])).tolist() == [0, 1, 0]


@pytest.mark.parametrize("field", [FIELD61, FIELD122])
def test_only_columns_of_changed_clusters_are_stale(field):
    partition = Partition(field, np.array([0, 0, 1, 1, 2, 2], np.int32), 3)
    assert partition.stale == (0, 1, 2)
    wide = field.residues > 1
    near, far = 1, 100
    rows = [[near, far, far], [far, near, far], [far, near, far], [far, near, far], [far, far, near], [far, far, near]]
    partition.take((0, 1), distances([row[:2] for row in rows], wide))
    assert partition.stale == (2,)
    partition.take((2,), distances([row[2:] for row in rows], wide))
    assert partition.stale == ()
    assert partition.assign()
    assert partition.labels.tolist() == [0, 1, 1, 1, 2, 2]
    assert partition.stale == (0, 1)
    assert partition.counts.tolist() == [1, 3, 2]
    partition.take((0, 1), distances([row[:2] for row in rows], wide))
    assert not partition.assign()


def test_a_cluster_that_separation_would_empty_keeps_its_own():
    """Record 0 is within 1/3 of centre 0; the others of no centre: cluster 1 keeps what is left of it."""
    partition = Partition(FIELD61, np.array([0, 0, 1, 1], np.int32), 2)
    partition.take((0, 1), distances([[1, 100], [10, 11], [11, 10], [10, 11]]))
    assert partition.separate()
    assert partition.labels.tolist() == [0, -1, 1, 1]
    assert partition.stale == (0,)


def test_separation_that_would_leave_a_cluster_empty_is_left_out():
    partition = Partition(FIELD61, np.array([0, 0, 1], np.int32), 2)
    partition.take((0, 1), distances([[10, 11], [10, 11], [1, 100]]))
    assert not partition.separate()
    assert partition.labels.tolist() == [0, 0, 1]
    assert partition.stale == ()


def test_the_start_has_clusters_of_equal_size():
    labels = draw_labels(11, 4, Stream.from_seed(1, "start"))
    assert sorted(np.bincount(labels)) == [2, 3, 3, 3]
    assert labels.tolist() != draw_labels(11, 4, Stream.from_seed(2, "start")).tolist()
    with pytest.raises(DataError, match="at least as many records as clusters"):
        draw_labels(3, 4, Stream.from_seed(1, "start"))
