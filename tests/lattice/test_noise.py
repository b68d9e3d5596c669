"""Bounds against measurement: every error below its bound, and the bound not far above the largest error seen."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.lattice.encryption import encrypt_public
from cloister.lattice.lwe import LweBatch, rerandomise, switch_modulus
from cloister.lattice.noise import (
    FLOOD_REACH_STD,
    answer_error_bound,
    choose_parameters,
    choose_switch_bits,
    error_bound,
    flood_reach_max,
    flood_std_max,
    hint_flood_std_min,
    rerandomisation_bound,
    statistical_flood_bits,
    switching_bound,
)
from cloister.lattice.parameters import Load, Parameters, check_security
from cloister.lattice.weighted_sums import mirror_weights, sum_bodies
from tests.lattice.answers import accumulate_masks, make_answers, make_keys, measure_errors

PARAMETERS = Parameters.make(2048, 2, 2**24)
ROUND = Load(sum_max=100_000 * 2**8, terms=1_600_000, weight_max=2**8)  # n = 100,000, 16 cells, 8 fractional bits


def load_of(*, terms=3 * 2 * 2048, weight_max=200, **more):
    return Load(sum_max=2**22, terms=terms, weight_max=weight_max, **more)


@pytest.mark.parametrize(("public", "tightness_bits"), [(False, 3), (True, 6.5)])
def test_fresh_errors_stay_below_their_bound_and_near_it(public, tightness_bits):
    keys, public_keys = make_keys(PARAMETERS)
    answers = make_answers(keys, count=12, public=public_keys if public else None)
    largest = max(map(abs, measure_errors(keys, answers.batch, answers.sums)))
    bound = error_bound(PARAMETERS, load_of(public_key=public))
    assert bound / 2**tightness_bits < largest < bound


def test_constant_weights_are_covered_too():
    """All records in one cluster: then a public key's errors of one block are as correlated as they can be."""
    keys, public_keys = make_keys(PARAMETERS, count=1)
    ring = PARAMETERS.ring
    masks, bodies = encrypt_public(public_keys, np.zeros((40, 1, 2048), dtype=np.int64), Stream.from_seed(3, "ones"))
    total = np.zeros((40, 2, 2048), dtype=np.uint32)
    weights, each = np.ones((40, 2048), dtype=np.int32), np.arange(40)
    accumulate_masks(ring, total, masks, weights, each, each)
    batch = LweBatch(
        parameters=PARAMETERS,
        masks=ring.inverse(total),
        bodies=sum_bodies(ring, bodies, weights, each, secrets=1)[:, 0],
        mask_of=each,
        secret_of=np.zeros(40, dtype=np.int64),
    )
    largest = max(map(abs, measure_errors(keys, batch, [0] * 40)))
    assert largest < error_bound(PARAMETERS, load_of(terms=2048, weight_max=1, public_key=True))


def test_rerandomisation_stays_below_its_bound_and_near_it():
    keys, public_keys = make_keys(PARAMETERS)
    answers = make_answers(keys, count=20, peak=1, cells=1, blocks=1)
    before = measure_errors(keys, answers.batch, answers.sums)
    after = measure_errors(keys, rerandomise(answers.batch, public_keys, Stream.from_seed(2, "r")), answers.sums)
    largest = max(abs(x - y) for x, y in zip(before, after, strict=True))
    bound = rerandomisation_bound(PARAMETERS, load_of())
    assert bound / 2**4 < largest < bound


@pytest.mark.parametrize("bits", [36, 60])
def test_switching_stays_below_its_bound_and_near_it(bits):
    keys, _ = make_keys(PARAMETERS)
    answers = make_answers(keys, count=20)
    errors = measure_errors(keys, answers.batch, answers.sums)
    small = switch_modulus(answers.batch, bits)
    moved = []
    for body, a, s, number, error in zip(
        small.bodies, small.mask_of, small.secret_of, answers.sums, errors, strict=True
    ):
        product = int((small.masks[a].astype(object) * mirror_weights(keys.ternary[s]).astype(object)).sum())
        scaled = (PARAMETERS.delta * number + error) * 2**bits
        rest = ((int(body) - product) * PARAMETERS.modulus - scaled) % (PARAMETERS.modulus << bits)
        moved.append(min(rest, (PARAMETERS.modulus << bits) - rest) / PARAMETERS.modulus)
    bound = switching_bound(PARAMETERS, load_of(), bits)
    assert bound / 2**5 < max(moved) < bound


def test_room_is_divided_and_never_passed():
    load = load_of()
    reach = flood_reach_max(PARAMETERS, load)
    bits = choose_switch_bits(PARAMETERS, load)
    switching = switching_bound(PARAMETERS, load, bits) * PARAMETERS.modulus / 2**bits
    assert reach + answer_error_bound(PARAMETERS, load) + switching <= PARAMETERS.delta / 2
    assert flood_std_max(PARAMETERS, load) * FLOOD_REACH_STD == pytest.approx(reach)
    # One bit less would not leave the answers right.
    assert switching_bound(PARAMETERS, load, bits - 1) > 2 ** (bits - 1) / PARAMETERS.plaintext_modulus / 16


def test_no_room_is_no_flood():
    load = load_of(terms=2**40)
    assert flood_reach_max(PARAMETERS, load) < 0
    assert flood_std_max(PARAMETERS, load) == 0


def test_statistical_flood_hides_the_error():
    """Distance of two uniform floods that are apart by twice the error bound: 2E / 2^(b+1)."""
    load = load_of()
    for distance_bits in (20, 40, 64):
        bits = statistical_flood_bits(PARAMETERS, load, distance_bits)
        distance = 2 * answer_error_bound(PARAMETERS, load) / 2.0 ** (bits + 1)
        assert 2.0 ** -(distance_bits + 1) < distance <= 2.0**-distance_bits


def test_hints_are_blurred_a_hundredfold():
    keys, public_keys = make_keys(PARAMETERS, count=3)
    ring = PARAMETERS.ring
    errors = ring.to_integers(
        np.moveaxis(ring.inverse(ring.subtract(public_keys.bodies, ring.multiply(keys.ntt, public_keys.mask))), -2, -1)
    )
    norms = (errors**2).sum() + (keys.ternary.astype(int) ** 2).sum()
    assert 100 * norms < hint_flood_std_min(PARAMETERS, load_of(), 3) ** 2 < 200 * norms


def test_bounds_grow_as_they_must():
    base = error_bound(PARAMETERS, load_of())
    assert error_bound(PARAMETERS, load_of(terms=4 * 3 * 2 * 2048)) == pytest.approx(2 * base)
    assert error_bound(PARAMETERS, load_of(weight_max=400)) == pytest.approx(2 * base)
    one, four = (rerandomisation_bound(PARAMETERS, load_of(key_holders=h)) for h in (1, 4))
    assert four == pytest.approx(2 * one, rel=0.05)
    assert math.isclose(
        switching_bound(PARAMETERS, load_of(key_holders=4), 30),
        2 * switching_bound(PARAMETERS, load_of(), 30),
        rel_tol=0.01,
    )


def test_published_round_fits_53_bits_and_statistical_flooding_106():
    assert choose_parameters(ROUND).modulus_bits == 53
    flooded = choose_parameters(ROUND, flood_distance_bits=40)
    assert (flooded.degree, flooded.modulus_bits) == (4096, 106)
    assert 2 ** statistical_flood_bits(flooded, ROUND, 40) < flood_reach_max(flooded, ROUND)


def test_a_public_key_costs_more():
    public = Load(sum_max=ROUND.sum_max, terms=ROUND.terms, weight_max=ROUND.weight_max, public_key=True)
    assert choose_parameters(public).modulus_bits == 81


loads = st.builds(
    Load,
    sum_max=st.integers(1, 2**60),
    terms=st.integers(1, 2**36),
    weight_max=st.integers(1, 2**20),
    key_holders=st.integers(1, 50),
    public_key=st.booleans(),
)


@settings(deadline=None, max_examples=60)
@given(loads, st.floats(0, 1e30))
def test_what_is_chosen_is_secure_and_has_the_room(load, flood_std):
    parameters = choose_parameters(load, flood_std_min=flood_std)
    check_security(parameters.degree, parameters.modulus)
    assert parameters.plaintext_modulus > 2 * load.sum_max
    assert parameters.plaintext_modulus <= 4 * load.sum_max
    assert flood_std_max(parameters, load) >= flood_std
    assert flood_reach_max(parameters, load) < parameters.delta / 2


@pytest.mark.parametrize("sum_max", [2**200, 2**213, 2**300])
def test_loads_that_fit_no_ring_are_refused_with_numbers(sum_max):
    with pytest.raises(ConfigError, match=r"sums up to 2\^\d+ .* 214 bits; about \d+ bits are lacking"):
        choose_parameters(Load(sum_max=sum_max, terms=2**30, weight_max=2**20))


def test_floods_that_fit_no_ring_are_refused():
    with pytest.raises(ConfigError, match="bits are lacking"):
        choose_parameters(ROUND, flood_std_min=2.0**200)
