"""Adding or removing any record changes the released vector by at most the declared sensitivity, in integers."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.kmeans import cluster_sums
from cloister.numeric import FixedPoint
from cloister.privacy.encoder import BoundedRecords, SumCountEncoder, balance_count_weight
from cloister.records import ArrayRecords

coordinates = st.one_of(st.sampled_from([-1.0, 1.0, 0.0, 2.0**-16, -(2.0**-16)]), st.floats(-1, 1, width=32))


@st.composite
def neighbours(draw):
    """Records, one more record, centres, an encoder: points on the bound, duplicates, any grid, norm or none."""
    d = draw(st.integers(1, 6))
    bits = draw(st.sampled_from([1, 4, 16, 24]))
    rows = draw(st.lists(st.lists(coordinates, min_size=d, max_size=d), min_size=0, max_size=6))
    one = draw(st.lists(coordinates, min_size=d, max_size=d))
    if rows and draw(st.booleans()):
        one = rows[0]  # a duplicate
    centres = draw(st.lists(st.lists(coordinates, min_size=d, max_size=d), min_size=1, max_size=4))
    encoder = SumCountEncoder(
        dimensions=d,
        fixed_point=FixedPoint(bits),
        count_weight=draw(st.integers(1, 2**17)),
        norm_bound=draw(st.one_of(st.none(), st.integers(1, 2 ** (bits + 2)))),
    )
    return np.array(rows).reshape(-1, d), np.array([one]), np.array(centres), encoder


def encoded(points, centres, encoder):
    grid = encoder.fixed_point.quantise(points)
    sums = cluster_sums(BoundedRecords(ArrayRecords(grid), encoder), centres, threads=1)
    return encoder.encode_sums(sums.sums, sums.counts)


@settings(max_examples=400, deadline=None)
@given(neighbours())
def test_one_record_moves_the_vector_by_at_most_the_sensitivity(case):
    rows, one, centres, encoder = case
    difference = encoded(np.vstack([rows, one]), centres, encoder) - encoded(rows, centres, encoder)
    parts = [int(value) for value in difference.ravel()]
    assert sum(abs(value) for value in parts) <= encoder.sensitivity.l1
    assert sum(value**2 for value in parts) <= encoder.sensitivity.l2_squared
    assert sum(value != 0 for value in difference[:, -1]) == 1  # it is in one cluster, and in no other slot
    assert np.count_nonzero(difference.any(axis=1)) == 1


@pytest.mark.parametrize(("dimensions", "norm_bound"), [(1, None), (2, None), (100, None), (784, None)])
def test_the_declared_sensitivity_is_reached(dimensions, norm_bound):
    """Tight: a record in a corner has exactly the declared norms."""
    encoder = SumCountEncoder(dimensions=dimensions, fixed_point=FixedPoint(), count_weight=7, norm_bound=norm_bound)
    corner = np.ones((1, dimensions))
    vector = encoded(corner, np.zeros((1, dimensions)), encoder).ravel().astype(object)
    assert sum(abs(value) for value in vector) == encoder.sensitivity.l1
    assert sum(value**2 for value in vector) == encoder.sensitivity.l2_squared


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 50), st.integers(1, 2**17), st.integers(0, 2**32))
def test_shortened_records_are_on_the_grid_inside_the_bound_and_point_the_same_way(d, bound, seed):
    encoder = SumCountEncoder(dimensions=d, fixed_point=FixedPoint(), count_weight=1, norm_bound=bound)
    points = encoder.fixed_point.quantise(np.random.default_rng(seed).uniform(-1, 1, (20, d)))
    short = encoder.bound(points)
    grid = encoder.fixed_point.encode(short).astype(object)
    assert ((grid**2).sum(axis=1) <= bound**2).all()
    assert np.array_equal(short, encoder.fixed_point.quantise(short))
    assert (short * points >= 0).all()
    assert (np.abs(short) <= np.abs(points)).all()
    inside = (encoder.fixed_point.encode(points).astype(object) ** 2).sum(axis=1) < bound**2 // 2
    assert np.array_equal(short[inside], points[inside])


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 50), st.integers(0, 2**32), st.sampled_from([0, 1, 2, 7]))
def test_a_record_that_is_longer_by_the_least_is_shortened(d, seed, less):
    """The bound lies just below, at or just above the records' own lengths, where careless comparisons let them by."""
    points = FixedPoint().quantise(np.random.default_rng(seed).uniform(-1, 1, (20, d)))
    for point in points:
        square = sum(int(value) ** 2 for value in FixedPoint().encode(point[None])[0])
        for bound in {max(1, isqrt(square) - less), isqrt(square) + 1}:
            encoder = SumCountEncoder(dimensions=d, fixed_point=FixedPoint(), count_weight=1, norm_bound=bound)
            short = encoder.fixed_point.encode(encoder.bound(point[None]))[0]
            assert sum(int(value) ** 2 for value in short) <= bound**2
            if bound**2 > square * (1 + 1e-9):
                assert np.array_equal(short, encoder.fixed_point.encode(point[None])[0])


class NoClip(SumCountEncoder):
    """A mutant that declares a norm bound and does not apply it."""

    def bound(self, points):
        return points


def test_the_property_catches_an_encoder_that_does_not_clip():
    encoder = NoClip(dimensions=2, fixed_point=FixedPoint(), count_weight=1, norm_bound=1000)
    difference = encoded(np.ones((1, 2)), np.zeros((1, 2)), encoder)
    assert (difference.astype(object) ** 2).sum() > encoder.sensitivity.l2_squared


def test_counts_and_sums_come_back():
    encoder = SumCountEncoder(
        dimensions=2, fixed_point=FixedPoint(), count_weight=balance_count_weight(2, FixedPoint())
    )
    total = encoder.encode_sums(np.array([[0.5, -0.25]]), np.array([3]))
    assert encoder.decode_sums(total).tolist() == [[0.5, -0.25]]
    assert encoder.decode_counts(total).tolist() == [3.0]


def test_the_count_weight_balances_the_two_noises():
    """The closed form is the minimum of the error formula in its docstring."""
    for d in (1, 2, 10, 100):
        scale, m = 2**16, 0.2025 * d

        def error(w, d=d, scale=scale, m=m):
            return (d * scale**2 + w**2) * (d / scale**2 + m / w**2)

        best = balance_count_weight(d, FixedPoint())
        assert error(best) <= min(error(best * 1.05), error(best / 1.05))


@pytest.mark.parametrize("wrong", [{"dimensions": 0}, {"count_weight": 0}, {"norm_bound": 0}])
def test_senseless_encoders_are_refused(wrong):
    with pytest.raises(ConfigError):
        SumCountEncoder(**{"dimensions": 1, "fixed_point": FixedPoint(), "count_weight": 1, **wrong})
