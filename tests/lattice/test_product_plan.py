"""Plans are secure, right by their own bound and cheapest first; predicted errors of products against measured ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.lattice.parameters import MODULUS_BITS_MAX, Parameters
from cloister.lattice.product_plan import JointLoad, ProductNoise, choose_product_plan, find_slot_prime
from cloister.lattice.products import encrypt_lsb, multiply
from cloister.lattice.relinearisation import make_relinearisation_key, relinearise, switch_level
from cloister.lattice.ring import is_prime
from tests.lattice.test_collective import make_holders, make_key
from tests.lattice.test_products import SEED, draw_messages

EIGHTS = JointLoad(records=100_000, cells=(8, 8, 8), sum_max=100_000 * 256, key_holders=3)
PARAMETERS = Parameters.make(4096, 4, 65537)  # four primes, as the collective key of the other tests
SLACK = 2.0**8  # bounds hold for 2^40 sessions and any weights; they must not be vacuous


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
    """The issue's case. A statistical flood of 40 bits takes more than the ring allows; with one bit less it fits."""
    assert choose_product_plan(EIGHTS).levels == (7, 5, 3)
    with pytest.raises(ConfigError, match="at least 1 bits are lacking"):
        choose_product_plan(EIGHTS, smudge_distance_bits=40, smudgers=3)
    coarser = replace(EIGHTS, sum_max=EIGHTS.sum_max // 2)
    plan = choose_product_plan(coarser, smudge_distance_bits=40, smudgers=3)
    assert plan.levels == (8, 7, 5)
    assert len(plan.parameters.primes) == 8
    assert [plan.holder_level(holder) for holder in range(3)] == [8, 8, 7]


def test_more_noise_never_takes_a_cheaper_plan():
    finals = [choose_product_plan(EIGHTS, flood_std_min=2.0**bits).levels[-1] for bits in (10, 60, 80, 100)]
    assert finals == sorted(finals)
    assert finals[0] < finals[-1]


def test_what_does_not_fit_is_refused_with_numbers():
    million = JointLoad(records=1_000_000, cells=(8, 8, 8), sum_max=2**25, key_holders=3)
    with pytest.raises(ConfigError, match=r"1000000 records in 512 joint cells must fit 214 bits .* at least \d+ bits"):
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


def normalise(keys, batch):
    """v / t as floats (C, N), from the sum of the secrets."""
    ring = batch.parameters.ring
    secret = ring.forward(ring.reduce(sum(key.ternary[0].astype(np.int64) for key in keys)))
    rest = ring.inverse(ring.subtract(batch.bodies, ring.multiply(batch.masks, secret)))
    return ring.to_integers(np.moveaxis(rest, -2, -1)).astype(float) / batch.parameters.plaintext_modulus


def measure_reach(polynomials):
    """Largest |g(zeta)| over the roots of X^N + 1: a Fourier transform after a twist."""
    degree = polynomials.shape[1]
    return np.abs(np.fft.fft(polynomials * np.exp(1j * np.pi * np.arange(degree) / degree))).max()


@pytest.mark.parametrize("count", [1, 3])
def test_errors_reach_no_further_than_predicted(count):
    keys, public = make_holders(count, secrets=1, parameters=PARAMETERS)
    stream = Stream.from_seed(3, "encrypt")
    noise = ProductNoise(degree=4096, plaintext_modulus=65537, key_holders=count, polynomials=32)
    left, right = (encrypt_lsb(public, draw_messages(PARAMETERS, 2, seed), stream) for seed in (4, 5))
    fresh = noise.uploaded_reach(1)
    assert measure_reach(normalise(keys, left)) < fresh < SLACK * measure_reach(normalise(keys, left))
    dropped = float(PARAMETERS.primes[3])
    left, right = switch_level(left, 3), switch_level(right, 3)
    uploaded = noise.uploaded_reach(dropped)
    assert measure_reach(normalise(keys, left)) < uploaded < SLACK * measure_reach(normalise(keys, left))
    key = make_key_for(keys, stream)
    product = relinearise(multiply(left, right, np.array([[0, 0], [1, 1]])), key)
    reach = noise.product_reach(uploaded, uploaded, 3)
    measured = measure_reach(normalise(keys, product))
    assert measured < reach < SLACK**2 * measured
    lower = switch_level(product, 2)
    divided = noise.divided_reach(reach, float(PARAMETERS.primes[2]))
    measured = measure_reach(normalise(keys, lower))
    assert measured < divided < SLACK**2 * measured


def make_key_for(keys, stream):
    """One holder's key, or the collective one, for these primes and this plaintext modulus."""
    if len(keys) == 1:
        return make_relinearisation_key(keys[0], seed=SEED, stream=stream)
    return make_key(keys, PARAMETERS)


@pytest.mark.parametrize("count", [1, 3])
def test_the_error_of_relinearisation_is_within_its_proxy(count):
    """Relinearise products with small phases: what is then seen is the digits' error alone."""
    keys, public = make_holders(count, secrets=1, parameters=PARAMETERS)
    stream = Stream.from_seed(3, "encrypt")
    noise = ProductNoise(degree=4096, plaintext_modulus=65537, key_holders=count, polynomials=32)
    messages = draw_messages(PARAMETERS, 1)
    batch = multiply(*(encrypt_lsb(public, messages, stream) for _ in range(2)), np.array([[0, 0]]))
    after = relinearise(batch, make_key_for(keys, stream))
    ring = PARAMETERS.ring
    secret = ring.forward(ring.reduce(sum(key.ternary[0].astype(np.int64) for key in keys)))
    square = ring.multiply(ring.multiply(secret, secret), batch.squares)
    before = ring.add(ring.subtract(batch.bodies, ring.multiply(batch.masks, secret)), square)
    change = ring.subtract(ring.subtract(after.bodies, ring.multiply(after.masks, secret)), before)
    errors = ring.to_integers(np.moveaxis(ring.inverse(change), -2, -1)).astype(float) / 65537
    assert not (errors % 1).any()
    proxy = noise.relinearisation_proxy(4)
    assert errors.std() < proxy < SLACK * errors.std()
    assert np.abs(errors).max() < noise.tail * proxy
