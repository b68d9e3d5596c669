"""Levels of a modulus chain: keys and ciphertexts over the first few of a key's primes, and the step down between them.

A product's error grows with the square of its factors'; dividing a ciphertext by some of its primes divides the error
with it, down to the rounding. To divide by P exactly, each polynomial c is first moved by the least multiple of t
that makes it divisible: c - t [t^-1 c]_P, then / P. The plaintext is divided by P modulo t (the batch's factor says
so), and the error becomes error / P plus t times a rounding error of at most 1/2 (in c's mask: times the secret).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cloister.errors import LocalProtocolError
from cloister.lattice.keys import PublicKeys, SecretKeys
from cloister.lattice.ntt import Residues, compile_loop, forward_one, multiply_lazy, subtract_once
from cloister.lattice.parameters import Parameters
from cloister.lattice.products import LsbBatch
from cloister.lattice.ring import Ring, quotient
from cloister.records import IntArray

_DROPPED_AT_ONCE = 2  # so that what is subtracted fits int64: two primes of 27 bits


def parameters_at(parameters: Parameters, prime_count: int) -> Parameters:
    """Return the same ring and plaintext modulus over the first ``prime_count`` primes."""
    if not 1 <= prime_count <= len(parameters.primes):
        raise LocalProtocolError(f"a level has 1 to {len(parameters.primes)} of the primes; got {prime_count}.")
    return Parameters(
        degree=parameters.degree,
        primes=parameters.primes[:prime_count],
        plaintext_modulus=parameters.plaintext_modulus,
    )


def restrict_public_keys(public: PublicKeys, prime_count: int) -> PublicKeys:
    """Return the public keys modulo the first primes: the same mask's rows, errors unchanged."""
    parameters = parameters_at(public.parameters, prime_count)
    return PublicKeys(parameters=parameters, seed=public.seed, bodies=public.bodies[:, :prime_count].copy())


def restrict_secret_keys(keys: SecretKeys, prime_count: int) -> SecretKeys:
    """Return a copy of the secrets modulo the first primes; the caller closes it."""
    return SecretKeys(parameters_at(keys.parameters, prime_count), keys.ternary.copy())


def switch_level(batch: LsbBatch, prime_count: int) -> LsbBatch:
    """Divide ciphertexts by their last primes, until the first ``prime_count`` are left."""
    if not 1 <= prime_count <= len(batch.parameters.primes):
        raise LocalProtocolError(
            f"a switch goes down to at least one prime; got {prime_count} of {len(batch.parameters.primes)}."
        )
    while len(batch.parameters.primes) > prime_count:
        batch = _drop(batch, max(prime_count, len(batch.parameters.primes) - _DROPPED_AT_ONCE))
    return batch


def _drop(batch: LsbBatch, kept: int) -> LsbBatch:
    """Divide by one or two primes."""
    lower = parameters_at(batch.parameters, kept)
    t = lower.plaintext_modulus
    dropped = _make_ring(lower.degree, batch.parameters.primes[kept:])
    divisor = dropped.modulus
    # [t^-1 c]_p for each dropped prime; c / P - [t^-1 c]_P (t / P) for each kept one.
    inverse = np.array([pow(t, -1, prime) for prime in dropped.primes], dtype=np.uint32)
    divide = _shoup_pairs([pow(divisor, -1, prime) for prime in lower.primes], lower.primes)
    subtract = _shoup_pairs([t * pow(divisor, -1, prime) % prime for prime in lower.primes], lower.primes)
    sides = []
    for side in (batch.masks, batch.bodies):
        remainders = dropped.inverse(dropped.scale(np.ascontiguousarray(side[:, kept:]), inverse))
        lifted = lower.ring.reduce(_lift_centred(remainders, dropped.primes))
        ring = lower.ring
        _divide(side, lifted, divide, subtract, ring.prime_words, ring.factors, ring.quotients)
        sides.append(lifted)
    factor = batch.factor * pow(divisor, -1, t) % t
    return LsbBatch(parameters=lower, masks=sides[0], bodies=sides[1], factor=factor)


@cache
def _make_ring(degree: int, primes: tuple[int, ...]) -> Ring:
    """Make the tables of the dropped primes once."""
    return Ring(degree, primes)


def _lift_centred(residues: Residues, primes: tuple[int, ...]) -> IntArray:
    """Return the integers in -P/2..P/2 of residues (C, 1 or 2, N)."""
    modulus = primes[0]
    value = residues[:, 0].astype(np.int64)
    if len(primes) == 2:
        # Garner: x = x1 + p1 [(x2 - x1) / p1]_p2.
        step = (residues[:, 1].astype(np.int64) - value) % primes[1] * pow(primes[0], -1, primes[1]) % primes[1]
        value += primes[0] * step
        modulus *= primes[1]
    return value - modulus * (value > modulus // 2)


def _shoup_pairs(factors: list[int], primes: tuple[int, ...]) -> Residues:
    """Return (L, 2): each factor and its companion."""
    return np.array([[x, quotient(x, p)] for x, p in zip(factors, primes, strict=True)], dtype=np.uint32)


@compile_loop
def _divide(
    side: Residues,
    lifted: Residues,
    divide: Residues,
    subtract: Residues,
    primes: Residues,
    factors: Residues,
    quotients: Residues,
) -> None:
    """Overwrite lifted (C, L, N), coefficient form, with the quotient in NTT form: side / P - lifted t / P."""
    scratch = np.empty(lifted.shape[2], dtype=np.uint32)
    for m in range(lifted.shape[0]):
        for l in range(primes.size):  # noqa: E741 (the papers' index of a prime)
            prime: Any = primes[l]
            twice = np.uint32(prime + prime)
            forward_one(lifted[m, l], scratch, factors[l], quotients[l], prime)
            source, target = side[m, l], lifted[m, l]
            for i in range(target.size):
                whole = multiply_lazy(source[i], divide[l, 0], divide[l, 1], prime)
                less = multiply_lazy(target[i], subtract[l, 0], subtract[l, 1], prime)
                # Both below 2p: the difference plus 2p is below 4p.
                target[i] = subtract_once(subtract_once(np.uint32(whole + np.uint32(twice - less)), twice), prime)
