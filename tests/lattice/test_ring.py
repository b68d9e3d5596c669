"""The ring against whole integers, and the primes that it is made of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.lattice.ring import Ring, find_primes, find_root, is_prime
from tests.lattice import reference

SMALL = [Ring(degree, find_primes(degree, 2)) for degree in (2, 4, 8, 32)]
TINY_PRIMES = Ring(8, (17, 97, 113))
signed = st.integers(-(2**63), 2**63 - 1)


def test_is_prime_agrees_with_a_sieve():
    sieve = [True] * 5000
    sieve[:2] = [False, False]
    for i in range(2, 71):
        if sieve[i]:
            sieve[i * i :: i] = [False] * len(sieve[i * i :: i])
    assert [is_prime(n) for n in range(5000)] == sieve


@pytest.mark.parametrize("composite", [2047, 1373653, 25326001, 41041, 2**27 - 1])
def test_strong_pseudoprimes_are_found_out(composite):
    # 2047 fools witness 2, 1373653 also 3, and 25326001 also 5.
    assert not is_prime(composite)


@pytest.mark.parametrize(("degree", "count"), [(2048, 2), (4096, 4), (8192, 8)])
def test_primes_are_the_largest_that_fit(degree, count):
    found = find_primes(degree, count)
    every = [p for p in range(2**27 - (2**27 - 1) % (2 * degree), found[-1] - 1, -2 * degree) if is_prime(p)]
    assert list(found) == every
    assert all(p < 2**27 and p % (2 * degree) == 1 for p in found)


@pytest.mark.parametrize("degree", [2, 64, 2048, 8192])
def test_root_has_order_exactly_2n(degree):
    prime = find_primes(degree, 1)[0]
    root = find_root(degree, prime)
    assert pow(root, degree, prime) == prime - 1


def test_refused():
    with pytest.raises(ConfigError, match="must be a prime that is 1 modulo"):
        find_root(2048, 134217729)
    with pytest.raises(ConfigError, match="there are"):
        find_primes(1 << 24, 20)


def elements(ring):
    return st.lists(signed, min_size=ring.degree, max_size=ring.degree).map(lambda x: np.array(x, dtype=np.int64))


ring_and_two = st.sampled_from([*SMALL, TINY_PRIMES]).flatmap(
    lambda ring: st.tuples(st.just(ring), elements(ring), elements(ring))
)


def as_integers(ring, x):
    return reference.polynomial_from_residues(x, ring.primes)


@settings(deadline=None, max_examples=150)
@given(ring_and_two)
def test_arithmetic_agrees_with_whole_integers(case):
    ring, x, y = case
    q, xs, ys = ring.modulus, [int(v) for v in x], [int(v) for v in y]
    a, b = ring.reduce(x), ring.reduce(y)
    assert as_integers(ring, a) == [v % q for v in xs]
    assert as_integers(ring, ring.add(a, b)) == reference.add(xs, ys, q)
    assert as_integers(ring, ring.subtract(a, b)) == reference.subtract(xs, ys, q)
    assert as_integers(ring, ring.negate(a)) == [-v % q for v in xs]
    assert as_integers(ring, ring.scale(a, ring.residues_of(ys[0]))) == [v * ys[0] % q for v in xs]
    product = ring.inverse(ring.multiply(ring.forward(a), ring.forward(b)))
    assert as_integers(ring, product) == reference.multiply(xs, ys, q)
    centred = ring.to_integers(np.moveaxis(a, -2, -1))
    assert list(centred) == [reference.centre(v, q) for v in xs]


@pytest.mark.parametrize("degree", [2, 16, 256, 2048, 4096, 8192, 32768])
def test_inverse_undoes_forward_for_extreme_residues(degree):
    ring = Ring(degree, find_primes(degree, 2))
    top = np.broadcast_to(ring.prime_words[:, None] - 1, (2, degree)).astype(np.uint32)
    mixed = np.where(np.arange(degree) % 2, top, 0).astype(np.uint32)
    for x in (top, mixed, np.zeros_like(top)):
        once = ring.forward(x)
        assert (once < ring.prime_words[:, None]).all()
        assert np.array_equal(ring.inverse(once), x)


@pytest.mark.parametrize("degree", [2048, 4096, 8192])
def test_ntt_form_holds_values_at_roots_in_bit_reversed_order(degree):
    ring = Ring(degree, find_primes(degree, 2))
    x = np.random.default_rng(3).integers(-(2**40), 2**40, degree)
    values = ring.forward(ring.reduce(x))
    bits = degree.bit_length() - 1
    for place in (0, 1, 2, degree // 2, degree - 1):
        for row, prime in enumerate(ring.primes):
            point = pow(find_root(degree, prime), 2 * reference.reverse_bits(place, bits) + 1, prime)
            assert values[row, place] == reference.evaluate([int(v) for v in x], point, prime)


@pytest.mark.parametrize("degree", [2048, 4096])
def test_large_products_agree_with_the_school_book(degree):
    ring = Ring(degree, find_primes(degree, 2))
    x, y = np.random.default_rng(4).integers(-(2**50), 2**50, (2, degree))
    y[np.arange(degree) % 97 > 0] = 0  # the school book skips zeros
    product = ring.inverse(ring.multiply(ring.forward(ring.reduce(x)), ring.forward(ring.reduce(y))))
    expected = reference.multiply([int(v) for v in y], [int(v) for v in x], ring.modulus)
    assert as_integers(ring, product) == expected


def test_batches_are_their_elements():
    ring = SMALL[-1]
    x = ring.reduce(np.random.default_rng(5).integers(-1000, 1000, (3, 4, ring.degree)))
    together = ring.forward(x)
    assert together.shape == x.shape
    for i in range(3):
        for j in range(4):
            assert np.array_equal(together[i, j], ring.forward(x[i, j]))
    assert np.array_equal(
        ring.multiply(x[:, :1], x), np.stack([ring.multiply(x[:, 0], x[:, j]) for j in range(4)], axis=1)
    )


def test_arguments_are_not_changed_and_results_are_fresh():
    ring = SMALL[2]
    x = ring.reduce(np.arange(ring.degree))
    x.flags.writeable = False
    for result in (ring.forward(x), ring.inverse(x), ring.add(x, x), ring.negate(x), ring.multiply(x, x)):
        assert result.flags.writeable
        assert result.flags.c_contiguous


@pytest.mark.parametrize(
    ("degree", "primes"),
    [(12, (97,)), (65536, (786433,)), (8, ()), (8, (97, 97)), (8, (2**27 + 2**20 + 1,)), (8, (19,)), (8, (33,))],
)
def test_no_ring(degree, primes):
    with pytest.raises(ConfigError):
        Ring(degree, primes)


def test_arrays_of_another_ring_are_refused():
    with pytest.raises(ConfigError, match="residues must be uint32"):
        SMALL[0].forward(np.zeros((2, 4), dtype=np.uint32))
    with pytest.raises(ConfigError, match="residues must be uint32"):
        SMALL[0].forward(np.zeros((2, 2), dtype=np.int64))
