"""Answers: one coefficient of a product, as an LWE sample that shows the key holder the sum and nothing else.

An answer is an accumulated mask A and a number b = <A, s> + e + delta * sum, where <A, s> is coefficient 0 of A * s.
The key holder knows every fresh mask, so A alone would be N equations about the weights; and it knows its own errors,
so e is one more. Therefore an answer is, in this order,

1. *re-randomised*: a fresh public-key encryption of zero is added (:func:`rerandomise`), which makes A look uniform;
2. given its privacy noise (:func:`add_plain`);
3. *flooded*: an error large enough to hide e is added (:func:`draw_flood` or charged noise, :func:`add_error`);
4. switched to a small modulus (:func:`switch_modulus`), which only rounds, and shortens it.

Several bodies may share a mask, each under its own secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Entropy
from cloister.errors import ConfigError
from cloister.lattice.encryption import round_to_plaintext
from cloister.lattice.keys import PublicKeys, SecretKeys
from cloister.lattice.noise import SWITCH_BITS_MAX
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters
from cloister.lattice.sampling import draw_errors
from cloister.lattice.weighted_sums import mirror_weights, sum_bodies
from cloister.records import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LweBatch:
    """Answers modulo q.

    Attributes
    ----------
    parameters
        The ring.
    masks
        (A, L, N) in coefficient form.
    bodies
        (B, L).
    mask_of, secret_of
        (B,), the mask and the secret of each body.
    """

    parameters: Parameters
    masks: Residues
    bodies: Residues
    mask_of: IntArray
    secret_of: IntArray

    def __post_init__(self) -> None:
        p = self.parameters
        wanted = (len(p.primes), p.degree)
        if self.masks.dtype != np.uint32 or self.masks.ndim != 3 or self.masks.shape[1:] != wanted:
            raise ConfigError(f"masks must be uint32 (A, {wanted[0]}, {wanted[1]}); got {self.masks.shape}.")
        if self.bodies.dtype != np.uint32 or self.bodies.shape != (self.bodies.shape[0], wanted[0]):
            raise ConfigError(f"bodies must be uint32 (B, {wanted[0]}); got {self.bodies.shape}.")
        _check_places(self.mask_of, self.secret_of, self.bodies.shape[0], self.masks.shape[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class SmallLweBatch:
    """Answers modulo 2^bits, as they travel.

    Attributes
    ----------
    parameters
        The ring they come from.
    bits
        The length of the small modulus, at most 60.
    masks
        (A, N), uint64.
    bodies
        (B,), uint64.
    mask_of, secret_of
        (B,), the mask and the secret of each body.
    """

    parameters: Parameters
    bits: int
    masks: NDArray[np.uint64]
    bodies: NDArray[np.uint64]
    mask_of: IntArray
    secret_of: IntArray

    def __post_init__(self) -> None:
        _check_bits(self.bits)
        if self.masks.dtype != np.uint64 or self.masks.ndim != 2 or self.masks.shape[1] != self.parameters.degree:
            raise ConfigError(f"masks must be uint64 (A, {self.parameters.degree}); got {self.masks.shape}.")
        if self.bodies.dtype != np.uint64 or self.bodies.ndim != 1:
            raise ConfigError(f"bodies must be uint64 (B,); got {self.bodies.shape}.")
        _check_places(self.mask_of, self.secret_of, self.bodies.shape[0], self.masks.shape[0])

    @property
    def plaintext_modulus(self) -> int:
        """The modulus t of the sums."""
        return self.parameters.plaintext_modulus


def rerandomise(batch: LweBatch, public: PublicKeys, stream: Entropy) -> LweBatch:
    """Add a fresh encryption of zero to each mask and its bodies: (a u + e1, <b_s, u> + e2).

    u, e1 and e2 are Gaussian of deviation 3.2, so that the equation about them that the key holder reads off the
    flooded error leaves an RLWE instance of nearly the same deviation (Hint-RLWE, docs/proofs/lattice.md).
    """
    ring, degree = batch.parameters.ring, batch.parameters.degree
    if public.parameters.primes != batch.parameters.primes or public.parameters.degree != degree:
        raise ConfigError("a public key must belong to the answers' ring; got another ring's.")
    if batch.secret_of.size and batch.secret_of.max() >= public.count:
        raise ConfigError(f"there must be a public key for every secret; got {public.count} keys.")
    answers = batch.masks.shape[0]
    u = draw_errors(stream, answers, degree)
    mask_errors = ring.reduce(draw_errors(stream, answers, degree))
    body_errors = ring.reduce(draw_errors(stream, 1, batch.bodies.shape[0]))[0].T
    zeros = ring.inverse(ring.multiply(ring.forward(ring.reduce(u)), public.mask))
    mirrored = mirror_weights(u).astype(np.int32)
    shared = np.zeros(answers, dtype=np.int64)
    products = sum_bodies(ring, public.coefficients[None], mirrored, shared, secrets=public.count)
    return replace(
        batch,
        masks=ring.add(batch.masks, ring.add(zeros, mask_errors)),
        bodies=_add_rows(batch, _add_rows(batch, batch.bodies, products[batch.mask_of, batch.secret_of]), body_errors),
    )


def add_plain(batch: LweBatch, integers: Sequence[int]) -> LweBatch:
    """Add one integer to each sum: delta times it to the body."""
    return add_error(batch, [batch.parameters.delta * number for number in integers])


def add_error(batch: LweBatch, integers: Sequence[int]) -> LweBatch:
    """Add one integer to each body as it is: a flooding error."""
    if len(integers) != batch.bodies.shape[0]:
        raise ConfigError(f"there must be {batch.bodies.shape[0]} integers, one for each body; got {len(integers)}.")
    rows = [batch.parameters.ring.residues_of(int(number)) for number in integers]
    added = np.array(rows, dtype=np.uint32).reshape(batch.bodies.shape)
    return replace(batch, bodies=_add_rows(batch, batch.bodies, added))


def draw_flood(stream: Entropy, bits: int, count: int) -> list[int]:
    """Return integers uniform on -2^bits..2^bits-1, as Python's integers."""
    width = bits // 8 + 1  # bits + 1 of these 8 * width bits are used
    raw = stream.bytes(width * count)
    kept = (1 << (bits + 1)) - 1
    words = (int.from_bytes(raw[i : i + width], "little") for i in range(0, width * count, width))
    return [(word & kept) - (1 << bits) for word in words]


def switch_modulus(batch: LweBatch, bits: int) -> SmallLweBatch:
    """Round masks and bodies from modulo q to modulo 2^bits: x -> round(2^bits x / q)."""
    _check_bits(bits)
    return SmallLweBatch(
        parameters=batch.parameters,
        bits=bits,
        masks=_round_residues(batch.parameters, np.moveaxis(batch.masks, 1, -1), bits),
        bodies=_round_residues(batch.parameters, batch.bodies, bits),
        mask_of=batch.mask_of,
        secret_of=batch.secret_of,
    )


def decrypt_lwe(keys: SecretKeys, batch: LweBatch | SmallLweBatch) -> list[int]:
    """Return the sums, centred modulo t."""
    if batch.secret_of.size and batch.secret_of.max() >= keys.count:
        raise ConfigError(f"there must be a secret for every body; got {keys.count} secrets.")
    parameters, mirrored = batch.parameters, mirror_weights(keys.ternary)
    if isinstance(batch, LweBatch):
        weights = mirrored[batch.secret_of].astype(np.int32)
        products = sum_bodies(parameters.ring, batch.masks[:, None], weights, batch.mask_of, secrets=1)[:, 0]
        weights.fill(0)
        rest = parameters.ring.subtract(batch.bodies.T, products.T).T
        return [int(x) for x in round_to_plaintext(parameters, parameters.ring.to_integers(rest))]
    signed = mirrored.astype(np.int64).view(np.uint64)  # modulo 2^64, of which 2^bits is a divisor
    products64 = np.array(
        [np.dot(batch.masks[a], signed[s]) for a, s in zip(batch.mask_of, batch.secret_of, strict=True)],
        dtype=np.uint64,
    )
    signed.fill(0)
    up = np.uint64(64 - batch.bits)
    rest64 = ((batch.bodies - products64) << up).view(np.int64) >> np.int64(up)
    # The plaintext's factor is now delta 2^bits / q, not quite 2^bits / t.
    scaled = rest64.astype(object) * parameters.modulus
    return [int(x) for x in round_to_plaintext(parameters, (2 * scaled + (1 << batch.bits)) // (2 << batch.bits))]


def _add_rows(batch: LweBatch, x: Residues, y: Residues) -> Residues:
    """Return x + y for bodies (B, L)."""
    return np.ascontiguousarray(batch.parameters.ring.add(x.T, y.T).T)


def _round_residues(parameters: Parameters, x: Residues, bits: int) -> NDArray[np.uint64]:
    """Return round(2^bits x / q) modulo 2^bits of residues (..., L).

    x / q = sum_l y_l / p_l modulo 1 with y_l = x_l (q / p_l)^-1 modulo p_l. Each fraction is cut to 64 bits by two
    steps of long division, so the sum lacks less than L 2^-64 before it is rounded.
    """
    total = np.zeros(x.shape[:-1], dtype=np.uint64)
    shift = np.uint64(32)
    for place, prime in enumerate(parameters.primes):
        p = np.uint64(prime)
        inverse = np.uint64(pow(parameters.modulus // prime, -1, prime))
        high, rest = np.divmod(x[..., place].astype(np.uint64) * inverse % p << shift, p)
        total += (high << shift) + (rest << shift) // p
    return ((total >> np.uint64(63 - bits)) + np.uint64(1) >> np.uint64(1)) & np.uint64((1 << bits) - 1)


def _check_bits(bits: int) -> None:
    """Refuse a small modulus whose rounding would not be exact enough."""
    if not 1 <= bits <= SWITCH_BITS_MAX:
        raise ConfigError(f"a small modulus must have from 1 to {SWITCH_BITS_MAX} bits; got {bits}.")


def _check_places(mask_of: IntArray, secret_of: IntArray, bodies: int, masks: int) -> None:
    if mask_of.shape != (bodies,) or secret_of.shape != (bodies,):
        raise ConfigError(
            f"{bodies} bodies must have a mask and a secret each; got {mask_of.shape}, {secret_of.shape}."
        )
    if bodies and not (mask_of.min() >= 0 and mask_of.max() < masks and secret_of.min() >= 0):
        raise ConfigError(f"a body's mask must be one of {masks}, and its secret's number at least 0.")
