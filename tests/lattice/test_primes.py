import pytest

from cloister.errors import ConfigError
from cloister.lattice.primes import find_primes, find_root, is_prime


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
