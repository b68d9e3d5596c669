"""The homomorphic-encryption standard's table: how large a modulus a ring may have.

HomomorphicEncryption.org security standard (Albrecht et al. 2018), table 1: secret with coefficients uniform in
{-1, 0, 1}, error of standard deviation 3.2, 128 bits against classical attacks. A larger modulus with the same ring
is less secure, so the table is a ceiling.
"""

from __future__ import annotations

from types import MappingProxyType

from cloister.errors import ConfigError

SECURITY_BITS = 128
MODULUS_BITS_MAX = MappingProxyType({2048: 54, 4096: 109, 8192: 218})


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
