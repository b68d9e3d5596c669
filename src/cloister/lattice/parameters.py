"""What a lattice session agrees on, and how it is chosen: the smallest secure ring in which no answer can fail.

A plaintext m is carried as delta * m with delta = floor(q / t). An answer is right while its error stays below about
delta / 2 (:mod:`~cloister.lattice.noise`), so everything follows from public bounds on what will be added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import log2, prod

from cloister.errors import ConfigError
from cloister.lattice import noise
from cloister.lattice.primes import PRIME_BITS, find_primes, is_prime
from cloister.lattice.ring import Ring
from cloister.lattice.standard import check_security

# Degree and number of 27-bit primes, in order of cost: 54, 81, 108 bits, and up to 216.
_LADDER = ((2048, 2), (4096, 3), (4096, 4), (8192, 5), (8192, 6), (8192, 7), (8192, 8))


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
        """Take the largest primes for a degree."""
        return cls(degree=degree, primes=find_primes(degree, prime_count), plaintext_modulus=plaintext_modulus)

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
        return _make_ring(self.degree, self.primes)


@cache
def _make_ring(degree: int, primes: tuple[int, ...]) -> Ring:
    """Share the tables of rings among parameters."""
    return Ring(degree, primes)


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
    """

    sum_max: int
    terms: int
    weight_max: int
    key_holders: int = 1
    public_key: bool = False

    def __post_init__(self) -> None:
        if min(self.sum_max, self.terms, self.weight_max, self.key_holders) < 1:
            raise ConfigError(f"all bounds of a load must be at least 1; got {self}.")

    @property
    def plaintext_modulus(self) -> int:
        """The least power of two above twice the largest sum."""
        return 1 << (2 * self.sum_max).bit_length()


def choose_parameters(load: Load, *, flood_std_min: float = 0.0, flood_distance_bits: int = 0) -> Parameters:
    """Return the cheapest parameters under which every answer is right and there is room for the flood.

    Parameters
    ----------
    load
        What is added up.
    flood_std_min
        The standard deviation that the flooding error must be able to have.
    flood_distance_bits
        Where above 0: room for a uniform flood that hides the error to a statistical distance of 2^-bits an answer
        (:func:`~cloister.lattice.noise.statistical_flood_bits`).

    Raises
    ------
    ConfigError
        No ring of the standard's table has the room.
    """
    lacking_bits = 0.0
    for degree, prime_count in _LADDER:
        if load.plaintext_modulus > 1 << (PRIME_BITS * prime_count - 3):
            continue
        parameters = Parameters.make(degree, prime_count, load.plaintext_modulus)
        reach = noise.FLOOD_REACH_STD * flood_std_min
        if flood_distance_bits:
            reach = max(reach, 2.0 ** noise.statistical_flood_bits(parameters, load, flood_distance_bits))
        room = noise.flood_reach_max(parameters, load)
        if room > reach:
            return parameters
        taken = noise.answer_error_bound(parameters, load) + reach
        lacking_bits = log2(taken / (parameters.delta / 2)) + 1
    raise ConfigError(
        f"sums up to 2^{log2(load.sum_max):.0f} over {load.terms} terms with weights up to {load.weight_max} must fit "
        f"a modulus of {PRIME_BITS * _LADDER[-1][1]} bits; about {max(lacking_bits, 1):.0f} bits are lacking. "
        "Use fewer fractional bits, fewer cells or less flooding."
    )
