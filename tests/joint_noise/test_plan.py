"""The public plan: within its distance at every scale, never larger than it must be, and refused where it cannot be."""

import dataclasses
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError, PrecisionError
from cloister.joint_noise import JointLaplace, deal
from cloister.joint_noise.plan import DISTANCE_MAX, PLANES_BYTES_MAX
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
    assert [len(hand) for hand in run.hands] == [32] * (parties - 1) + [plan.hand_bytes]
    assert len(run.openings) == plan.steps == len(plan.opening_bytes)
    for step, size in zip(run.openings, plan.opening_bytes, strict=True):
        assert {len(raw) for raw in step.values()} == {size}


@pytest.mark.parametrize(
    ("entries", "ring", "steps", "sent", "hand"),
    [
        (45, RING32, 7, 16_896, 88_160),
        (45, RING64, 7, 16_896, 96_864),
        (300, RING32, 7, 117_032, 606_632),
        (300, RING64, 7, 117_032, 664_232),
    ],
)
def test_the_costs_in_the_documentation(entries, ring, steps, sent, hand):
    plan = make_plan(entries=entries, ring=ring)
    assert (plan.digits, plan.steps, sum(plan.opening_bytes), plan.hand_bytes) == (24, steps, sent, hand)
    bits, depth = plan.precision_bits, len(plan.layers)
    assert plan.gates == 2 * 24 * entries * (5 * bits // 4 - 2 - depth)
    assert depth == (bits // 4 - 1).bit_length()


def test_the_number_of_parties_changes_only_the_number_of_hands():
    plans = [make_plan(parties=parties) for parties in (2, 9)]
    assert plans[0].opening_bytes == plans[1].opening_bytes
    assert plans[0].hand_bytes == plans[1].hand_bytes


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
