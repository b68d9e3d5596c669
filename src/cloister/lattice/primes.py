"""Primes for residue arithmetic: below 2^27 and 1 modulo 2N, so that Z_p has the roots that the transform needs."""

from __future__ import annotations

from functools import cache

from cloister.errors import ConfigError

PRIME_BITS = 27
_WITNESSES = (2, 3, 5, 7)  # enough for every number below 3,215,031,751 (Pomerance, Selfridge, Wagstaff 1980)


def is_prime(number: int) -> bool:
    """Say whether a number below 2^31 is prime: Miller-Rabin with witnesses that prove it there."""
    if number < 2 or any(number % small == 0 for small in _WITNESSES):
        return number in _WITNESSES
    odd = number - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    for witness in _WITNESSES:
        power = pow(witness, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


@cache
def find_primes(degree: int, count: int) -> tuple[int, ...]:
    """Return the ``count`` largest primes below 2^27 that are 1 modulo 2N, largest first."""
    step = 2 * degree
    found: list[int] = []
    candidate = (1 << PRIME_BITS) // step * step + 1 - step
    while len(found) < count:
        if candidate <= step:
            raise ConfigError(
                f"there must be {count} primes below 2^{PRIME_BITS} that are 1 modulo {step}; there are {len(found)}. "
                "Use fewer primes."
            )
        if is_prime(candidate):
            found.append(candidate)
        candidate -= step
    return tuple(found)


@cache
def find_root(degree: int, prime: int) -> int:
    """Return the first x^((p-1)/2N), x = 2, 3, ..., whose N-th power is -1: a primitive 2N-th root of unity."""
    if (prime - 1) % (2 * degree) or not is_prime(prime):
        raise ConfigError(f"a modulus must be a prime that is 1 modulo {2 * degree}; got {prime}. Use find_primes.")
    for base in range(2, prime):
        root = pow(base, (prime - 1) // (2 * degree), prime)
        if pow(root, degree, prime) == prime - 1:
            return root
    raise AssertionError("a prime field has a primitive root")
