"""Plans: secure, right by their own bound, cheapest first, and refused with numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.lattice.primes import is_prime
from cloister.lattice.product_plan import JointLoad, choose_product_plan, find_slot_prime
from cloister.lattice.standard import MODULUS_BITS_MAX

EIGHTS = JointLoad(records=100_000, cells=(8, 8, 8), sum_max=100_000 * 256, key_holders=3)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 10**6),
    st.lists(st.integers(1, 16), min_size=2, max_size=3),
    st.integers(1, 2**25),
    st.integers(1, 5),
    st.sampled_from([0, 20, 40]),
)
def test_a_plan_is_secure_and_has_the_room(records, cells, sum_max, holders, distance_bits):
    load = JointLoad(records=records, cells=tuple(cells), sum_max=sum_max, key_holders=holders)
    try:
        plan = choose_product_plan(load, smudge_distance_bits=distance_bits, smudgers=holders)
    except ConfigError as error:
        assert "bits are lacking" in str(error)
        return
    t = plan.parameters.plaintext_modulus
    assert plan.parameters.modulus_bits <= MODULUS_BITS_MAX[8192]
    assert t > 2 * sum_max
    assert is_prime(t)
    assert t % 16384 == 1
    assert t not in plan.parameters.primes
    assert len(plan.levels) == len(cells)
    assert len(plan.parameters.primes) >= plan.levels[0] > plan.levels[-1] >= 1
    assert plan.flood_reach_max > holders * plan.error_bound * 2.0**distance_bits * bool(distance_bits)
    assert plan.error_bound < plan.final.delta / 2


def test_eight_by_eight_by_eight():
    """The issue's case. With a statistical flood of 40 bits it takes all that the ring allows."""
    assert choose_product_plan(EIGHTS).levels == (7, 5, 3)
    plan = choose_product_plan(EIGHTS, smudge_distance_bits=40, smudgers=3)
    assert plan.levels == (8, 7, 5)
    assert len(plan.parameters.primes) == 8
    assert [plan.holder_level(holder) for holder in range(3)] == [8, 8, 7]


def test_more_noise_never_takes_a_cheaper_plan():
    finals = [choose_product_plan(EIGHTS, flood_std_min=2.0**bits).levels[-1] for bits in (10, 60, 80, 100)]
    assert finals == sorted(finals)
    assert finals[0] < finals[-1]


def test_what_does_not_fit_is_refused_with_numbers():
    million = JointLoad(records=1_000_000, cells=(8, 8, 8), sum_max=2**25, key_holders=3)
    with pytest.raises(ConfigError, match=r"1000000 records in 512 joint cells must fit 216 bits .* at least \d+ bits"):
        choose_product_plan(million, smudge_distance_bits=40, smudgers=3)
    with pytest.raises(ConfigError, match=r"below 2\^27; got 2\^28"):
        choose_product_plan(JointLoad(records=10, cells=(2, 2), sum_max=2**27))


@pytest.mark.parametrize("cells", [(8,), (2, 2, 2, 2)])
def test_two_or_three_column_holders(cells):
    with pytest.raises(ConfigError, match="2 or 3 encrypted column holders"):
        JointLoad(records=10, cells=cells, sum_max=10)


def test_bounds_of_a_load_are_positive():
    for wrong in ({"records": 0}, {"cells": (2, 0)}, {"sum_max": 0}, {"key_holders": 0}):
        with pytest.raises(ConfigError, match="at least 1"):
            JointLoad(**{"records": 10, "cells": (2, 2), "sum_max": 10, **wrong})


def test_slot_primes():
    assert find_slot_prime(1) == 65537
    assert find_slot_prime(65537) == 114689
    assert find_slot_prime(65536) == 65537
