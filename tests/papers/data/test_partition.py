"""Dealing records and columns out to parties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError
from papers.data.partition import split_by_column, split_by_label, split_even, split_uneven

SEEDS = st.integers(0, 2**32)
SIZES = st.tuples(st.integers(1, 12), st.integers(0, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def assert_partition(parts, count):
    assert all(part.size for part in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(count))


@given(SIZES, SEEDS)
def test_an_even_split_is_a_partition_into_equal_parts(sizes, seed):
    parties, count = sizes
    parts = split_even(count, parties, Stream.from_seed(seed))
    assert len(parts) == parties
    assert_partition(parts, count)
    lengths = [part.size for part in parts]
    assert max(lengths) - min(lengths) <= 1


@given(SIZES, SEEDS, st.floats(1, 50))
def test_an_uneven_split_is_a_partition_into_falling_parts(sizes, seed, ratio):
    parties, count = sizes
    parts = split_uneven(count, parties, Stream.from_seed(seed), ratio=ratio)
    assert len(parts) == parties
    assert_partition(parts, count)
    lengths = [part.size for part in parts]
    assert lengths == sorted(lengths, reverse=True)


def test_the_ratio_of_an_uneven_split_is_kept_for_many_records():
    lengths = [part.size for part in split_uneven(70_003, 3, Stream.from_seed(1), ratio=2)]
    assert lengths == [40_001, 20_001, 10_001]


@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 10), SEEDS)
def test_a_split_by_label_is_a_partition_with_few_clusters_in_each_party(k, parties, held, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(k) * 3 - 1, 10))
    stream = Stream.from_seed(seed)
    if parties * held < k:
        with pytest.raises(ConfigError, match=rf"{parties} \* {held} < {k}"):
            split_by_label(labels, parties, held, stream)
        return
    parts = split_by_label(labels, parties, held, stream)
    assert len(parts) == parties
    assert_partition(parts, labels.size)
    assert all(np.unique(labels[part]).size <= held for part in parts)


def test_with_all_clusters_everywhere_the_shares_are_equal():
    labels = np.repeat(np.arange(4), 100)
    for part in split_by_label(labels, 5, 4, Stream.from_seed(3)):
        np.testing.assert_array_equal(np.bincount(labels[part]), [20] * 4)


def test_one_cluster_in_each_of_ten_parties_leaves_no_cluster_out():
    labels = np.repeat(np.arange(4), 250)  # SecFC 5.1: k = 4, n = 10, k' = 1
    parts = split_by_label(labels, 10, 1, Stream.from_seed(3))
    held = [np.unique(labels[part]).tolist() for part in parts]
    assert all(len(clusters) == 1 for clusters in held)
    assert sorted(np.bincount([clusters[0] for clusters in held]).tolist()) == [2, 2, 3, 3]


def test_a_party_that_would_stay_empty_is_refused():
    with pytest.raises(ConfigError, match="every party must get a record"):
        split_by_label([0, 1, 1, 1, 1], 4, 1, Stream.from_seed(0))


@given(st.integers(1, 30), st.integers(1, 30))
def test_columns_are_dealt_in_neighbouring_blocks(dimensions, parties):
    if parties > dimensions:
        with pytest.raises(ConfigError):
            split_by_column(dimensions, parties)
        return
    parts = split_by_column(dimensions, parties)
    assert [index for part in parts for index in part] == list(range(dimensions))
    assert len(parts) == parties
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("split", [split_even, split_uneven])
@pytest.mark.parametrize(("count", "parties"), [(2, 3), (5, 0), (0, 1)])
def test_more_parties_than_records_are_refused(split, count, parties):
    with pytest.raises(ConfigError, match="parties must be between 1"):
        split(count, parties, Stream.from_seed(0))


def test_a_ratio_below_one_is_refused():
    for ratio in (0.5, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="ratio"):
            split_uneven(10, 2, Stream.from_seed(0), ratio=ratio)


def test_the_stream_decides_the_split():
    for deal in (
        lambda stream: split_even(100, 3, stream),
        lambda stream: split_uneven(100, 3, stream),
        lambda stream: split_by_label(np.arange(100) % 4, 3, 2, stream),
    ):
        first, again, other = (np.concatenate(deal(Stream.from_seed(seed))) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)
