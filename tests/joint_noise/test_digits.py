"""The law of the digits: their product is the geometric law, up to errors that are bounded, at every scale."""

import decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.joint_noise import digits as law
from cloister.joint_noise.digits import bound_bias_error, bound_tail, compute_threshold, count_digits

PRECISION_BITS = 96
TAIL_MAX = Fraction(1, 2**82)
EXTREMES = [5e-324, 1e-300, 0.001, 0.05, 0.5, 1.0, 3.7, 1e3, 2.0**18, 2.0**25, 2.0**40, 1e12]
EXP_BITS = 700


def exp_of_minus(x):
    """exp(-x) by its series in whole numbers, to about 2^-600: nothing in common with the code's decimals."""
    if x > 3000:
        return Fraction(0)
    halvings = 20
    one = 1 << EXP_BITS
    step = x.numerator * one // (x.denominator << halvings)
    total = term = one
    for k in range(1, 200):
        term = -term * step // (k * one)
        total += term
    for _ in range(halvings):
        total = total * total // one
    return Fraction(total, one)


def exact_power(scale, digit):
    return exp_of_minus(Fraction(1 << digit) / Fraction(scale))


def law_of_digits(thresholds):
    """P[g] for all g, in units of 2^-700, if digit i is 1 with probability theta_i / 2^B."""
    probabilities = [1 << EXP_BITS]
    for threshold in thresholds:
        ones = [p * threshold >> PRECISION_BITS for p in probabilities]
        probabilities = [p - one for p, one in zip(probabilities, ones, strict=True)] + ones
    return probabilities


def distance_from_geometric(scale, thresholds):
    """The total variation distance of the law of the digits from the geometric law, to 2^-600."""
    p = int(exact_power(scale, 0) * (1 << EXP_BITS))
    built = law_of_digits(thresholds)
    wanted = [(1 << EXP_BITS) - p]
    while len(wanted) < len(built):
        wanted.append(wanted[-1] * p >> EXP_BITS)
    beyond = (1 << EXP_BITS) - sum(wanted)
    return Fraction(sum(abs(a - b) for a, b in zip(built, wanted, strict=True)) + beyond, 2 << EXP_BITS)


def thresholds_of(scale, digits):
    """Those of the digits, and of one digit more."""
    return [compute_threshold(scale, digit, PRECISION_BITS) for digit in range(digits + 1)]


@pytest.mark.parametrize("scale", [0.05, 0.4, 1.0, 3.0, 20.0])
def test_the_digits_make_the_geometric_law(scale):
    digits = count_digits(scale, TAIL_MAX)
    allowed = bound_tail(scale, digits) + digits * bound_bias_error(PRECISION_BITS)
    assert distance_from_geometric(scale, thresholds_of(scale, digits)[:-1]) <= allowed


@pytest.mark.parametrize("scale", [0.4, 3.0, 20.0])
def test_another_digits_bias_does_not(scale):
    digits = count_digits(scale, TAIL_MAX)
    allowed = bound_tail(scale, digits) + digits * bound_bias_error(PRECISION_BITS)
    thresholds = thresholds_of(scale, digits)
    assert distance_from_geometric(scale, thresholds[1:]) > allowed
    for digit in range(digits):
        # One threshold off by 2^44 parts in 2^96 is the rounding of a double.
        wrong = [theta + (1 << 44) * (i == digit) for i, theta in enumerate(thresholds[:-1])]
        assert distance_from_geometric(scale, wrong) > allowed


@pytest.mark.parametrize("scale", EXTREMES)
def test_thresholds_are_right_to_the_last_bit_at_every_scale(scale):
    for digit in range(count_digits(scale, TAIL_MAX) + 1):
        power = exact_power(scale, digit)
        bias = power / (1 + power)
        threshold = compute_threshold(scale, digit, PRECISION_BITS)
        assert abs(Fraction(threshold, 1 << PRECISION_BITS) - bias) <= bound_bias_error(PRECISION_BITS)
        assert abs(Fraction(threshold + 1, 1 << PRECISION_BITS) - bias) > bound_bias_error(PRECISION_BITS) * 99 / 100


@pytest.mark.parametrize("scale", EXTREMES)
def test_the_tail_is_bounded_and_no_digit_is_too_many(scale):
    digits = count_digits(scale, TAIL_MAX)
    assert exact_power(scale, digits) <= bound_tail(scale, digits) <= TAIL_MAX
    assert digits == 1 or exact_power(scale, digits - 1) > TAIL_MAX


@given(scale=st.floats(min_value=0.01, max_value=2.0**40), digit=st.integers(0, 46))
def test_errors_stay_within_their_bounds_at_any_scale(scale, digit):
    power = exact_power(scale, digit)
    threshold = compute_threshold(scale, digit, PRECISION_BITS)
    assert abs(Fraction(threshold, 1 << PRECISION_BITS) - power / (1 + power)) <= bound_bias_error(PRECISION_BITS)
    assert 0 <= bound_tail(scale, digit) - power <= 2 * law.ROUNDING_ERROR


def test_a_callers_decimal_settings_change_nothing():
    expected = [compute_threshold(scale, 2, PRECISION_BITS) for scale in EXTREMES]
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_UP, Emin=-5, Emax=5):
        assert [compute_threshold(scale, 2, PRECISION_BITS) for scale in EXTREMES] == expected


def test_doubles_would_not_do():
    scale, digit = 2.0**18, 20
    power = np.exp(-(2.0**digit) / scale)
    in_doubles = Fraction(float(power / (1 + power)))
    exact = exact_power(scale, digit) / (1 + exact_power(scale, digit))
    assert abs(in_doubles - exact) > 1000 * bound_bias_error(PRECISION_BITS)
