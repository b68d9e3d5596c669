"""Fixed point and rings: what goes in comes out, rounding is bounded, sums wrap around exactly, ranges are checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hyp
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cloister.errors import ConfigError, PrecisionError
from cloister.numeric import RING32, RING64, FixedPoint, choose_ring, find_reach

BITS = st.integers(1, 30)
POINTS = arrays(np.float64, st.integers(0, 20), elements=st.floats(-1e6, 1e6))
rings = st.sampled_from([RING32, RING64])


@given(BITS, POINTS)
def test_quantising_moves_a_number_at_most_half_a_grid_step(bits, points):
    fixed = FixedPoint(bits)
    assert np.all(np.abs(fixed.quantise(points) - points) <= fixed.error_bound)


@given(BITS, POINTS)
def test_encode_and_decode_are_inverse_on_the_grid(bits, points):
    fixed = FixedPoint(bits)
    grid = fixed.quantise(points)
    np.testing.assert_array_equal(fixed.decode(fixed.encode(points)), grid)
    np.testing.assert_array_equal(fixed.encode(grid), fixed.encode(points))
    np.testing.assert_array_equal(fixed.quantise(grid), grid)


@given(POINTS)
def test_sums_of_encoded_numbers_do_not_depend_on_the_order(points):
    fixed = FixedPoint()
    assert fixed.encode(points).sum() == fixed.encode(points[::-1]).sum() == sum(fixed.encode(points).tolist())


def test_halves_go_to_the_even_neighbour():
    fixed = FixedPoint(1)
    np.testing.assert_array_equal(fixed.encode([0.25, 0.75, 1.25, -0.25, -0.75]), [0, 2, 2, 0, -2])


def test_the_derived_numbers_belong_to_the_bits():
    fixed = FixedPoint(16)
    assert (fixed.scale, fixed.resolution, fixed.error_bound) == (65536, 2.0**-16, 2.0**-17)
    assert fixed == FixedPoint()
    assert fixed.encode([1.0, -1.0]).tolist() == [65536, -65536]
    assert fixed.encode([1.0]).dtype == np.int64


def test_the_input_is_left_as_it_was():
    points = np.array([0.1, 0.2])
    FixedPoint(4).quantise(points)
    np.testing.assert_array_equal(points, [0.1, 0.2])


@pytest.mark.parametrize("bits", [1, 16, 30])
def test_the_range_ends_just_below_two_to_the_53_units(bits):
    fixed = FixedPoint(bits)
    edge = 2.0 ** (53 - bits)
    assert fixed.encode([np.nextafter(edge, 0), -np.nextafter(edge, 0)]).tolist() == [2**53 - 1, 1 - 2**53]
    for outside in (edge, -edge, 1e308, np.nan, np.inf, -np.inf):
        with pytest.raises(PrecisionError, match=r"1 of 3 are not\."):
            fixed.encode([0.0, outside, 1.0])
        with pytest.raises(PrecisionError):
            fixed.quantise([outside])


@pytest.mark.parametrize("bits", [0, 31, -1, 16.0, True, "16"])
def test_bits_outside_one_to_thirty_are_refused(bits):
    with pytest.raises(ConfigError, match="between 1 and 30"):
        FixedPoint(bits)


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
