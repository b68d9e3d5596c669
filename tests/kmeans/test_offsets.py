"""Clipped offsets: what is summed is what is promised, for any split of the records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.kmeans import offsets, sum_offsets
from cloister.records import ArrayRecords
from tests.kmeans.test_kernel import SplitRecords, on_grid

SCALE, WEIGHT = 2**20, 2**17


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 60),
    d=st.integers(1, 9),
    k=st.integers(1, 5),
    radius=st.sampled_from([0.01, 0.3, 1.0, 10.0]),
)
def test_agrees_with_the_definition(seed, n, d, k, radius):
    points = on_grid(seed, n, d)
    rng = np.random.default_rng(seed + 1)
    centres, radii = rng.uniform(-1, 1, (k, d)), radius * rng.uniform(0.5, 2, k)
    found = sum_offsets(ArrayRecords(points), centres, radii, scale=SCALE, weight=WEIGHT)
    expected = np.zeros((k, d + 2))
    for point in points:
        label = ((point - centres) ** 2).sum(axis=1).argmin()
        offset = (point - centres[label]) / radii[label]
        clipped = offset / max(1.0, np.linalg.norm(offset))
        expected[label] += [*clipped, clipped @ clipped, 1.0]
    assert found.dtype == np.int64
    # A record is rounded to integers, and its longest offset is a little shorter than the scale: sqrt(d)/2 + 1.
    np.testing.assert_allclose(found[:, :d], SCALE * expected[:, :d], atol=(d**0.5 / 2 + 2) * max(n, 1))
    np.testing.assert_allclose(found[:, d], WEIGHT * expected[:, d], atol=max(n, 1))
    np.testing.assert_array_equal(found[:, d + 1], WEIGHT * expected[:, d + 1])


def test_long_offsets_keep_their_direction_and_short_ones_their_length():
    centres, radii = np.zeros((1, 2)), np.array([0.5])
    long, short = np.array([0.6, 0.8]), np.array([0.15, -0.2])
    for point, length in ((long, 1.0), (short, 0.5)):
        *vector, square, count = sum_offsets(ArrayRecords(point[None]), centres, radii, scale=SCALE, weight=WEIGHT)[0]
        np.testing.assert_allclose(np.array(vector) / SCALE, length * point / np.linalg.norm(point), atol=1e-5)
        assert square / WEIGHT == pytest.approx(length**2, abs=1e-4)
        assert count == WEIGHT


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 50), max_size=3).map(sorted), rows=st.integers(1, 60))
def test_the_sum_does_not_depend_on_how_records_are_read(seed, cuts, rows):
    points = on_grid(seed, 50, 3)
    centres, radii = on_grid(seed + 1, 4, 3), np.full(4, 0.4)
    whole = sum_offsets(ArrayRecords(points), centres, radii, scale=SCALE, weight=WEIGHT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offsets, "_CHUNK_ROWS", rows)
        parts = sum_offsets(SplitRecords(points, cuts), centres, radii, scale=SCALE, weight=WEIGHT)
    np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize(("scale", "d"), [(0, 1), (1, 1), (6, 100), (2**52, 1), (2**43, 2000)])
def test_scales_that_are_too_short_to_round_or_too_long_for_doubles_are_refused(scale, d):
    with pytest.raises(ConfigError, match="must be allowed a length greater than"):
        sum_offsets(ArrayRecords(np.zeros((1, d))), np.zeros((1, d)), np.ones(1), scale=scale, weight=1)
