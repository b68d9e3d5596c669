"""Parameters: within the standard's table, of proper primes, and loads with positive bounds."""

from math import prod

import pytest

from cloister.errors import ConfigError
from cloister.lattice.noise import _LADDER, choose_parameters, choose_switch_bits
from cloister.lattice.parameters import MODULUS_BITS_MAX, Load, Parameters, check_security
from cloister.lattice.product_plan import _PRIMES_MAX, DEGREE
from cloister.lattice.ring import find_primes
from cloister.protocols.vertical.labels.agreement import _LADDER as SLOT_LADDER
from cloister.protocols.vertical.labels.agreement import find_slot_primes

GOOD = Parameters.make(2048, 2, 1024)


@pytest.mark.parametrize(("degree", "bits"), [(2048, 53), (4096, 106), (8192, 214)])
def test_the_table_is_a_ceiling(degree, bits):
    check_security(degree, 2**bits - 1)
    with pytest.raises(ConfigError, match=f"at most {bits} bits .* got {bits + 1}"):
        check_security(degree, 2**bits)


@pytest.mark.parametrize("degree", [1024, 2049, 16384, 0])
def test_unknown_degrees_are_refused(degree):
    with pytest.raises(ConfigError, match="must be one of 2048, 4096, 8192"):
        check_security(degree, 2**20)


@pytest.mark.parametrize(("degree", "most"), [(2048, 2), (4096, 4), (8192, 8)])
def test_parameters_stop_at_the_table(degree, most):
    assert Parameters.make(degree, most, 1024).modulus_bits <= {2048: 53, 4096: 106, 8192: 214}[degree]
    with pytest.raises(ConfigError, match="128-bit security"):
        Parameters(degree=degree, primes=find_primes(degree, most + 1), plaintext_modulus=1024)


STANDARD_2018 = {2048: 54, 4096: 109, 8192: 218, 16384: 438, 32768: 881}
GUIDELINES_2024 = {2048: 53, 4096: 106, 8192: 214, 16384: 430, 32768: 868}


def test_the_table_is_the_stricter_of_two():
    for degree, bits in MODULUS_BITS_MAX.items():
        assert bits == min(STANDARD_2018[degree], GUIDELINES_2024[degree])


def test_every_modulus_that_can_be_chosen_is_within_the_table():
    """Every step of the ladders for sums, for labels, and for products."""
    for degree, count in _LADDER:
        assert Parameters.make(degree, count, 1024).modulus_bits <= GUIDELINES_2024[degree]
    for degree, count in SLOT_LADDER:
        assert prod(find_slot_primes(degree, count)) < 2 ** GUIDELINES_2024[degree]
    for count in range(1, _PRIMES_MAX + 1):
        assert Parameters.make(DEGREE, count, 1024).modulus_bits <= GUIDELINES_2024[DEGREE]
    assert {degree for degree, _ in (*_LADDER, *SLOT_LADDER, (DEGREE, 1))} <= MODULUS_BITS_MAX.keys()


def test_a_prime_more_or_larger_primes_are_refused():
    """The two largest primes of 27 bits make 54 bits: within the table of 2018, and not of 2024."""
    with pytest.raises(ConfigError, match=r"at most 53 bits .* got 54"):
        Parameters(degree=2048, primes=find_primes(2048, 2), plaintext_modulus=1024)


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
        ({"primes": (GOOD.primes[0],) * 2}, "distinct primes"),
        ({"primes": (8193,)}, "distinct primes"),
        ({"primes": (134217689,)}, "distinct primes"),
        ({"primes": (2**28 + 4096 * 3 + 1,)}, "distinct primes"),
        ({"plaintext_modulus": 1}, "plaintext modulus must be from 2"),
        ({"plaintext_modulus": 2**53}, "plaintext modulus must be from 2"),
    ],
)
def test_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Parameters(**{"degree": 2048, "primes": GOOD.primes, "plaintext_modulus": 1024} | changes)


@pytest.mark.parametrize("name", ["sum_max", "terms", "weight_max", "key_holders"])
def test_bounds_below_one_are_refused(name):
    with pytest.raises(ConfigError, match="at least 1"):
        Load(**{"sum_max": 1, "terms": 1, "weight_max": 1} | {name: 0})


def test_sums_too_wide_for_a_small_modulus_are_refused():
    load = Load(sum_max=2**52, terms=10, weight_max=1)
    with pytest.raises(ConfigError, match="at most 60 bits"):
        choose_switch_bits(choose_parameters(load), load)
