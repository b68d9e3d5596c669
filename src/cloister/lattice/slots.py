"""Slots: N numbers modulo a prime t that one polynomial carries, multiplied place by place.

Where t is 1 modulo 2N, as 65537 is for every degree up to 32768, the plaintext ring Z_t[X]/(X^N + 1) splits into N
copies of Z_t. A product of an encoded plaintext vector with an encrypted encoded vector encrypts the products slot by
slot: what labels need, where Alice's choice for cell c meets Bob's encrypted indicator of it. A sum over slots is a
coefficient,

    sum_r w_r m(zeta_r) = N times coefficient 0 of W m,   W(zeta_r) = w_r,

so weights of records in slots are encoded (:func:`encode_weights`) and then accumulated as any others.

Labels decrypt whole polynomials, so re-randomisation and flood cover all N coefficients of the body.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.crypto import Entropy
from cloister.errors import ConfigError
from cloister.lattice.keys import PublicKeys
from cloister.lattice.noise import answer_error_bound
from cloister.lattice.ntt import Residues, inverse_one, multiply_lazy, subtract_once
from cloister.lattice.parameters import Load, Parameters
from cloister.lattice.ring import Ring, make_ring
from cloister.lattice.sampling import draw_errors
from cloister.records import IntArray

SLOT_MODULUS = 65537
_LIMB_BITS = 32


@dataclass(frozen=True)
class SlotCodec:
    """Turns slots modulo 65537 into coefficients and back.

    Attributes
    ----------
    degree
        N, the number of slots.
    """

    degree: int

    def encode(self, slots: IntArray) -> IntArray:
        """Return coefficients (..., N), centred modulo 65537, of the polynomial with these slots (..., N)."""
        return encode_slots(self.degree, SLOT_MODULUS, slots)

    def decode(self, coefficients: IntArray) -> IntArray:
        """Return the slots (..., N), centred modulo 65537, of polynomials (..., N)."""
        ring = make_ring(self.degree, (SLOT_MODULUS,))
        return _centre(ring.forward(ring.reduce(coefficients))[..., 0, :], SLOT_MODULUS)


def encode_slots(degree: int, plaintext_modulus: int, slots: IntArray) -> IntArray:
    """Return coefficients (..., N), centred modulo t, of the polynomials with these values in their slots."""
    ring = make_ring(degree, (plaintext_modulus,))
    return _centre(ring.inverse(ring.reduce(slots))[..., 0, :], plaintext_modulus)


def encode_weights(degree: int, plaintext_modulus: int, weights: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return weights of coefficients (..., N) from weights of records (..., N), of 32 bits, for the inner products.

    Column p of the result is N times coefficient -p of W, modulo t: sum_p result_p m_p = sum_r w_r m(zeta_r) modulo t.
    """
    ring = make_ring(degree, (plaintext_modulus,))
    rows = np.ascontiguousarray(weights.reshape(-1, degree), dtype=np.int32)
    out = np.empty(rows.shape, dtype=np.int32)
    unit, power = ring.constants[0, :2]
    _encode_rows(rows, out, ring.prime_words[0], unit, power, ring.inverse_factors[0], ring.inverse_quotients[0])
    return out.reshape(weights.shape)


def _centre(residues: NDArray[np.integer], modulus: int) -> IntArray:
    wide = residues.astype(np.int64)
    return wide - modulus * (wide > modulus // 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class RlweCiphertext:
    """One mask and the S bodies that share it.

    Attributes
    ----------
    mask
        (L, N) in NTT form.
    bodies
        (S, L, N) in coefficient form.
    """

    mask: Residues
    bodies: Residues


def multiply_plain(ring: Ring, masks: Residues, bodies: Residues, plain: IntArray) -> RlweCiphertext:
    """Return sum_c plain_c * ciphertext_c.

    Parameters
    ----------
    ring
        The arithmetic.
    masks
        (C, L, N) in NTT form.
    bodies
        (C, S, L, N) in coefficient form.
    plain
        Coefficients (C, N).
    """
    factors = ring.forward(ring.reduce(plain))
    mask = np.zeros(masks.shape[1:], dtype=np.uint32)
    body = np.zeros(bodies.shape[1:], dtype=np.uint32)
    for c in range(masks.shape[0]):
        mask = ring.add(mask, ring.multiply(masks[c], factors[c]))
        body = ring.add(body, ring.multiply(ring.forward(bodies[c]), factors[c]))
    return RlweCiphertext(mask=mask, bodies=ring.inverse(body))


def slot_error_bound(parameters: Parameters, cells: int, *, key_holders: int = 1, public_key: bool = False) -> float:
    """Return a bound on every coefficient's error after a sum of ``cells`` products and re-randomisation.

    Coefficients of encoded vectors are at most t / 2. The fresh errors are bounded as in
    :func:`~cloister.lattice.noise.error_bound` for all N coefficients at once. The product of plaintexts is k t more
    than its centred residue, |k| <= cells N t / 4 + 1, and delta k t is k (q mod t) less than a multiple of q.
    """
    degree, t = parameters.degree, parameters.plaintext_modulus
    load = Load(sum_max=1, terms=degree * cells, weight_max=t // 2 + 1, key_holders=key_holders, public_key=public_key)
    wraps = (cells * degree * t / 4 + 1) * (parameters.modulus % t)
    return answer_error_bound(parameters, load, coefficients=degree) + wraps


def rerandomise_rlwe(ciphertext: RlweCiphertext, public: PublicKeys, stream: Entropy) -> RlweCiphertext:
    """Add a fresh encryption of zero with Gaussian u: mask + a u + e1, body_s + b_s u + e2."""
    ring, degree = public.parameters.ring, public.parameters.degree
    if ciphertext.bodies.shape != public.bodies.shape:
        raise ConfigError(
            f"bodies must have the shape of the public keys, {public.bodies.shape}; got {ciphertext.bodies.shape}."
        )
    u = ring.forward(ring.reduce(draw_errors(stream, degree)))
    mask_error = ring.forward(ring.reduce(draw_errors(stream, degree)))
    body_errors = ring.reduce(draw_errors(stream, public.count, degree))
    return RlweCiphertext(
        mask=ring.add(ciphertext.mask, ring.add(ring.multiply(public.mask, u), mask_error)),
        bodies=ring.add(ciphertext.bodies, ring.add(ring.inverse(ring.multiply(public.bodies, u)), body_errors)),
    )


def flood_rlwe(ring: Ring, ciphertext: RlweCiphertext, bits: int, stream: Entropy) -> RlweCiphertext:
    """Add an error uniform on -2^bits..2^bits-1 to every coefficient of every body."""
    flood = _draw_wide(ring, stream, bits, ciphertext.bodies.shape)
    return replace(ciphertext, bodies=ring.add(ciphertext.bodies, flood))


def _draw_wide(ring: Ring, stream: Entropy, bits: int, shape: tuple[int, ...]) -> Residues:
    """Return residues (S, L, N) of integers of any length: sum_i 2^(32 i) limb_i - 2^bits, bits + 1 bits in all."""
    places = (shape[0], shape[2])
    total = np.broadcast_to(ring.residues_of(-(1 << bits))[:, None], shape).astype(np.uint32)
    for low in range(0, bits + 1, _LIMB_BITS):
        limb: IntArray = np.frombuffer(stream.bytes(4 * places[0] * places[1]), dtype="<u4").astype(np.int64)
        limb &= (1 << min(_LIMB_BITS, bits + 1 - low)) - 1
        total = ring.add(total, ring.scale(ring.reduce(limb.reshape(places)), ring.residues_of(1 << low)))
    return total


@compile_loop
def _encode_rows(rows: Any, out: Any, prime: Any, unit: Any, power: Any, roots: Any, quotients: Any) -> None:
    """Residues, the inverse transform without its factor 1/N, centred and mirrored, a row at a time."""
    degree = rows.shape[1]
    polynomial = np.empty(degree, dtype=np.uint32)
    scratch = np.empty(degree, dtype=np.uint32)
    no_factor = np.array([np.uint32(1), unit], dtype=np.uint32)
    signed, half = np.int32(prime), np.int32(prime // np.uint32(2))
    lack = np.uint32((prime - power) % prime)  # a negative weight's word is 2^32 too large
    for j in range(rows.shape[0]):
        row, target = rows[j], out[j]
        for i in range(degree):
            word = subtract_once(multiply_lazy(np.uint32(row[i]), np.uint32(1), unit, prime), prime)
            polynomial[i] = subtract_once(np.uint32(word + np.uint32(lack & np.uint32(row[i] >> 31))), prime)
        inverse_one(polynomial, scratch, roots, quotients, no_factor, prime)
        first = np.int32(polynomial[0])
        target[0] = np.int32(first - np.int32(signed & np.int32(np.int32(half - first) >> 31)))
        for i in range(1, degree):
            value = np.int32(polynomial[i])
            target[np.uintp(degree - i)] = np.int32(np.int32(signed & np.int32(np.int32(half - value) >> 31)) - value)
