"""Random polynomials: public masks grown from a seed, and secrets and errors from a secret stream.

*Masks* are exactly uniform modulo each prime: the low bits of 32-bit little-endian words of one ChaCha20 stream, in
order, those at or above the prime left out. The same seed gives the same masks on every machine.

*Errors* follow the discrete Gaussian of deviation 3.2, cut where less than 2^-64 is left. One 64-bit word gives one
error: its lowest bit the sign, the other 63 the absolute value, by inversion. Every entry of the table is compared with
every word, so that neither time nor memory access depends on the value. The table is rounded so that P(|e| > k)
is never more than the Gaussian's: sums of errors have tails no heavier than in the proofs.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from math import ceil, prod, sqrt
from math import log as ln
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.crypto import Context as Label
from cloister.crypto import Entropy, Stream, derive_key
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters

ERROR_STD: Final = 3.2
# P(|e| > k) < 2 exp(-k^2 / (2 sigma^2)) <= 2^-64.
ERROR_MAX: Final = ceil(ERROR_STD * sqrt(2 * 65 * ln(2)))
_VALUE_BITS = 63
_CHUNK = 512
_BYTE_LIMIT = 255  # 3 * 85: a byte below it is uniform modulo 3


def expand_uniform(parameters: Parameters, key: bytes, *context: Label) -> Residues:
    """Return a public polynomial (L, N) in NTT form, uniform; one for each key and context."""
    rows: Residues = _expand(parameters, derive_key(key, "lattice polynomial", *context), 1)[0]
    return rows


def expand_masks(parameters: Parameters, key: bytes, block: int, count: int) -> Residues:
    """Return the public masks (count, L, N) of one block in NTT form, uniform; fewer are the first of more."""
    return _expand(parameters, derive_key(key, "lattice masks", block), count)


def _expand(parameters: Parameters, key: bytes, count: int) -> Residues:
    """Fill polynomials from one stream; exactly as many words are drawn as places are left, so none is thrown away."""
    stream = Stream(key)
    primes = parameters.ring.prime_words
    out = np.empty((count * primes.size, parameters.degree), dtype=np.uint32)
    filled = 0
    while filled < out.size:
        filled = _fill_uniform(stream.words(out.size - filled, np.uint32), primes, out, filled)
    return out.reshape(count, primes.size, parameters.degree)


@compile_loop
def _fill_uniform(words: NDArray[np.uint32], primes: Residues, out: Residues, filled: int) -> int:
    """Write the acceptable words to the places from ``filled`` on; return how many places are then filled."""
    degree = out.shape[1]
    used = 0
    while used < words.size:
        row, place = filled // degree, filled % degree
        prime = primes[row % primes.size]
        mask = prime
        for shift in (1, 2, 4, 8, 16):
            mask |= mask >> np.uint32(shift)
        target = out[row]
        start = place
        while used < words.size and place < degree:
            word = np.uint32(words[used] & mask)
            target[place] = word
            place += np.intp(word < prime)
            used += 1
        filled += place - start
    return filled


def draw_ternary(stream: Entropy, *shape: int) -> NDArray[np.int8]:
    """Return secrets uniform on {-1, 0, 1}: bytes below 255 modulo 3; a rejected byte says nothing about the others."""
    count = prod(shape)
    parts: list[NDArray[np.int8]] = []
    left = count
    while left:
        raw = np.frombuffer(stream.bytes(left), dtype=np.uint8)
        part = (raw[raw < _BYTE_LIMIT] % np.uint8(3)).astype(np.int8) - np.int8(1)
        parts.append(part)
        left -= part.size
    return np.concatenate(parts).reshape(shape) if parts else np.empty(shape, dtype=np.int8)


def draw_errors(stream: Entropy, *shape: int) -> NDArray[np.int8]:
    """Return errors from the discrete Gaussian of deviation 3.2, at most ``ERROR_MAX`` in absolute value."""
    words = np.frombuffer(stream.bytes(8 * prod(shape)), dtype="<u8").astype(np.uint64, copy=False)
    out = np.empty(words.size, dtype=np.int8)
    _invert(words, ERROR_TABLE, out)
    return out.reshape(shape)


def _make_table() -> NDArray[np.uint64]:
    """Return Q_k = ceil(2^63 P(|e| <= k)), k < ERROR_MAX: the absolute value is how many Q_k a 63-bit word reaches.

    In 50 decimal digits, the same on every machine. Beyond ERROR_MAX nothing is left.
    """
    with localcontext(Context(prec=50)):
        variance = Decimal(str(ERROR_STD)) ** 2
        weights = [(-Decimal(k * k) / (2 * variance)).exp() * (1 if k == 0 else 2) for k in range(4 * ERROR_MAX)]
        total = sum(weights)
        scaled = [sum(weights[: k + 1]) / total * 2**_VALUE_BITS for k in range(ERROR_MAX)]
        return np.array([min(ceil(x), 2**_VALUE_BITS) for x in scaled], dtype=np.uint64)


ERROR_TABLE: Final = _make_table()


@compile_loop
def _invert(words: NDArray[np.uint64], table: NDArray[np.uint64], out: NDArray[np.int8]) -> None:
    """Write an error for each word; every entry is compared with every word."""
    reached = np.empty(_CHUNK, dtype=np.int64)
    values = np.empty(_CHUNK, dtype=np.int64)
    for first in range(0, words.size, _CHUNK):
        count = min(_CHUNK, words.size - first)
        for i in range(count):
            values[i] = np.int64(words[first + i] >> np.uint64(1))
            reached[i] = 0
        for k in range(table.size):
            entry = np.int64(table[k] - np.uint64(1))  # value >= Q as value > Q - 1: Q may be 2^63
            for i in range(count):
                reached[i] += np.int64(values[i] > entry)
        for i in range(count):
            sign = np.int64(words[first + i] & np.uint64(1))
            out[first + i] = np.int8((reached[i] ^ -sign) + sign)
