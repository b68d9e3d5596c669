"""A client's whole vector is bounded, exactly, whatever the client holds."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hyp
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cloister.errors import ConfigError
from cloister.protocols.synopsis.client import bound_client, vote_for_median


@given(arrays(np.int64, st.integers(1, 300), elements=st.integers(-(2**59), 2**59)), st.integers(2000, 2**56))
@hyp(max_examples=400, deadline=None)
def test_squared_length_is_within_the_bound_exactly(exact, l2_squared):
    v = bound_client(exact, l2_squared)
    assert sum(int(a) ** 2 for a in v) <= l2_squared
    if exact.any():
        assert sum(int(a) ** 2 for a in v) >= (isqrt(l2_squared) - len(exact) ** 0.5 - 2) ** 2 or isqrt(
            l2_squared
        ) < len(exact)


@given(arrays(np.float64, st.integers(1, 300), elements=st.floats(-1e150, 1e150)), st.integers(2000, 2**56))
@hyp(max_examples=400, deadline=None)
def test_doubles_of_any_size_are_within_the_bound(exact, l2_squared):
    assert sum(int(a) ** 2 for a in bound_client(exact, l2_squared)) <= l2_squared


def test_subnormals_and_long_vectors():
    assert int((bound_client(np.full(6000, 5e-324), 2**50) ** 2).sum()) <= 2**50
    v = bound_client(np.random.default_rng(0).standard_normal(1 << 20), 2**56)
    assert int((v.astype(object) ** 2).sum()) <= 2**56


def test_zeros_stay_zeros_and_small_bounds_are_refused():
    assert not bound_client(np.zeros(5, dtype=np.int64), 10**6).any()
    with pytest.raises(ConfigError):
        bound_client(np.ones(10000), 100)


def test_scaling_the_records_changes_nothing():
    a = np.arange(1, 9)
    assert (bound_client(a, 2**50) == bound_client(1000 * a, 2**50)).all()


def test_vote_is_one_hot():
    assert vote_for_median(np.array([0, 3, 1]), 7).tolist() == [0, 7, 0]
    assert not vote_for_median(np.zeros(3, dtype=np.int64), 7).any()
