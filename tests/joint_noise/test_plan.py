"""The public plan: within its distance at every scale, never larger than it must be, and refused where it cannot be.

The law of the digits: their product is the geometric law, up to errors that are bounded, at every scale.
"""

import dataclasses
import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError, PrecisionError
from cloister.joint_noise import JointLaplace, deal
from cloister.joint_noise.plan import (
    DISTANCE_MAX,
    PLANES_BYTES_MAX,
    ROUNDING_ERROR,
    bound_bias_error,
    bound_tail,
    compute_threshold,
    count_digits,
)
from cloister.numeric import RING32, RING64
from tests.joint_noise.joint_runs import Run

ANY_SCALE = st.floats(min_value=5e-324, max_value=2.0**40)


def make_plan(scale=2.0**18, entries=45, parties=3, ring=RING64):
    return JointLaplace(scale=scale, entries=entries, parties=parties, ring=ring)


@settings(max_examples=60, deadline=None)
@given(scale=ANY_SCALE, entries=st.integers(1, 20_000))
def test_the_vector_is_within_the_distance_and_no_block_of_bits_is_too_many(scale, entries):
    plan = make_plan(scale, entries)
    assert Fraction(plan.distance) <= DISTANCE_MAX
    rounding = 2 * entries * plan.digits * Fraction(1, 2 ** (plan.precision_bits + 1))
    tail = 2 * entries * math.exp(-(2.0**plan.digits) / scale) if scale > 1e-300 else 0.0
    assert plan.distance >= rounding
    assert plan.distance >= tail * (1 - 1e-9)
    assert plan.precision_bits % 4 == 0
    assert rounding * 16 + Fraction(tail * (1 + 1e-9)) > DISTANCE_MAX * (1 - Fraction(1, 2**50))


@settings(max_examples=20, deadline=None)
@given(scale=st.floats(min_value=0.01, max_value=2.0**24), entries=st.integers(1, 70), parties=st.integers(2, 5))
def test_the_costs_are_what_is_sent(scale, entries, parties):
    plan = make_plan(scale, entries, parties, RING32)
    run = Run(plan)
    assert [len(shares) for shares in run.dealt] == [32] * (parties - 1) + [plan.dealt_bytes]
    assert len(run.openings) == plan.steps == len(plan.opening_bytes)
    for step, size in zip(run.openings, plan.opening_bytes, strict=True):
        assert {len(raw) for raw in step.values()} == {size}


@pytest.mark.parametrize(
    ("entries", "ring", "steps", "sent", "dealt"),
    [
        (45, RING32, 7, 16_896, 88_160),
        (45, RING64, 7, 16_896, 96_864),
        (300, RING32, 7, 117_032, 606_632),
        (300, RING64, 7, 117_032, 664_232),
    ],
)
def test_the_costs_in_the_documentation(entries, ring, steps, sent, dealt):
    plan = make_plan(entries=entries, ring=ring)
    assert (plan.digits, plan.steps, sum(plan.opening_bytes), plan.dealt_bytes) == (24, steps, sent, dealt)
    bits, depth = plan.precision_bits, len(plan.layers)
    assert plan.gates == 2 * 24 * entries * (5 * bits // 4 - 2 - depth)
    assert depth == (bits // 4 - 1).bit_length()


def test_the_number_of_parties_changes_only_the_number_of_hands():
    plans = [make_plan(parties=parties) for parties in (2, 9)]
    assert plans[0].opening_bytes == plans[1].opening_bytes
    assert plans[0].dealt_bytes == plans[1].dealt_bytes


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_scales_that_are_none_are_refused(scale):
    with pytest.raises(ConfigError, match="scale"):
        make_plan(scale)


@pytest.mark.parametrize("entries", [0, -1, 2**22 + 1, 10**90])
def test_vectors_without_entries_or_with_too_many_are_refused(entries):
    with pytest.raises(ConfigError, match="from 1 to"):
        make_plan(entries=entries)


@pytest.mark.parametrize("parties", [1, 0])
def test_one_party_alone_is_refused(parties):
    with pytest.raises(ConfigError, match="at least 2 parties"):
        make_plan(parties=parties)


@pytest.mark.parametrize(("scale", "ring"), [(2.0**25, RING32), (2.0**56, RING64)])
def test_every_sample_fits_the_ring(scale, ring):
    assert 2 ** make_plan(scale, 1, ring=ring).digits - 1 <= ring.largest
    with pytest.raises(PrecisionError, match="ring"):
        make_plan(4 * scale, 1, ring=ring)
    with pytest.raises(PrecisionError, match="ring"):
        make_plan(1e308, 1, ring=ring)


def test_memory_is_bounded():
    plan = make_plan(entries=100_000)
    assert plan.precision_bits * plan.words * 8 <= PLANES_BYTES_MAX
    with pytest.raises(ConfigError, match="in parts"):
        make_plan(entries=150_000)


def test_plans_are_frozen_values():
    assert make_plan() == make_plan()
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_plan().scale = 1.0


def test_the_same_plan_is_dealt_anew_each_time():
    from cloister.crypto import SystemEntropy

    plan = make_plan(1.0, 2)
    assert deal(plan, SystemEntropy()) != deal(plan, SystemEntropy())


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
    assert 0 <= bound_tail(scale, digit) - power <= 2 * ROUNDING_ERROR


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
