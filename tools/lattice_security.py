"""What the best known lattice attack of one kind costs on each ring: ``python -m tools.lattice_security``.

The attack: from m samples of (a, a s + e) modulo q build the lattice of Bai and Galbraith ("Lattice decoding attacks on
binary LWE", 2014), in which (s, e, 1), with s scaled up to the size of e, is much shorter than any other vector, and
find it by BKZ with blocks of beta. It is found once its projection is shorter than the Gram-Schmidt norm there (Alkim,
Ducas, Poeppelmann and Schwabe, "Post-quantum key exchange - a new hope", 2016, section 6.3):

    std sqrt(beta) <= delta^(2 beta - d - 1) vol^(1/d),   d = m + n + 1,   vol = q^m (std / std_s)^n,
    delta = ((pi beta)^(1/beta) beta / (2 pi e))^(1 / (2 (beta - 1)))        (Chen, thesis, 2013).

Two prices of the least such beta, over all m. Core-SVP, one call of a sieve and nothing else: 0.292 beta bits
classically, 0.265 beta with a quantum computer. And that of the 2018 standard's table: 8 d calls of
2^(0.292 beta + 16.4) operations (Albrecht et al., "Homomorphic encryption security standard", 2018, section 2.1.2).
This is one attack; the table in ``lattice/parameters.py`` stands for all of them. Against more than one secret or
sample nothing changes: m is what the attacker wants it to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, inf, log2, pi, sqrt

from cloister.lattice.parameters import MODULUS_BITS_MAX, SECURITY_BITS
from cloister.lattice.sampling import ERROR_STD

TERNARY_STD = sqrt(2 / 3)
_BLOCK_LEAST = 60


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The cheapest attack of this kind.

    Attributes
    ----------
    block
        Beta.
    dimension
        Of the lattice.
    """

    block: int
    dimension: int

    @property
    def core_bits(self) -> float:
        """Core-SVP, classical."""
        return 0.292 * self.block

    @property
    def quantum_bits(self) -> float:
        """Core-SVP with a quantum computer."""
        return 0.265 * self.block

    @property
    def table_bits(self) -> float:
        """The price that the standard's table of 2018 was made with."""
        return 0.292 * self.block + 16.4 + log2(8 * self.dimension)


def estimate_security(
    degree: int, modulus_bits: float, *, secret_std: float = TERNARY_STD, error_std: float = ERROR_STD
) -> Estimate:
    """Return the cheapest attack on a ring of this degree and modulus."""
    low, high = _BLOCK_LEAST, 16 * degree
    while low < high:  # a larger block finds whatever a smaller one does
        middle = (low + high) // 2
        if _find_dimension(degree, modulus_bits, secret_std, error_std, middle) is None:
            low = middle + 1
        else:
            high = middle
    dimension = _find_dimension(degree, modulus_bits, secret_std, error_std, low)
    assert dimension is not None
    return Estimate(block=low, dimension=dimension)


def _find_dimension(degree: int, modulus_bits: float, secret_std: float, error_std: float, block: int) -> int | None:
    """Return the lattice in which blocks of this size find the secret, or None."""
    root = log2((pi * block) ** (1 / block) * block / (2 * pi * e)) / (2 * (block - 1))
    best, found = -inf, None
    for samples in range(max(1, degree // 8), 2 * degree + 1, max(1, degree // 256)):
        dimension = samples + degree + 1
        volume = samples * modulus_bits + degree * log2(error_std / secret_std)
        room = (2 * block - dimension - 1) * root + volume / dimension - log2(error_std * sqrt(block))
        if room > best:
            best, found = room, dimension
    return found if best >= 0 else None


def main() -> None:
    """Print the table."""
    print("degree  modulus bits  block  dimension  core-SVP  quantum  as in 2018")
    for degree, bits in MODULUS_BITS_MAX.items():
        found = estimate_security(degree, bits)
        print(
            f"{degree:6}  {bits:12}  {found.block:5}  {found.dimension:9}  {found.core_bits:8.1f}  "
            f"{found.quantum_bits:7.1f}  {found.table_bits:10.1f}"
        )
    print(f"{SECURITY_BITS} bits are wanted of the last column.")


if __name__ == "__main__":
    main()
