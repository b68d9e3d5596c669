"""Ciphertexts that can be multiplied: the message in the low bits (as in BGV), for products of indicators.

The rest of the package keeps the message in the high bits: body - mask s = e + delta m. A product of two such needs a
rounding division of integers that no residue system has. With the message in the low bits,

    body - mask s = v,   v = f m + t e   (mod q),   f a public factor prime to t,

the product of two ciphertexts is the product of polynomials, (v1)(v2) = f1 f2 m1 m2 + t (...), in NTT form place by
place. The two encodings are one multiplication by a constant apart: with t k' = 1 + k q,

    t^-1 v = v / t + (q / t) [k f m]_t   (mod q),   k = -q^-1 mod t,

so :func:`to_scaled` gives body - mask s = e' + delta m with e' = v / t + small, exactly m, if k f = 1 mod t. The
factor is the price of exact residue arithmetic: dropping a prime P divides the plaintext by P modulo t. Because all
of these are public numbers, the first encryptor puts the inverse of their product into its message (it costs no
noise: the message is reduced modulo t anyway), every batch carries its factor, and :func:`to_scaled` refuses any but
the right one. What it returns is an ordinary ciphertext: weights, re-randomisation, flooding and DP noise are applied
to it as to any other, and nothing is left to do after decryption. Proofs: docs/proofs/joint-cells.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.compiled import compile_loop
from cloister.crypto import Entropy
from cloister.errors import LocalProtocolError
from cloister.lattice.encryption import encrypt_public
from cloister.lattice.keys import PublicKeys
from cloister.lattice.ntt import Residues, reduce_wide
from cloister.lattice.parameters import Parameters
from cloister.records import IntArray

_WORD_MODULUS_MAX = 1 << 31


@dataclass(frozen=True, eq=False, kw_only=True)
class LsbBatch:
    """Ciphertexts with the message in the low bits, under one secret.

    Attributes
    ----------
    parameters
        The ring and modulus of these ciphertexts: a prefix of the key's primes.
    masks, bodies
        uint32 (C, L, N), NTT form.
    factor
        f modulo t: what is encrypted is f m modulo t.
    """

    parameters: Parameters
    masks: Residues
    bodies: Residues
    factor: int

    def __post_init__(self) -> None:
        shape = (len(self.parameters.primes), self.parameters.degree)
        if self.masks.shape != self.bodies.shape or self.masks.ndim != 3 or self.masks.shape[1:] != shape:
            raise LocalProtocolError(
                f"masks and bodies must be (C, {shape[0]}, {shape[1]}); got {self.masks.shape} and {self.bodies.shape}."
            )

    def __len__(self) -> int:
        return len(self.masks)


@dataclass(frozen=True, eq=False, kw_only=True)
class DegreeTwoBatch:
    """Products before relinearisation: body - mask s + square s^2 = v1 v2; all (C, L, N), NTT form."""

    parameters: Parameters
    masks: Residues
    bodies: Residues
    squares: Residues
    factor: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledBatch:
    """Ordinary ciphertexts, as :mod:`~cloister.lattice.weighted_sums` takes them.

    Attributes
    ----------
    masks
        uint32 (C, L, N), NTT form.
    bodies
        uint32 (C, 1, L, N), coefficient form.
    """

    parameters: Parameters
    masks: Residues
    bodies: Residues


def encrypt_lsb(public: PublicKeys, messages: IntArray, stream: Entropy, *, factor: int = 1) -> LsbBatch:
    """Encrypt polynomials (C, N) with the message in the low bits: t times an encryption of zero, plus f m.

    t is prime to q, so t (mask, body) is as uniform as (mask, body) is: the security of public-key encryption carries
    over.
    """
    parameters = public.parameters
    ring = parameters.ring
    t = parameters.plaintext_modulus
    if len(public.bodies) != 1:
        raise LocalProtocolError(f"products are taken under one secret; got a public key for {len(public.bodies)}.")
    masks, zeros = encrypt_public(public, np.zeros((len(messages), 1, parameters.degree), dtype=np.int64), stream)
    scale = ring.residues_of(t)
    # f m in -t/2..t/2, the least noise; in Python's integers where it may pass 64 bits before it is reduced.
    reduced = messages % t if t <= _WORD_MODULUS_MAX else (messages % t).astype(object)
    plain = np.asarray((reduced * (factor % t) + t // 2) % t - t // 2, dtype=np.int64)
    bodies = ring.add(ring.scale(zeros[:, 0], scale), ring.reduce(plain))
    return LsbBatch(
        parameters=parameters, masks=ring.scale(masks, scale), bodies=ring.forward(bodies), factor=factor % t
    )


def multiply(left: LsbBatch, right: LsbBatch, pairs: IntArray) -> DegreeTwoBatch:
    """Multiply left[i] with right[j] for each row (i, j) of ``pairs``.

    (b1 - a1 s)(b2 - a2 s) = b1 b2 - (a1 b2 + a2 b1) s + a1 a2 s^2.
    """
    if left.parameters != right.parameters:
        raise LocalProtocolError("factors of a product must have one modulus; got two. Switch the larger one down.")
    parameters = left.parameters
    ring = parameters.ring
    masks, bodies, squares = (np.empty((len(pairs), len(ring.primes), ring.degree), dtype=np.uint32) for _ in range(3))
    _multiply_pairs(
        left.masks,
        left.bodies,
        right.masks,
        right.bodies,
        pairs,
        masks,
        bodies,
        squares,
        ring.prime_words,
        ring.constants,
    )
    factor = left.factor * right.factor % parameters.plaintext_modulus
    return DegreeTwoBatch(parameters=parameters, masks=masks, bodies=bodies, squares=squares, factor=factor)


def scaling_factor(parameters: Parameters) -> int:
    """Return the factor f that a batch must carry to become an ordinary ciphertext here: -q modulo t."""
    return -parameters.modulus % parameters.plaintext_modulus


def to_scaled(batch: LsbBatch) -> ScaledBatch:
    """Move the message to the high bits: multiply by t^-1 modulo q."""
    parameters = batch.parameters
    ring = parameters.ring
    if batch.factor != scaling_factor(parameters):
        raise LocalProtocolError(
            "the factor of a ciphertext must be -q modulo t when it is scaled; this one's is not. "
            "Encrypt with the factor of the plan."
        )
    inverse = np.array([pow(parameters.plaintext_modulus, -1, prime) for prime in ring.primes], dtype=np.uint32)
    bodies = ring.inverse(ring.scale(batch.bodies, inverse))
    return ScaledBatch(parameters=parameters, masks=ring.scale(batch.masks, inverse), bodies=bodies[:, None])


@compile_loop
def _multiply_pairs(
    left_masks: Residues,
    left_bodies: Residues,
    right_masks: Residues,
    right_bodies: Residues,
    pairs: IntArray,
    masks: Residues,
    bodies: Residues,
    squares: Residues,
    primes: Residues,
    constants: Residues,
) -> None:
    """Write the three polynomials of each product; two products of 27-bit residues add up in one 64-bit word."""
    for m in range(pairs.shape[0]):
        for l in range(primes.size):  # noqa: E741 (the papers' index of a prime)
            prime, unit, power, power_quotient = primes[l], constants[l, 0], constants[l, 1], constants[l, 2]
            a1, b1 = left_masks[pairs[m, 0], l], left_bodies[pairs[m, 0], l]
            a2, b2 = right_masks[pairs[m, 1], l], right_bodies[pairs[m, 1], l]
            mask, body, square = masks[m, l], bodies[m, l], squares[m, l]
            for i in range(a1.size):
                cross = np.uint64(a1[i]) * np.uint64(b2[i]) + np.uint64(a2[i]) * np.uint64(b1[i])
                mask[i] = reduce_wide(cross, prime, unit, power, power_quotient)
                body[i] = reduce_wide(np.uint64(b1[i]) * np.uint64(b2[i]), prime, unit, power, power_quotient)
                square[i] = reduce_wide(np.uint64(a1[i]) * np.uint64(a2[i]), prime, unit, power, power_quotient)
