"""The number-theoretic transform, compiled: products modulo X^N + 1 become products of single residues.

Primes p < 2^27 in 32-bit words leave five spare bits, and with Shoup's multiplication (a factor w comes with
floor(2^32 w / p)) any 32-bit word times w is in 0..2p-1 without a comparison. The forward butterfly

    u, v -> u + wv, u - wv + 2p

adds at most 2p per stage, so that after s stages a value is below (1 + 2s) p < 2^32 up to s = 15 (N = 32768): nothing
is reduced before the end. The inverse butterfly keeps its values below 2p by one subtraction and one minimum.

Each stage has the same geometry (Pease): it reads j and j + N/2 and writes 2j and 2j + 1. All reads are contiguous and
the writes interleave, at every stage, so one loop is vectorised for all of them and one polynomial is enough to fill
the vectors. The index bits that earlier stages have resolved are the low ones, in the order they were resolved in:
the result is in the usual bit-reversed order, place i holding the value at psi^(2 rev(i) + 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_inline, compile_loop

Residues = NDArray[np.uint32]

# Stages with fewer factors than this repeat them, so that the inner loop always fills its vectors.
_PERIOD_MIN = 128
_SHIFT = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@compile_inline
def multiply_lazy(value: Any, factor: Any, quotient: Any, prime: Any) -> Any:
    """Return value * factor modulo p, in 0..2p-1; quotient = floor(2^32 factor / p), any 32-bit value (Shoup)."""
    high = np.uint32((np.uint64(value) * np.uint64(quotient)) >> _SHIFT)
    return np.uint32(np.uint32(value * factor) - np.uint32(high * prime))


@compile_inline
def subtract_once(value: Any, bound: Any) -> Any:
    """Return value modulo the bound, for a value below twice the bound: the lesser of two words, no branch."""
    less = np.uint32(value - bound)
    return min(value, less)


@compile_inline
def reduce_wide(value: Any, prime: Any, unit: Any, power: Any, power_quotient: Any) -> Any:
    """Return a 64-bit word modulo p, in 0..p-1; power = 2^32 mod p: high * power + low < 4p, then two minima."""
    high = multiply_lazy(np.uint32(value >> _SHIFT), power, power_quotient, prime)
    low = multiply_lazy(np.uint32(value & _LOW), np.uint32(1), unit, prime)
    twice = np.uint32(prime + prime)
    return subtract_once(subtract_once(np.uint32(high + low), twice), prime)


def stage_period(stage: int, half: int) -> int:
    """Return how many factors the table holds for a stage: 2^stage, repeated up to a full vector."""
    return max(1 << stage, min(half, _PERIOD_MIN))


@compile_loop
def _forward_stage(
    source: Residues, target: Residues, factors: Residues, quotients: Residues, period: int, prime: Any
) -> None:
    half = source.size // 2
    twice = np.uint32(prime + prime)
    for first in range(0, half, period):
        upper = source[first : first + period]
        lower = source[half + first : half + first + period]
        out = target[2 * first : 2 * (first + period)]
        for i in range(period):
            u = upper[i]
            v = multiply_lazy(lower[i], factors[i], quotients[i], prime)
            out[2 * i] = np.uint32(u + v)
            out[2 * i + 1] = np.uint32(u + np.uint32(twice - v))


@compile_loop
def _inverse_stage(
    source: Residues, target: Residues, factors: Residues, quotients: Residues, period: int, prime: Any
) -> None:
    """Undo one stage, but for a factor 2: values stay below 2p."""
    half = source.size // 2
    twice = np.uint32(prime + prime)
    for first in range(0, half, period):
        upper = target[first : first + period]
        lower = target[half + first : half + first + period]
        pairs = source[2 * first : 2 * (first + period)]
        for i in range(period):
            u = pairs[2 * i]
            v = pairs[2 * i + 1]
            upper[i] = subtract_once(np.uint32(u + v), twice)
            lower[i] = multiply_lazy(np.uint32(u + np.uint32(twice - v)), factors[i], quotients[i], prime)


@compile_loop
def _start(polynomial: Residues, scratch: Residues) -> tuple[Residues, Residues]:
    """Return the first source and target, such that log2 N stages end in scratch: the last pass is then vectorised."""
    degree = polynomial.size
    stages = 0
    while 1 << stages < degree:
        stages += 1
    if stages % 2:
        return polynomial, scratch
    for i in range(degree):
        scratch[i] = polynomial[i]
    return scratch, polynomial


@compile_loop
def _finish(source: Residues, target: Residues, factor: Any, quotient: Any, prime: Any) -> None:
    """Multiply by one factor and reduce to 0..p-1."""
    for i in range(source.size):
        target[i] = subtract_once(multiply_lazy(source[i], factor, quotient, prime), prime)


@compile_loop
def forward_one(polynomial: Residues, scratch: Residues, factors: Residues, quotients: Residues, prime: Any) -> None:
    """Transform one polynomial in place; scratch has as many words. Input below p, output in 0..p-1."""
    degree = polynomial.size
    half = degree // 2
    unit = np.uint32((np.uint64(1) << _SHIFT) // np.uint64(prime))
    source, target = _start(polynomial, scratch)
    offset = 0
    resolved = 1
    while resolved < degree:
        period = max(resolved, min(half, _PERIOD_MIN))
        end = offset + period
        _forward_stage(source, target, factors[offset:end], quotients[offset:end], period, prime)
        source, target = target, source
        offset = end
        resolved *= 2
    _finish(source, target, np.uint32(1), unit, prime)


@compile_loop
def inverse_one(
    polynomial: Residues, scratch: Residues, factors: Residues, quotients: Residues, last: Residues, prime: Any
) -> None:
    """Undo :func:`forward_one` in place; ``last`` is 1/N modulo p and its quotient."""
    degree = polynomial.size
    half = degree // 2
    source, target = _start(polynomial, scratch)
    end = factors.size
    resolved = half
    while resolved >= 1:
        period = max(resolved, min(half, _PERIOD_MIN))
        offset = end - period
        _inverse_stage(source, target, factors[offset:end], quotients[offset:end], period, prime)
        source, target = target, source
        end = offset
        resolved //= 2
    _finish(source, target, last[0], last[1], prime)


@compile_loop
def forward_all(polynomials: Residues, primes: Residues, factors: Residues, quotients: Residues) -> None:
    """Transform polynomials (M, L, N) in place."""
    scratch = np.empty(polynomials.shape[2], dtype=np.uint32)
    for m in range(polynomials.shape[0]):
        for l in range(primes.size):  # noqa: E741 (the papers' index of a prime)
            forward_one(polynomials[m, l], scratch, factors[l], quotients[l], primes[l])


@compile_loop
def inverse_all(
    polynomials: Residues, primes: Residues, factors: Residues, quotients: Residues, last: Residues
) -> None:
    """Undo :func:`forward_all` in place."""
    scratch = np.empty(polynomials.shape[2], dtype=np.uint32)
    for m in range(polynomials.shape[0]):
        for l in range(primes.size):  # noqa: E741
            inverse_one(polynomials[m, l], scratch, factors[l], quotients[l], last[l], primes[l])
