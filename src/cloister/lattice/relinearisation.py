"""What follows a product: relinearisation, and the step down a chain of moduli.

A product has a part times s^2; the relinearisation key, which encrypts s^2, turns it back into mask and body. The
square part c is written by its residues: c = sum over primes i of [c]_p_i g_i modulo q, where g_i is 1 modulo p_i and 0
modulo the others. The key holds, for each i, an encryption of g_i s^2 with its error in multiples of t:

    key_body_i - key_mask_i s = t e_i + g_i s^2,

so sum_i [c]_p_i (key_mask_i, key_body_i) encrypts c s^2 with the error t sum_i [c]_p_i e_i, each residue taken in
-p_i/2..p_i/2. In residues g_i s^2 is s^2 in row i and nothing elsewhere; therefore the first L' rows of the first L'
digits are the key for the first L' primes, and one key serves every level.

A product's error grows with the square of its factors'; dividing a ciphertext by some of its primes divides the error
with it, down to the rounding (:func:`switch_level`). To divide by P exactly, each polynomial c is first moved by the
least multiple of t that makes it divisible: c - t [t^-1 c]_P, then / P. The plaintext is divided by P modulo t (the
batch's factor says so), and the error becomes error / P plus t times a rounding error of at most 1/2 (in c's mask:
times the secret).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.compiled import compile_loop
from cloister.crypto import Entropy
from cloister.errors import LocalProtocolError
from cloister.lattice.keys import SecretKeys
from cloister.lattice.ntt import Residues, forward_one, multiply_lazy, reduce_wide, subtract_once
from cloister.lattice.parameters import Parameters, parameters_at
from cloister.lattice.products import DegreeTwoBatch, LsbBatch
from cloister.lattice.ring import make_ring, quotient
from cloister.lattice.sampling import draw_errors, expand_uniform
from cloister.records import IntArray

_DROPPED_AT_ONCE = 2  # so that what is subtracted fits int64: two primes of 27 bits


@dataclass(frozen=True, eq=False, kw_only=True)
class RelinearisationKey:
    """Encryptions of g_i s^2 under s; masks and bodies uint32 (digits L, L, N), NTT form."""

    parameters: Parameters
    masks: Residues
    bodies: Residues

    def __post_init__(self) -> None:
        count = len(self.parameters.primes)
        shape = (count, count, self.parameters.degree)
        if self.masks.shape != shape or self.bodies.shape != shape:
            raise LocalProtocolError(
                f"a relinearisation key must be {shape}; got {self.masks.shape} and {self.bodies.shape}."
            )
        if max(self.parameters.primes) >= 2 * min(self.parameters.primes):
            raise LocalProtocolError("primes of a relinearisation key must be within a factor of two; these are not.")


def expand_key_masks(parameters: Parameters, seed: bytes) -> Residues:
    """Return the common masks (L, L, N) of a key, NTT form."""
    digits = range(len(parameters.primes))
    return np.stack([expand_uniform(parameters, seed, "relinearisation key", digit) for digit in digits])


def draw_scaled_errors(parameters: Parameters, count: int, stream: Entropy) -> Residues:
    """Return ``count`` error polynomials times t, NTT form."""
    ring = parameters.ring
    errors = ring.reduce(draw_errors(stream, count, parameters.degree).astype(np.int64))
    return ring.forward(ring.scale(errors, ring.residues_of(parameters.plaintext_modulus)))


def add_gadget(ring_rows: Residues, secrets: Residues, parameters: Parameters) -> Residues:
    """Return rows (L, L, N) plus g_i times an element (L, N): added in row i of digit i only."""
    out = ring_rows.copy()
    for digit, prime in enumerate(parameters.primes):
        total = out[digit, digit] + secrets[digit]
        out[digit, digit] = np.minimum(total, total - np.uint32(prime))
    return out


def make_relinearisation_key(keys: SecretKeys, *, seed: bytes, stream: Entropy) -> RelinearisationKey:
    """Make the key of one holder's single secret; the masks come from the seed, so only the bodies travel."""
    parameters = keys.parameters
    ring = parameters.ring
    if len(keys.ntt) != 1:
        raise LocalProtocolError(f"products are taken under one secret; got {len(keys.ntt)}.")
    secret = keys.ntt[0]
    masks = expand_key_masks(parameters, seed)
    errors = draw_scaled_errors(parameters, len(masks), stream)
    bodies = add_gadget(ring.add(ring.multiply(masks, secret), errors), ring.multiply(secret, secret), parameters)
    return RelinearisationKey(parameters=parameters, masks=masks, bodies=bodies)


def relinearise(batch: DegreeTwoBatch, key: RelinearisationKey) -> LsbBatch:
    """Return ordinary ciphertexts of the same plaintexts."""
    parameters = batch.parameters
    count = len(parameters.primes)
    if key.parameters.degree != parameters.degree or key.parameters.primes[:count] != parameters.primes:
        raise LocalProtocolError("a product's primes must be the first ones of the relinearisation key; they are not.")
    ring = parameters.ring
    masks, bodies = batch.masks.copy(), batch.bodies.copy()
    digits = ring.inverse(batch.squares)
    tables = ring.prime_words, ring.constants, ring.factors, ring.quotients
    _add_digits(digits, key.masks, key.bodies, masks, bodies, *tables)
    return LsbBatch(parameters=parameters, masks=masks, bodies=bodies, factor=batch.factor)


@compile_loop
def _add_digits(
    digits: Residues,
    key_masks: Residues,
    key_bodies: Residues,
    masks: Residues,
    bodies: Residues,
    primes: Residues,
    constants: Residues,
    factors: Residues,
    quotients: Residues,
) -> None:
    """Add sum_i [c]_p_i key_i to masks and bodies (C, L, N), in place.

    A digit in -p_i/2..p_i/2 is taken modulo p_j, transformed there and multiplied; products of 54 bits, one for each
    prime, are added in a 64-bit word before one reduction.
    """
    degree = digits.shape[2]
    moved = np.empty(degree, dtype=np.uint32)
    scratch = np.empty(degree, dtype=np.uint32)
    mask_sum = np.empty(degree, dtype=np.uint64)
    body_sum = np.empty(degree, dtype=np.uint64)
    for m in range(digits.shape[0]):
        for l in range(primes.size):  # noqa: E741 (the papers' index of a prime)
            prime: Any = primes[l]
            unit, power, power_quotient = constants[l, 0], constants[l, 1], constants[l, 2]
            for i in range(degree):
                mask_sum[i] = masks[m, l, i]
                body_sum[i] = bodies[m, l, i]
            for digit in range(primes.size):
                source, own = digits[m, digit], primes[digit]
                # x stands for x or x - p_i, modulo p_j for x or x - p_i + p_j: p_i < 2 p_j, so both are in 0..p_j-1.
                half = np.uint32(own >> np.uint32(1))
                shift = np.uint32(prime - own)
                for i in range(degree):
                    moved[i] = source[i] + (shift if source[i] > half else np.uint32(0))
                forward_one(moved, scratch, factors[l], quotients[l], prime)
                row_masks, row_bodies = key_masks[digit, l], key_bodies[digit, l]
                for i in range(degree):
                    value = np.uint64(moved[i])
                    mask_sum[i] += value * np.uint64(row_masks[i])
                    body_sum[i] += value * np.uint64(row_bodies[i])
            for i in range(degree):
                masks[m, l, i] = reduce_wide(mask_sum[i], prime, unit, power, power_quotient)
                bodies[m, l, i] = reduce_wide(body_sum[i], prime, unit, power, power_quotient)


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
    dropped = make_ring(lower.degree, batch.parameters.primes[kept:])
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
