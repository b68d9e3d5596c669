"""What a lattice session agrees on: a ring of the table, and the integers that travel in it.

The table is, row by row, the stricter of two: of the HomomorphicEncryption.org security standard (Albrecht et al. 2018,
table 1), and of its successor (Bossuat et al., "Security guidelines for implementing homomorphic encryption", 2024).
Secret with coefficients uniform in {-1, 0, 1}, error of standard deviation 3.2, 128 bits against classical attacks. A
larger modulus with the same ring is less secure, so the table is a ceiling. ``tools/lattice_security.py`` estimates
what one attack costs.

A plaintext m is carried as delta * m with delta = floor(q / t). An answer is right while its error stays below about
delta / 2, so everything follows from public bounds on what will be added up: a :class:`Load`, from which
:func:`~cloister.lattice.noise.choose_parameters` finds the smallest ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, prod, sqrt
from types import MappingProxyType

from cloister.errors import ConfigError, LocalProtocolError
from cloister.lattice.ring import PRIME_BITS, Ring, find_primes, is_prime, make_ring

SECURITY_BITS = 128
FAILURE_BITS = 44
"""An answer's bounds rest on at most sixteen events: together they fail with a probability below 2^-40."""
MODULUS_BITS_MAX = MappingProxyType({2048: 53, 4096: 106, 8192: 214})
"""In 2018: 54, 109, 218. In 2024: these; and 430 at 16384, 868 at 32768, which nothing here needs."""


def check_security(degree: int, modulus: int) -> None:
    """Refuse a ring that the table does not hold, and a modulus with a bit more than it allows.

    Raises
    ------
    ConfigError
        The table has no such degree, or the modulus has more bits than the table says.
    """
    if degree not in MODULUS_BITS_MAX:
        known = ", ".join(str(size) for size in MODULUS_BITS_MAX)
        raise ConfigError(f"a ring's degree must be one of {known}; got {degree}. Take one of these.")
    most = MODULUS_BITS_MAX[degree]
    if modulus.bit_length() > most:
        raise ConfigError(
            f"a ring of degree {degree} must have a modulus of at most {most} bits for {SECURITY_BITS}-bit security; "
            f"got {modulus.bit_length()}. Take a larger ring or fewer primes."
        )


def bound_primes(degree: int, prime_count: int) -> int:
    """Return what primes must be below, so that the product of so many is within the table."""
    bits = MODULUS_BITS_MAX.get(degree, PRIME_BITS * prime_count) / prime_count
    return 1 << PRIME_BITS if bits >= PRIME_BITS else int(2**bits)


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """A ring, and the integers that travel in it.

    Attributes
    ----------
    degree
        N, the number of coefficients.
    primes
        Their product is the modulus q; distinct, below 2^27 and 1 modulo 2N.
    plaintext_modulus
        t; integers are exact modulo t, centred. A power of two for sums, 65537 for slots.
    """

    degree: int
    primes: tuple[int, ...]
    plaintext_modulus: int

    def __post_init__(self) -> None:
        check_security(self.degree, self.modulus)
        fit = [not p >> PRIME_BITS and p % (2 * self.degree) == 1 and is_prime(p) for p in self.primes]
        if not fit or not all(fit) or len(set(self.primes)) < len(self.primes):
            raise ConfigError(
                f"moduli must be distinct primes below 2^{PRIME_BITS} that are 1 modulo {2 * self.degree}; "
                f"got {self.primes}. Use Parameters.make."
            )
        if not 2 <= self.plaintext_modulus <= self.modulus // 4:
            raise ConfigError(
                f"a plaintext modulus must be from 2 to a quarter of the modulus of {self.modulus_bits} bits; "
                f"got one of {self.plaintext_modulus.bit_length()} bits. Use more primes or smaller sums."
            )

    @classmethod
    def make(cls, degree: int, prime_count: int, plaintext_modulus: int) -> Parameters:
        """Take the largest primes for a degree whose product the table allows."""
        primes = find_primes(degree, prime_count, below=bound_primes(degree, prime_count))
        return cls(degree=degree, primes=primes, plaintext_modulus=plaintext_modulus)

    @property
    def modulus(self) -> int:
        """The ciphertext modulus q."""
        return prod(self.primes)

    @property
    def modulus_bits(self) -> int:
        """The length of q."""
        return self.modulus.bit_length()

    @property
    def delta(self) -> int:
        """What a plaintext is multiplied by."""
        return self.modulus // self.plaintext_modulus

    @cached_property
    def ring(self) -> Ring:
        """The arithmetic; its tables are made once for each set of primes."""
        return make_ring(self.degree, self.primes)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the answers of a session add up, all public bounds.

    Attributes
    ----------
    sum_max
        The largest absolute value of a plaintext sum, the reach of the privacy noise included.
    terms
        Records times cells that one answer adds up: each term is a weight times one fresh error.
    weight_max
        The largest absolute value of a weight.
    key_holders
        How many secrets the key is a sum of.
    public_key
        Encrypted under a public key, one party's or a collective one: a larger fresh error.
    failure_bits
        Each event that an answer's bounds rest on fails with a probability below 2^-failure_bits.
    """

    sum_max: int
    terms: int
    weight_max: int
    key_holders: int = 1
    public_key: bool = False
    failure_bits: int = FAILURE_BITS

    def __post_init__(self) -> None:
        if min(self.sum_max, self.terms, self.weight_max, self.key_holders) < 1:
            raise ConfigError(f"all bounds of a load must be at least 1; got {self}.")

    @property
    def failure(self) -> float:
        """X: an event fails with a probability below e^-x."""
        return self.failure_bits * log(2)

    @property
    def tail(self) -> float:
        """P(|X| > tail * proxy std) <= 2 exp(-tail^2 / 2) = e^-failure."""
        return sqrt(2 * (self.failure + log(2)))

    @property
    def plaintext_modulus(self) -> int:
        """The least power of two above twice the largest sum."""
        return 1 << (2 * self.sum_max).bit_length()


def parameters_at(parameters: Parameters, prime_count: int) -> Parameters:
    """Return the same ring and plaintext modulus over the first ``prime_count`` primes."""
    if not 1 <= prime_count <= len(parameters.primes):
        raise LocalProtocolError(f"a level has 1 to {len(parameters.primes)} of the primes; got {prime_count}.")
    return Parameters(
        degree=parameters.degree,
        primes=parameters.primes[:prime_count],
        plaintext_modulus=parameters.plaintext_modulus,
    )
