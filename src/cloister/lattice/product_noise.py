"""How large the error of a product of ciphertexts can be: bounds that hold but for probability 2^-40 an answer.

Everything is in units of t: a ciphertext's v = f m + t e is written v = t g. Two numbers describe a random polynomial
g:

* its *proxy*: for every fixed polynomial w, a coefficient of w g is sub-Gaussian with parameter proxy |w|;
* its *reach*: a bound on |g(zeta)| at every complex root zeta of X^N + 1. Reaches multiply, and |g h| <= reach(g) |h|.

A secret or error with independent coefficients of parameter sigma has the reach sigma sqrt(N) spread, spread^2 = 1 +
sqrt(2x) + x with x = ln(events N / 2) + 44 ln 2 (Hsu, Kakade, Zhang 2012, for the real and imaginary part together).
Rounding errors and the digits of relinearisation are taken as uniform and independent; that is the usual model of a
ciphertext's residues, and the one assumption here beyond RLWE. Proof: docs/proofs/joint-cells.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

from cloister.lattice.primes import PRIME_BITS
from cloister.lattice.sampling import ERROR_STD

_FAILURE = 44 * log(2)  # each of at most sixteen kinds of event fails with probability below 2^-44
TAIL = sqrt(2 * (_FAILURE + log(2)))
_TERNARY_PROXY = sqrt(2 / 3)
_UNIFORM_PROXY = sqrt(1 / 12)  # of a rounding error on -1/2..1/2


@dataclass(frozen=True, kw_only=True)
class ProductNoise:
    """Bounds for one ring, plaintext modulus and key.

    Attributes
    ----------
    degree
        N.
    plaintext_modulus
        t.
    key_holders
        How many ternary secrets the key is a sum of; with more than one, the relinearisation key is the collective one.
    polynomials
        How many ciphertexts a session has: all of them must keep to their reach.
    """

    degree: int
    plaintext_modulus: int
    key_holders: int
    polynomials: int

    @property
    def spread(self) -> float:
        """Reach of a polynomial with independent coefficients over its deviation sigma sqrt(N)."""
        x = _FAILURE + log(self.polynomials * self.degree / 2)
        return sqrt(1 + sqrt(2 * x) + x)

    def reach(self, proxy: float) -> float:
        """Return the reach of a polynomial from its proxy."""
        return proxy * sqrt(self.degree) * self.spread

    @property
    def secret_reach(self) -> float:
        """Reach of the key: a sum of ternary secrets."""
        return self.reach(_TERNARY_PROXY * sqrt(self.key_holders))

    @property
    def key_error_reach(self) -> float:
        """Reach of the error of a public key: a sum of the holders' errors."""
        return self.reach(ERROR_STD * sqrt(self.key_holders))

    @property
    def fresh_proxy(self) -> float:
        """Proxy of e_pk u + e2 - e1 s given the key: linear in u (ternary), e1 and e2."""
        of_errors = ERROR_STD * sqrt(1 + self.secret_reach**2)
        return sqrt((_TERNARY_PROXY * self.key_error_reach) ** 2 + of_errors**2)

    @property
    def rounding_proxy(self) -> float:
        """Proxy of r_body - r_mask s, what dividing a ciphertext by primes adds."""
        return _UNIFORM_PROXY * sqrt(1 + self.secret_reach**2)

    @property
    def message_reach(self) -> float:
        """Reach of m / t: N coefficients of at most 1/2."""
        return self.degree / 2

    def relinearisation_proxy(self, prime_count: int) -> float:
        """Proxy of sum_i digit_i e_i given the key's errors: digits uniform on +-p/2.

        One holder: e_i as drawn. Collective: s e0 + u e1 + e2 + e3, each a sum over the holders.
        """
        error = self.key_error_reach
        if self.key_holders > 1:
            error = 2 * error * (self.secret_reach + 1)
        return _UNIFORM_PROXY * 2.0**PRIME_BITS * sqrt(prime_count) * error

    def uploaded_proxy(self, divisor: float) -> float:
        """Proxy of a fresh ciphertext that its encryptor has divided by some primes (1: by none)."""
        rounding = self.rounding_proxy if divisor > 1 else 0.0
        return sqrt((self.fresh_proxy / divisor) ** 2 + rounding**2)

    def uploaded_reach(self, divisor: float) -> float:
        """Reach of the same, message included."""
        return self.reach(self.uploaded_proxy(divisor)) + self.message_reach

    def product_reach(self, left: float, right: float, prime_count: int) -> float:
        """Reach of a product after relinearisation, before division: v1 v2 / t = t g1 g2."""
        return self.plaintext_modulus * left * right + self.reach(self.relinearisation_proxy(prime_count))

    def divided_reach(self, reach: float, divisor: float) -> float:
        """Reach after division by primes."""
        return reach / divisor + self.reach(self.rounding_proxy)

    def answer_bound(
        self,
        *,
        left: float,
        divisor_right: float,
        divisor: float,
        prime_count: int,
        weight_norm: float,
        left_cells: int,
        right_cells: int,
        blocks: int,
    ) -> float:
        """Bound the error of an answer: the sum over cells of <weights, error of the product / divisor>.

        Given the left factors (reach ``left``), a product is linear in what the right encryptor drew, independently for
        each of its cells and blocks: those add up by their squares. The left factors are not independent of each other
        there, and are added up linearly. Digits and roundings are independent everywhere.

        Parameters
        ----------
        left
            Reach of the left factors of the last product.
        divisor_right
            What the right encryptor divided by.
        divisor
            What the products are divided by.
        prime_count
            Primes at the last product.
        weight_norm
            Euclidean norm of the weights of one cell, over all blocks.
        left_cells, right_cells, blocks
            Factors of the last product, and blocks of records, in an answer.
        """
        drawn = TAIL * self.uploaded_proxy(divisor_right) * sqrt(right_cells)
        # In each block |m_right / t| <= sqrt(N) / 2, and sum |w_b| <= sqrt(blocks) |w|.
        messages = sqrt(self.degree * blocks) / 2 * right_cells
        product = self.plaintext_modulus * left * left_cells * (drawn + messages)
        root = TAIL * sqrt(left_cells * right_cells)
        relinearised = root * self.relinearisation_proxy(prime_count)
        return weight_norm * ((product + relinearised) / divisor + root * self.rounding_proxy)
