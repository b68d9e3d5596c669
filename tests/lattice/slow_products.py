"""Products of ciphertexts once more, from the formulas, in Python's integers: polynomials are lists, moduli are whole.

A product modulo X^N + 1 is one product of long integers (Kronecker substitution), so real ring sizes can be compared.
"""

from math import prod


def lift(primes, residues):
    """Integers 0..q-1 from coefficient rows (L, N)."""
    q = prod(primes)
    idempotents = [q // p * pow(q // p, -1, p) for p in primes]
    columns = zip(*(row.tolist() for row in residues), strict=True)
    return [sum(x * unit for x, unit in zip(column, idempotents, strict=True)) % q for column in columns]


def centre(value, modulus):
    value %= modulus
    return value - modulus if value > modulus // 2 else value


def negacyclic(left, right, q):
    """The product of two lists modulo X^N + 1 and q."""
    degree = len(left)
    width = (2 * q.bit_length() + degree.bit_length()) // 8 + 1

    def join(polynomial):
        return int.from_bytes(b"".join((x % q).to_bytes(width, "little") for x in polynomial), "little")

    raw = (join(left) * join(right)).to_bytes(2 * degree * width, "little")
    values = [int.from_bytes(raw[i * width : (i + 1) * width], "little") for i in range(2 * degree)]
    return [(values[i] - values[i + degree]) % q for i in range(degree)]


def add(left, right, q):
    return [(x + y) % q for x, y in zip(left, right, strict=True)]


def phase(mask, body, secret, q):
    """The centred integers body - mask s."""
    product = negacyclic(mask, secret, q)
    return [centre(b - x, q) for b, x in zip(body, product, strict=True)]


def divide(polynomial, q, divisor, t):
    """The least change by multiples of t that the divisor divides, divided; modulo q / divisor."""
    inverse = pow(t, -1, divisor)
    return [(x - t * centre(inverse * x, divisor)) // divisor % (q // divisor) for x in polynomial]


def relinearise(mask, body, square, key_masks, key_bodies, primes):
    """Mask and body after the square part is replaced, digit by digit."""
    q = prod(primes)
    for prime, key_mask, key_body in zip(primes, key_masks, key_bodies, strict=True):
        digits = [centre(x, prime) for x in square]
        mask = add(mask, negacyclic(digits, key_mask, q), q)
        body = add(body, negacyclic(digits, key_body, q), q)
    return mask, body
