"""Rings: exact sums inside the range, wrap-around outside, and the public rule that keeps runs inside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import ConfigError, PrecisionError
from cloister.numeric import RING32, RING64, choose_ring

rings = st.sampled_from([RING32, RING64])


@given(rings, st.data())
def test_sums_are_exact_while_they_fit(ring, data):
    terms = data.draw(st.lists(st.integers(-ring.largest // 8, ring.largest // 8), min_size=1, max_size=8))
    total = ring.sum([ring.encode(np.array([term])) for term in terms])
    assert ring.decode(total).tolist() == [sum(terms)]
    assert total.dtype == ring.dtype


@given(rings, st.integers(-(2**63), 2**63 - 1))
def test_encoding_is_reduction_modulo_the_ring(ring, value):
    element = int(ring.encode(np.array([value]))[0])
    assert element == value % 2**ring.bits
    lifted = int(ring.decode(ring.encode(np.array([value])))[0])
    assert (lifted - value) % 2**ring.bits == 0
    assert -(2 ** (ring.bits - 1)) <= lifted < 2 ** (ring.bits - 1)


def test_summing_does_not_change_the_terms():
    one = RING32.encode(np.array([1, 2]))
    RING32.sum([one, one])
    assert one.tolist() == [1, 2]


def test_the_smallest_ring_that_holds_every_sum_is_chosen():
    assert choose_ring(2**31 - 1) is RING32
    assert choose_ring(2**31) is RING64
    assert choose_ring(5, 64).bits == 64
    assert choose_ring(2**63 - 1) is RING64


@pytest.mark.parametrize(("largest", "bits"), [(2**31, 32), (2**63, 64), (2**63, "auto")])
def test_a_possible_overflow_is_refused_with_the_numbers(largest, bits):
    with pytest.raises(PrecisionError, match=rf"{largest}.*ower fractional_bits"):
        choose_ring(largest, bits)


def test_other_rings_are_refused():
    with pytest.raises(ConfigError, match='must be "auto", 32 or 64'):
        choose_ring(1, 16)
