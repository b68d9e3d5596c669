import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.lattice import (
    Load,
    Parameters,
    check_security,
    choose_parameters,
    choose_switch_bits,
    flood_reach_max,
    flood_std_max,
    statistical_flood_bits,
)
from cloister.lattice.primes import find_primes

ROUND = Load(sum_max=100_000 * 2**8, terms=1_600_000, weight_max=2**8)  # n = 100,000, 16 cells, 8 fractional bits


def test_properties():
    parameters = Parameters.make(4096, 3, 1000)
    q = parameters.primes[0] * parameters.primes[1] * parameters.primes[2]
    assert (parameters.modulus, parameters.modulus_bits, parameters.delta) == (q, 81, q // 1000)
    assert parameters.ring is Parameters.make(4096, 3, 77).ring


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"degree": 1024}, "degree must be one of"),
        ({"primes": ()}, "distinct primes"),
        ({"primes": (find_primes(2048, 1)[0],) * 2}, "distinct primes"),
        ({"primes": (8193,)}, "distinct primes"),
        ({"primes": (134217689,)}, "distinct primes"),
        ({"primes": (2**28 + 4096 * 3 + 1,)}, "distinct primes"),
        ({"plaintext_modulus": 1}, "plaintext modulus must be from 2"),
        ({"plaintext_modulus": 2**53}, "plaintext modulus must be from 2"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Parameters(**{"degree": 2048, "primes": find_primes(2048, 2), "plaintext_modulus": 1024} | changes)


def test_published_round_fits_54_bits_and_statistical_flooding_108():
    assert choose_parameters(ROUND).modulus_bits == 54
    flooded = choose_parameters(ROUND, flood_distance_bits=40)
    assert (flooded.degree, flooded.modulus_bits) == (4096, 108)
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
    with pytest.raises(ConfigError, match=r"sums up to 2\^\d+ .* 216 bits; about \d+ bits are lacking"):
        choose_parameters(Load(sum_max=sum_max, terms=2**30, weight_max=2**20))


def test_floods_that_fit_no_ring_are_refused():
    with pytest.raises(ConfigError, match="bits are lacking"):
        choose_parameters(ROUND, flood_std_min=2.0**200)


@pytest.mark.parametrize("name", ["sum_max", "terms", "weight_max", "key_holders"])
def test_bounds_below_one_are_refused(name):
    with pytest.raises(ConfigError, match="at least 1"):
        Load(**{"sum_max": 1, "terms": 1, "weight_max": 1} | {name: 0})


def test_sums_too_wide_for_a_small_modulus_are_refused():
    load = Load(sum_max=2**52, terms=10, weight_max=1)
    with pytest.raises(ConfigError, match="at most 60 bits"):
        choose_switch_bits(choose_parameters(load), load)
