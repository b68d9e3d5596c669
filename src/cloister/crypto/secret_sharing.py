"""Shamir's secret sharing of a 256-bit key: any ``threshold`` shares give it back, fewer say nothing about it.

The key is f(0) of a polynomial of degree threshold - 1 over the integers modulo p = 2^256 + 297, the smallest prime
above every key; the other coefficients are uniform. The holder with number x > 0 gets f(x), 33 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cloister.crypto.stream import Entropy
from cloister.errors import LocalProtocolError, RemoteProtocolError

PRIME = 2**256 + 297
SECRET_BYTES = 32
SHARE_BYTES = 33


def split_secret(secret: bytes, *, threshold: int, holders: Iterable[int], entropy: Entropy) -> dict[int, bytes]:
    """Return one share for each holder's number, from 1."""
    numbers = sorted(set(holders))
    if len(secret) != SECRET_BYTES or not 1 <= threshold <= len(numbers) or numbers[0] < 1:
        raise LocalProtocolError(
            f"a secret of {SECRET_BYTES} bytes must be split among holders numbered from 1, at least the threshold; "
            f"got {len(secret)} bytes, threshold {threshold} and {len(numbers)} holders"
        )
    coefficients = [int.from_bytes(secret, "little"), *(_draw_below_prime(entropy) for _ in range(threshold - 1))]
    return {number: _evaluate(coefficients, number).to_bytes(SHARE_BYTES, "little") for number in numbers}


def combine_shares(shares: Mapping[int, bytes]) -> bytes:
    """Return the secret that exactly these shares, as many as the threshold, interpolate at 0.

    Raises
    ------
    RemoteProtocolError
        If a share is malformed or together they do not give a key: someone sent a wrong share.
    """
    values = {number: int.from_bytes(share, "little") for number, share in shares.items()}
    malformed = any(len(share) != SHARE_BYTES for share in shares.values())
    if not shares or malformed or min(shares) < 1 or max(values.values()) >= PRIME:
        raise RemoteProtocolError(
            f"shares must be {SHARE_BYTES} bytes below the prime, of numbered holders; some are not."
        )
    secret = 0
    for number, value in values.items():  # Lagrange at 0: f(0) = sum of f(x) prod over y != x of y / (y - x)
        numerator = denominator = 1
        for other in values:
            if other != number:
                numerator = numerator * other % PRIME
                denominator = denominator * (other - number) % PRIME
        secret += value * numerator * pow(denominator, -1, PRIME)
    secret %= PRIME
    if secret >> (8 * SECRET_BYTES):
        raise RemoteProtocolError("shares must be of one key and as many as its threshold; these do not give a key.")
    return secret.to_bytes(SECRET_BYTES, "little")


def _evaluate(coefficients: list[int], at: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * at + coefficient) % PRIME
    return value


def _draw_below_prime(entropy: Entropy) -> int:
    """Uniform modulo the prime: 257 random bits, drawn again if too large, as about half are."""
    while True:
        raw = int.from_bytes(entropy.bytes(SHARE_BYTES), "little") >> (8 * SHARE_BYTES - PRIME.bit_length())
        if raw < PRIME:
            return raw
