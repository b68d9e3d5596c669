"""Residues as bytes: as many bits each as they need, one after the other, little-endian, no gaps.

Whatever comes in is checked: the number of bytes, zeros in the bits after the last word, and every residue below its
prime. A message is accepted or refused with :class:`~cloister.errors.RemoteProtocolError`; no value is ever quoted.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.errors import ConfigError, RemoteProtocolError
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters
from cloister.lattice.ring import PRIME_BITS

_WORD_BITS = 64


def count_bytes(words: int, bits: int) -> int:
    """Return how many bytes hold so many words."""
    return (words * bits + 7) // 8


def pack_words(array: NDArray[Any], bits: int) -> bytes:
    """Return unsigned words, each below 2^bits, as bytes.

    Parameters
    ----------
    array
        uint32 or uint64, any shape, taken in C order.
    bits
        From 1 to 64.
    """
    _check_bits(bits)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind != "u":
        raise ConfigError(f"words must be unsigned; got {flat.dtype}.")
    out = np.zeros((flat.size * bits + _WORD_BITS - 1) // _WORD_BITS, dtype=np.uint64)
    if not _pack(flat, bits, out):
        raise ConfigError(f"words must be below 2^{bits}; at least one is not.")
    return out.astype("<u8", copy=False).tobytes()[: count_bytes(flat.size, bits)]


def unpack_words(raw: bytes, bits: int, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """Return the words that :func:`pack_words` wrote, uint64 with the given shape.

    Raises
    ------
    RemoteProtocolError
        There are more or fewer bytes than the shape needs, or bits after the last word are set.
    """
    out = np.empty(prod(shape), dtype=np.uint64)
    _unpack_into(raw, bits, out)
    return out.reshape(shape)


def pack_residues(x: Residues, primes: tuple[int, ...]) -> bytes:
    """Return residues (..., L, N) or (..., L) with L primes as bytes, 27 bits each."""
    if x.dtype != np.uint32 or len(primes) not in x.shape[-2:]:
        raise ConfigError(f"residues must be uint32 with an axis of {len(primes)} primes; got {x.dtype} {x.shape}.")
    return pack_words(x, PRIME_BITS)


def unpack_residues(raw: bytes, parameters: Parameters, shape: tuple[int, ...]) -> Residues:
    """Return the residues that :func:`pack_residues` wrote.

    Parameters
    ----------
    raw
        What came in.
    parameters
        The ring.
    shape
        (..., L, N), or (..., L) for single numbers.

    Raises
    ------
    RemoteProtocolError
        Wrong number of bytes, bits set after the last residue, or a residue not below its prime.
    """
    primes, degree = parameters.ring.prime_words, parameters.degree
    if shape[-2:] == (primes.size, degree):
        run = degree
    elif shape[-1:] == (primes.size,):
        run = 1
    else:
        raise ConfigError(f"residues must be (..., {primes.size}, {degree}) or (..., {primes.size}); got {shape}.")
    out = np.empty(prod(shape), dtype=np.uint32)
    _unpack_into(raw, PRIME_BITS, out)
    if not _all_below(out, primes, run):
        raise RemoteProtocolError("every residue must be below its prime; at least one is not.")
    return out.reshape(shape)


def _check_bits(bits: int) -> None:
    if not 1 <= bits <= _WORD_BITS:
        raise ConfigError(f"words must have from 1 to {_WORD_BITS} bits; got {bits}.")


def _unpack_into(raw: bytes, bits: int, out: NDArray[Any]) -> None:
    _check_bits(bits)
    wanted = count_bytes(out.size, bits)
    if len(raw) != wanted:
        raise RemoteProtocolError(f"{out.size} words of {bits} bits must have {wanted} bytes; got {len(raw)}.")
    spare = 8 * wanted - out.size * bits
    if spare and raw[-1] >> (8 - spare):
        raise RemoteProtocolError(f"the last {spare} bits must be zero, after {out.size} words of {bits} bits.")
    padded = np.zeros(wanted // 8 + 2, dtype="<u8")  # one word more than needed: the loop reads two for each
    padded.view(np.uint8)[:wanted] = np.frombuffer(raw, dtype=np.uint8)
    _unpack(padded.astype(np.uint64, copy=False), bits, out)


@compile_loop
def _pack(words: NDArray[Any], bits: int, out: NDArray[np.uint64]) -> bool:
    """Write the words into a zeroed array of 64-bit ones; return whether all were small enough."""
    width = np.uint64(bits)
    full = np.uint64(_WORD_BITS)
    over = np.uint64(0)
    held = np.uint64(0)
    fill = np.uint64(0)
    place = 0
    for i in range(words.size):
        word = np.uint64(words[i])
        over |= (word >> np.uint64(1)) >> np.uint64(width - np.uint64(1))  # in two steps: a shift by 64 is undefined
        held |= word << fill
        fill += width
        if fill >= full:
            out[place] = held
            place += 1
            fill -= full
            held = (word >> np.uint64(1)) >> np.uint64(width - fill - np.uint64(1)) if fill < width else np.uint64(0)
    if fill:
        out[place] = held
    return bool(over == np.uint64(0))


@compile_loop
def _unpack(packed: NDArray[np.uint64], bits: int, out: NDArray[Any]) -> None:
    """Read each word from the two 64-bit ones that it may lie in."""
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(_WORD_BITS - bits)
    for i in range(out.size):
        position = np.uint64(i) * np.uint64(bits)
        place = np.intp(position >> np.uint64(6))
        shift = position & np.uint64(63)
        high = (packed[place + 1] << np.uint64(1)) << np.uint64(np.uint64(63) - shift)
        out[i] = ((packed[place] >> shift) | high) & mask


@compile_loop
def _all_below(residues: Residues, primes: Residues, run: int) -> bool:
    """Say whether each run of residues is below its prime, the primes taking turns."""
    wrong = np.uint32(0)
    for first in range(0, residues.size, run):
        prime = primes[(first // run) % primes.size]
        for i in range(first, first + run):
            wrong |= np.uint32(residues[i] >= prime)
    return bool(wrong == np.uint32(0))
