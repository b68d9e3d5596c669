"""A vector that is scaled to the reach and rounded has at most the length that was asked for, in exact arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hyp
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.numeric import find_reach


def square(integers):
    return sum(int(a) ** 2 for a in integers)


@given(m=st.integers(1, 300), longest=st.integers(20, 2**40), seed=st.integers(0, 2**32), power=st.floats(0, 8))
@hyp(max_examples=300, deadline=None)
def test_a_rounded_vector_is_never_too_long(m, longest, seed, power):
    x = np.random.default_rng(seed).standard_normal(m)
    x = np.sign(x) * np.abs(x) ** power  # from all entries alike to one that outweighs the rest
    reach = find_reach(longest, m)
    assert square(np.rint(x * (reach / np.sqrt((x**2).sum())))) <= longest**2


@pytest.mark.parametrize("m", [1, 4, 100, 2000])
def test_entries_that_all_round_up_fit(m):
    """The worst case of rounding: every entry is moved away from zero by a half."""
    for whole in (10, 1000, 2**20):
        y = np.full(m, whole + 0.5 + 1e-9)
        longest = int(np.ceil(np.sqrt((y**2).sum()) + np.sqrt(m) / 2 + 1))
        assert np.sqrt((y**2).sum()) <= find_reach(longest, m)
        assert square(np.rint(y)) <= longest**2


@pytest.mark.parametrize(("longest", "m"), [(0, 1), (1, 1), (6, 100), (2**53, 1), (2**40, 2**13)])
def test_no_room_for_rounding_and_too_much_for_doubles_are_refused(longest, m):
    with pytest.raises(ConfigError, match=rf"a vector of m = {m} integers must be .*; got {longest}\. .*larger share"):
        find_reach(longest, m)


def test_the_limits_themselves_are_allowed():
    assert find_reach(7, 100) == 1.0
    assert find_reach(2**53 // 5, 1) > 0
