"""The words of the transform: what each helper promises for every 32- or 64-bit word. Whole transforms: test_ring."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cloister.lattice.ntt import compile_loop, multiply_lazy, reduce_wide, subtract_once
from cloister.lattice.ring import find_primes

primes = st.sampled_from([17, 97, 65537, *find_primes(2048, 2), *find_primes(8192, 8)])
TOP = find_primes(2048, 1)[0]


@compile_loop
def run_multiply(value, factor, quotient, prime):
    return multiply_lazy(value, factor, quotient, prime)


@compile_loop
def run_reduce(value, prime, unit, power, power_quotient):
    return reduce_wide(value, prime, unit, power, power_quotient)


@compile_loop
def run_subtract(value, bound):
    return subtract_once(value, bound)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**27), primes)
@example(2**32 - 1, TOP - 1, TOP)
@example(0, 0, 17)
def test_lazy_product_is_right_and_below_2p(value, factor, prime):
    factor %= prime
    words = np.uint32(value), np.uint32(factor), np.uint32((factor << 32) // prime), np.uint32(prime)
    result = int(run_multiply(*words))
    assert result < 2 * prime
    assert result % prime == value * factor % prime


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), primes)
@example(2**64 - 1, TOP)
@example(2**64 - 1, 17)
def test_wide_words_are_reduced_fully(value, prime):
    power = 2**32 % prime
    words = (prime, 2**32 // prime, power, (power << 32) // prime)
    assert int(run_reduce(np.uint64(value), *(np.uint32(word) for word in words))) == value % prime


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2**31))
def test_subtract_once(value, bound):
    value %= 2 * bound
    assert int(run_subtract(np.uint32(value), np.uint32(bound))) == value % bound
