"""An independent, slow implementation: whole integers instead of residues, products from the school book, no transform.

Only the byte stream (ChaCha20) is shared with the program.
"""

from fractions import Fraction
from math import prod

from cloister.crypto import Stream, derive_key


def multiply(x, y, modulus):
    """The product of two polynomials modulo X^N + 1."""
    degree = len(x)
    out = [0] * degree
    for i, a in enumerate(x):
        if a:
            for j, b in enumerate(y):
                if i + j < degree:
                    out[i + j] += a * b
                else:
                    out[i + j - degree] -= a * b
    return [value % modulus for value in out]


def add(x, y, modulus):
    return [(a + b) % modulus for a, b in zip(x, y, strict=True)]


def subtract(x, y, modulus):
    return [(a - b) % modulus for a, b in zip(x, y, strict=True)]


def centre(value, modulus):
    value %= modulus
    return value - modulus if value > modulus // 2 else value


def from_residues(residues, primes):
    """The integer with these residues: search by Garner's digits, not by the program's formula."""
    value, step = 0, 1
    for residue, prime in zip(residues, primes, strict=True):
        digit = (residue - value) * pow(step, -1, prime) % prime
        value += digit * step
        step *= prime
    return value


def polynomial_from_residues(rows, primes):
    """A polynomial of integers from rows (L, N)."""
    return [from_residues([int(row[i]) for row in rows], primes) for i in range(len(rows[0]))]


def evaluate(coefficients, point, prime):
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % prime
    return value


def reverse_bits(number, bits):
    return sum(((number >> i) & 1) << (bits - 1 - i) for i in range(bits))


def expand(primes, degree, key, count, *context):
    """Uniform residues: one word after the other, those at or above the prime left out."""
    stream = Stream(derive_key(key, *context))
    out = []
    for _ in range(count):
        rows = []
        for prime in primes:
            row = []
            while len(row) < degree:
                word = int.from_bytes(stream.bytes(4), "little") & ((1 << prime.bit_length()) - 1)
                if word < prime:
                    row.append(word)
            rows.append(row)
        out.append(rows)
    return out


def exponential(x, terms=400):
    """e^x for a negative fraction, to 300 bits: Taylor's series of e^|x|, inverted."""
    total, term = Fraction(1), Fraction(1)
    for i in range(1, terms):
        term = Fraction(round(term * -x / i * 2**400), 2**400)
        total += term
    return 1 / total


def gaussian_tails(std, most):
    """P(|e| > k) of the discrete Gaussian, k = 0..most-1, as fractions."""
    weights = [exponential(Fraction(-k * k) / (2 * Fraction(std) ** 2)) * (1 if k == 0 else 2) for k in range(2 * most)]
    total = sum(weights)
    return [sum(weights[k + 1 :]) / total for k in range(most)]


def draw_error(word, tails):
    """One error from a 64-bit word: the lowest bit the sign, the others the absolute value by inversion."""
    value = Fraction(word >> 1, 2**63)
    size = sum(value >= 1 - tail for tail in tails)
    return -size if word & 1 else size


def round_plain(noisy, primes, plaintext_modulus):
    """The messages in body - mask * s."""
    q = prod(primes)
    delta = q // plaintext_modulus
    rounded = [round(Fraction(centre(value, q), delta)) for value in noisy]
    return [(value + plaintext_modulus // 2) % plaintext_modulus - plaintext_modulus // 2 for value in rounded]
