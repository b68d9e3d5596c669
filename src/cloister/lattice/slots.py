"""Slots: N numbers modulo 65537 that one polynomial carries, multiplied place by place.

65537 is 1 modulo 2N for every degree up to 32768, so the plaintext ring Z_t[X]/(X^N + 1) splits into N copies of Z_t.
A product of an encoded plaintext vector with an encrypted encoded vector encrypts the products slot by slot:
what labels need, where Alice's choice for cell c meets Bob's encrypted indicator of it.

Here whole polynomials are decrypted, so re-randomisation and flood cover all N coefficients of the body.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cloister.crypto import Entropy
from cloister.errors import ConfigError
from cloister.lattice.encryption import Integers
from cloister.lattice.keys import PublicKeys
from cloister.lattice.noise import answer_error_bound
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Load, Parameters
from cloister.lattice.ring import Ring
from cloister.lattice.sampling import draw_errors
from cloister.records import IntArray

SLOT_MODULUS = 65537
_LIMB_BITS = 32


@dataclass(frozen=True)
class SlotCodec:
    """Turns slots into coefficients and back.

    Attributes
    ----------
    degree
        N, the number of slots.
    """

    degree: int

    @cached_property
    def _ring(self) -> Ring:
        return Ring(self.degree, (SLOT_MODULUS,))

    def encode(self, slots: Integers) -> Integers:
        """Return coefficients (..., N), centred modulo 65537, of the polynomial with these slots (..., N)."""
        return _centre(self._ring.inverse(self._ring.reduce(slots)))

    def decode(self, coefficients: Integers) -> Integers:
        """Return the slots (..., N), centred modulo 65537, of polynomials (..., N)."""
        return _centre(self._ring.forward(self._ring.reduce(coefficients)))


def _centre(residues: Residues) -> Integers:
    """Return residues (..., 1, N) as signed integers (..., N)."""
    wide = residues[..., 0, :].astype(np.int64)
    return wide - SLOT_MODULUS * (wide > SLOT_MODULUS // 2)


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


def multiply_plain(ring: Ring, masks: Residues, bodies: Residues, plain: Integers) -> RlweCiphertext:
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
