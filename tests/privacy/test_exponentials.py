"""Enclosures of exp(-y) hold the truth, and comparisons with it are those of real numbers."""

import decimal
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from cloister.privacy.exponentials import Uniform, enclose_exponential, floor_exponential
from tests.privacy.exact import Bits, bound_exponential

BITS = (1, 2, 7, 63, 64, 128, 200)
EXTREMES = [
    Fraction(5e-324),
    Fraction(1, 10**600),
    Fraction(1, 2**64),
    1 - Fraction(1, 2**80),
    Fraction(1),
    1 + Fraction(1, 2**80),
    Fraction(44),
    Fraction(64 * 69314718056, 10**11),  # about where 2^64 exp(-y) is 1
    Fraction(299 * 2**70 + 1, 2**70),
    Fraction(10**600),
]


def draw_exponents(count):
    rng = np.random.default_rng(5)
    for size in rng.uniform(-70, 9, count):
        yield Fraction(2.0**size) + Fraction(int(rng.integers(1, 1 << 40)), 3 << 90)


class TestEnclosures:
    @pytest.mark.parametrize("bits", BITS)
    def test_hold_the_truth_and_are_narrow(self, bits):
        for exponent in [*EXTREMES, *draw_exponents(250 if bits <= 64 else 30)]:
            low, high = enclose_exponential(exponent, bits)
            true_low, true_high = bound_exponential(exponent, bits)
            assert low <= true_low <= true_high <= high, exponent
            assert 0 <= low <= high <= min(low + 2, 1 << bits), exponent

    def test_agree_with_a_library_of_decimal_arithmetic(self):
        with decimal.localcontext(decimal.Context(prec=120)):
            for exponent in draw_exponents(300):
                low, high = enclose_exponential(exponent, 256)
                truth = (-Decimal(exponent.numerator) / exponent.denominator).exp() * 2**256
                assert low <= truth <= high

    @pytest.mark.parametrize("bits", BITS)
    def test_of_zero_is_one(self, bits):
        assert enclose_exponential(Fraction(0), bits) == (1 << bits, 1 << bits)

    def test_floors_are_those_of_the_truth(self):
        for exponent in [*EXTREMES, *draw_exponents(300)]:
            low, high = bound_exponential(exponent, 64)
            assert floor_exponential(exponent, 64) == low.__floor__(), exponent
            assert high.__floor__() in (low.__floor__(), 1 << 64), exponent


class TestUniforms:
    """exp(-1) in binary is .5e2d58d8b3bcdf1a badec7829054f90d ..."""

    def test_a_number_that_64_bits_decide_takes_no_more(self):
        assert Uniform(0x5E2D58D8B3BCDF19, 64, Bits()).is_below_exponential(Fraction(1))
        assert not Uniform(0x5E2D58D8B3BCDF1B, 64, Bits()).is_below_exponential(Fraction(1))

    @pytest.mark.parametrize(("more", "is_below"), [(0, True), (0xBADEC7829054F90C, True), (0xBADEC7829054F90E, False)])
    def test_an_open_number_is_decided_by_its_next_bits(self, more, is_below):
        source = Bits(more)
        assert Uniform(0x5E2D58D8B3BCDF1A, 64, source).is_below_exponential(Fraction(1)) is is_below
        assert not source.words

    @pytest.mark.parametrize(("last", "is_below"), [(0, True), (2**64 - 1, False)])
    def test_a_number_can_stay_open_for_long(self, last, is_below):
        source = Bits(0x5E2D58D8B3BCDF1A, 0xBADEC7829054F90D, last)
        assert Uniform(0, 0, source).is_below_exponential(Fraction(0))  # u < 1 needs no bit
        assert Uniform(0x5E2D58D8B3BCDF1A, 64, Bits(0xBADEC7829054F90D, last)).is_below_exponential(1) is is_below

    def test_bits_once_drawn_belong_to_the_number(self):
        uniform = Uniform(0x5E2D58D8B3BCDF1A, 64, Bits(0xBADEC7829054F90E))
        assert not uniform.is_below_exponential(Fraction(1))
        # exp(-1) and 2^-126 more: the same 128 bits answer again, and none is left to be drawn.
        assert uniform.is_below_exponential(1 - Fraction(8, 1 << 128))
        assert not uniform.is_below_exponential(Fraction(1))

    @pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(2), Fraction(7)], ids=str)
    def test_of_all_numbers_of_8_bits_and_what_follows_the_right_share_is_below(self, exponent):
        """Every prefix of 8 bits, with the lowest and the highest bits behind it."""
        low, high = bound_exponential(exponent, 8 + 64)
        for prefix, more in product(range(256), (0, 1 << 32, 2**64 - 1)):
            number = (prefix << 64) + more
            if not low - 1 < number < high:  # else the bits stated do not decide
                assert Uniform(prefix, 8, Bits(more)).is_below_exponential(exponent) is (number < low)

    @pytest.mark.parametrize("exponent", [Fraction(10**600), Fraction(1000)], ids=["huge", "large"])
    def test_an_exponent_beyond_all_bits_ends_at_the_first_bit_that_is_set(self, exponent):
        assert not Uniform(1, 64, Bits()).is_below_exponential(exponent)
        assert not Uniform(0, 64, Bits(0, 5)).is_below_exponential(exponent)
