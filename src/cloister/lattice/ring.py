"""The ring Z_q[X]/(X^N + 1), q a product of primes: an element is its residues modulo each prime.

The primes are below 2^27 and 1 modulo 2N, so that each Z_p has the roots that the transform needs.

Arrays are uint32 with shape (..., L, N) for L primes. *Coefficient form* holds coefficients in order of their power;
*NTT form* holds values at the primitive 2N-th roots of unity, where a product is taken place by place. Every function
returns reduced residues, 0..p-1, in a new array.

Times do not depend on the values: no branch, no table lookup at a secret place.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.errors import ConfigError, RemoteProtocolError
from cloister.lattice.ntt import Residues, forward_all, inverse_all, reduce_wide, stage_period, subtract_once
from cloister.records import IntArray

PRIME_BITS = 27
_WITNESSES = (2, 3, 5, 7)  # enough for every number below 3,215,031,751 (Pomerance, Selfridge, Wagstaff 1980)
_DEGREE_MAX = 1 << 15  # the transform's values would pass 2^32 beyond


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
def find_primes(degree: int, count: int, *, below: int = 1 << PRIME_BITS) -> tuple[int, ...]:
    """Return the ``count`` largest primes below 2^27, or less, that are 1 modulo 2N, largest first."""
    step = 2 * degree
    found: list[int] = []
    candidate = (below - 2) // step * step + 1
    while len(found) < count:
        if candidate <= step:
            raise ConfigError(
                f"there must be {count} primes below {below} that are 1 modulo {step}; there are {len(found)}. "
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


class Ring:
    """Arithmetic modulo X^N + 1 and a product of primes, with the tables of its transforms.

    A ring by itself promises no security; :class:`~cloister.lattice.parameters.Parameters` does.

    Parameters
    ----------
    degree
        N, a power of two from 2 to 32768.
    primes
        Distinct primes below 2^27 that are 1 modulo 2N.
    """

    def __init__(self, degree: int, primes: tuple[int, ...]) -> None:
        if degree & (degree - 1) or not 2 <= degree <= _DEGREE_MAX:
            raise ConfigError(f"a ring's degree must be a power of two from 2 to {_DEGREE_MAX}; got {degree}.")
        if not primes or len(set(primes)) < len(primes) or max(primes) >> PRIME_BITS:
            raise ConfigError(f"a ring must have distinct primes below 2^{PRIME_BITS}; got {primes}. Use find_primes.")
        self.degree = degree
        self.primes = primes
        self.modulus = int(np.prod(np.array(primes, dtype=object)))
        self.prime_words = np.array(primes, dtype=np.uint32)
        # For each prime: floor(2^32 / p), 2^32 mod p, its quotient, -2^64 mod p (what a negative int64 lacks).
        self.constants = np.array(
            [[2**32 // p, 2**32 % p, quotient(2**32 % p, p), -(2**64) % p] for p in primes], dtype=np.uint32
        )
        roots = [find_root(degree, prime) for prime in primes]
        pairs = list(zip(roots, primes, strict=True))
        self.factors, self.quotients = _stack([_stage_factors(degree, root, prime) for root, prime in pairs], primes)
        inverses = [_stage_factors(degree, pow(root, -1, prime), prime) for root, prime in pairs]
        self.inverse_factors, self.inverse_quotients = _stack(inverses, primes)
        last = [pow(degree, -1, prime) for prime in primes]
        self.last = np.array([[x, quotient(x, p)] for x, p in zip(last, primes, strict=True)], dtype=np.uint32)
        for table in vars(self).values():
            if isinstance(table, np.ndarray):
                table.flags.writeable = False

    def __repr__(self) -> str:
        return f"Ring(degree={self.degree}, primes={self.primes})"

    def forward(self, x: Residues) -> Residues:
        """Return the NTT form of elements in coefficient form."""
        out = self._copy(x)
        forward_all(self._flat(out), self.prime_words, self.factors, self.quotients)
        return out

    def inverse(self, x: Residues) -> Residues:
        """Return the coefficient form of elements in NTT form."""
        out = self._copy(x)
        inverse_all(self._flat(out), self.prime_words, self.inverse_factors, self.inverse_quotients, self.last)
        return out

    def add(self, x: Residues, y: Residues) -> Residues:
        """Return x + y, both in one form."""
        total = x + y
        out: Residues = np.minimum(total, total - self.prime_words[:, None])
        return out

    def subtract(self, x: Residues, y: Residues) -> Residues:
        """Return x - y, both in one form."""
        rest = x - y
        out: Residues = np.minimum(rest, rest + self.prime_words[:, None])
        return out

    def negate(self, x: Residues) -> Residues:
        """Return -x, in the form it came in."""
        return self.subtract(np.zeros_like(x), x)

    def multiply(self, x: Residues, y: Residues) -> Residues:
        """Return the product of elements in NTT form, in NTT form; shapes broadcast."""
        shape = np.broadcast_shapes(x.shape, y.shape)
        left, right = (np.ascontiguousarray(np.broadcast_to(array, shape)) for array in (x, y))
        out = np.empty(shape, dtype=np.uint32)
        _multiply(self._flat(left), self._flat(right), self._flat(out), self.prime_words, self.constants)
        return out

    def scale(self, x: Residues, per_prime: NDArray[Any]) -> Residues:
        """Return x times one number, given by its residues (L,), in the form x came in."""
        return self.multiply(x, np.asarray(per_prime, dtype=np.uint32)[:, None])

    def reduce(self, integers: NDArray[np.integer[Any]]) -> Residues:
        """Return the residues (..., L, N) of signed integers (..., N), any whose values fit int64."""
        flat = np.ascontiguousarray(integers, dtype=np.int64).reshape(-1, integers.shape[-1])
        out = np.empty((flat.shape[0], len(self.primes), flat.shape[1]), dtype=np.uint32)
        _reduce_integers(flat, out, self.prime_words, self.constants)
        return out.reshape(*integers.shape[:-1], len(self.primes), integers.shape[-1])

    def residues_of(self, number: int) -> Residues:
        """Return one integer's residues (L,)."""
        return np.array([number % prime for prime in self.primes], dtype=np.uint32)

    def to_integers(self, x: Residues) -> NDArray[np.object_]:
        """Return the integers in -q/2..q/2 whose residues are the last axis (..., L): Chinese remaindering."""
        total = np.zeros(x.shape[:-1], dtype=object)
        for place, prime in enumerate(self.primes):
            others = self.modulus // prime
            total = total + x[..., place].astype(object) * (others * pow(others, -1, prime))
        half = self.modulus // 2
        return np.asarray((total + half) % self.modulus - half, dtype=object)

    def _copy(self, x: Residues) -> Residues:
        """Return a contiguous copy of residues, having checked their shape."""
        if x.dtype != np.uint32 or x.shape[-2:] != (len(self.primes), self.degree):
            raise ConfigError(
                f"residues must be uint32 (..., {len(self.primes)}, {self.degree}); got {x.dtype} {x.shape}"
            )
        return np.array(x, dtype=np.uint32, order="C")

    def _flat(self, x: Residues) -> Residues:
        """Return a view (M, L, N)."""
        return x.reshape(-1, *x.shape[-2:])


@cache
def make_ring(degree: int, primes: tuple[int, ...]) -> Ring:
    """Return the ring; its tables are made once for each set of primes."""
    return Ring(degree, primes)


def check_residues(ring: Ring, array: Residues, shape: tuple[int, ...], name: str) -> None:
    """Refuse an array of another shape or with a residue at or above its prime; axes (..., L, N)."""
    if array.dtype != np.uint32 or array.shape != shape or array.shape[-2] != len(ring.primes):
        raise RemoteProtocolError(f"{name} must be uint32 {shape}; got {array.dtype} {array.shape}.")
    if (array >= ring.prime_words[:, None]).any():
        raise RemoteProtocolError(f"{name} must hold residues below their primes; it does not.")


def quotient(factor: int, prime: int) -> int:
    """Return the companion of a factor in Shoup's multiplication."""
    return (factor << 32) // prime


def _stage_factors(degree: int, root: int, prime: int) -> list[int]:
    """Return all stages' factors psi^rev(2^s + i), one stage after the other; the inverse's with 1/psi."""
    powers = [1] * degree
    for i in range(1, degree):
        powers[i] = powers[i - 1] * root % prime
    bits = degree.bit_length() - 1
    table: list[int] = []
    for stage in range(bits):
        count = 1 << stage
        factors = [powers[int(f"{count + i:0{bits}b}"[::-1], 2)] for i in range(count)]
        table += factors * (stage_period(stage, degree // 2) // count)
    return table


def _stack(tables: list[list[int]], primes: tuple[int, ...]) -> tuple[Residues, Residues]:
    """Return the factors and their quotients, a row for each prime."""
    quotients = [[quotient(x, prime) for x in table] for table, prime in zip(tables, primes, strict=True)]
    return np.array(tables, dtype=np.uint32), np.array(quotients, dtype=np.uint32)


@compile_loop
def _multiply(x: Residues, y: Residues, out: Residues, primes: Residues, constants: Residues) -> None:
    """Multiply place by place, (M, L, N)."""
    for m in range(x.shape[0]):
        for l in range(primes.size):  # noqa: E741
            prime, unit, power, power_quotient = primes[l], constants[l, 0], constants[l, 1], constants[l, 2]
            left, right, target = x[m, l], y[m, l], out[m, l]
            for i in range(left.size):
                product = np.uint64(left[i]) * np.uint64(right[i])
                target[i] = reduce_wide(product, prime, unit, power, power_quotient)


@compile_loop
def _reduce_integers(integers: IntArray, out: Residues, primes: Residues, constants: Residues) -> None:
    """Write the residues of (M, N) as (M, L, N): the word's residue, less 2^64 where the sign bit is set."""
    for m in range(integers.shape[0]):
        row = integers[m]
        for l in range(primes.size):  # noqa: E741
            prime, unit, power, power_quotient = primes[l], constants[l, 0], constants[l, 1], constants[l, 2]
            target = out[m, l]
            for i in range(row.size):
                word = reduce_wide(np.uint64(row[i]), prime, unit, power, power_quotient)
                lack = np.uint32(constants[l, 3] & np.uint32(row[i] >> 63))
                target[i] = subtract_once(np.uint32(word + lack), prime)
