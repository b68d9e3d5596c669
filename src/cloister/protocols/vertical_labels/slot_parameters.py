"""Parameters for slots: t = 65537, q about 1 modulo t, and room for a flood over all coefficients of all answers.

A product of plaintexts is reduced modulo t, and what is left over, a multiple k of t, becomes an error k (q mod t):
with primes as they come, by far the largest one. Primes are chosen so that q mod t is 1, or 2 or 3, instead.
"""

from __future__ import annotations

from functools import cache
from itertools import count as count_up
from math import ceil, log2, prod

from cloister.errors import ConfigError
from cloister.lattice.parameters import Parameters
from cloister.lattice.primes import find_primes
from cloister.lattice.slots import SLOT_MODULUS, slot_error_bound
from cloister.protocols.vertical.flood import STATISTICAL_BITS

# Degree and number of 27-bit primes, in order of cost.
_LADDER = ((4096, 4), (8192, 5), (8192, 6), (8192, 7), (8192, 8))
_CANDIDATES = 400  # the largest primes: 80,000 pairs, about one for each residue modulo 65537


@cache
def choose_slot_parameters(*, cells: int, records: int, public_key: bool) -> Parameters:
    """Return the cheapest parameters under which every label is right and there is room for the flood.

    Parameters
    ----------
    cells
        How many ciphertexts are added up for a label.
    records
        How many labels a session has.
    public_key
        Encrypted under a public key, not by the holder of the secret.

    Raises
    ------
    ConfigError
        No ring of the standard's table has the room.
    """
    for degree, prime_count in _LADDER:
        parameters = Parameters(
            degree=degree, primes=find_slot_primes(degree, prime_count), plaintext_modulus=SLOT_MODULUS
        )
        error = slot_error_bound(parameters, cells, public_key=public_key)
        flood_bits = choose_flood_bits(error, degree=degree, records=records)
        if 2.0**flood_bits + error < parameters.delta / 2:
            return parameters
    raise ConfigError(
        f"labels of {records} records in {cells} cells must fit a modulus of 216 bits with their flood; they do not. "
        "Use fewer cells."
    )


def choose_flood_bits(error: float, *, degree: int, records: int) -> int:
    """Return b such that floods uniform on -2^b..2^b-1 hide errors up to ``error`` in all coefficients of a session.

    One coefficient is hidden to 2 error / 2^(b+1); there are N of them in each block. Together: 2^-40.
    """
    return ceil(log2(error)) + STATISTICAL_BITS + ceil(log2(count_coefficients(degree, records)))


def count_coefficients(degree: int, records: int) -> int:
    """Return how many coefficients all answers of a session have."""
    return -(-records // degree) * degree


@cache
def find_slot_primes(degree: int, count: int) -> tuple[int, ...]:
    """Return primes of 27 bits, 1 modulo 2N, whose product has the least remainder modulo t that is to be had.

    All but two are the largest there are; of the others, the first pair that fits.
    """
    candidates = find_primes(degree, _CANDIDATES)
    fixed, others = candidates[: count - 2], candidates[count - 2 :]
    with_residue = {prime % SLOT_MODULUS: prime for prime in reversed(others)}
    base = prod(fixed) % SLOT_MODULUS
    pairs = (
        (first, second)
        for wanted in count_up(1)
        for first in others
        if (second := with_residue.get(wanted * pow(base * first, -1, SLOT_MODULUS) % SLOT_MODULUS, first)) != first
    )
    return (*fixed, *next(pairs))
