"""Encryption of integer vectors, one record per coefficient: body = mask * s + e + delta * m.

With a *secret key* the mask is grown from a public seed, so only bodies travel. With a *public key* it is not, and
travels too. Either way the S bodies of one cell share one mask, under S secrets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.crypto import Entropy
from cloister.errors import ConfigError
from cloister.lattice.keys import PublicKeys, SecretKeys, check_seed
from cloister.lattice.ntt import Residues, reduce_wide, subtract_once
from cloister.lattice.parameters import Parameters
from cloister.lattice.sampling import draw_errors, draw_ternary, expand_masks
from cloister.records import IntArray


def encrypt_seeded(keys: SecretKeys, messages: IntArray, *, seed: bytes, block: int, stream: Entropy) -> Residues:
    """Encrypt one block under the secret keys.

    Parameters
    ----------
    keys
        S secrets.
    messages
        (C, S, N): a mask for each of the first axis.
    seed
        32 public bytes. A (seed, block) must never be used for two different sets of messages: their difference
        would lie open but for the errors.
    block
        The number of the block.
    stream
        Where the errors come from.

    Returns
    -------
    Bodies (C, S, L, N) in coefficient form; the masks are ``expand_masks(parameters, seed, block, C)``.
    """
    check_seed(seed)
    parameters, ring = keys.parameters, keys.parameters.ring
    _check_messages(parameters, messages, keys.count)
    masks = expand_masks(parameters, seed, block, messages.shape[0])
    products = ring.inverse(ring.multiply(masks[:, None], keys.ntt))
    return _add_messages(parameters, products, messages, stream)


def encrypt_public(public: PublicKeys, messages: IntArray, stream: Entropy) -> tuple[Residues, Residues]:
    """Encrypt one block under public keys: mask = pk_mask * u + e1, body = pk_body * u + e2 + delta * m.

    Parameters
    ----------
    public
        S public keys with one mask, one holder's or a collective one.
    messages
        (C, S, N).
    stream
        Where u (ternary), e1 and e2 (Gaussian) come from.

    Returns
    -------
    Masks (C, L, N) in NTT form, and bodies (C, S, L, N) in coefficient form.
    """
    parameters, ring = public.parameters, public.parameters.ring
    _check_messages(parameters, messages, public.count)
    count, degree = messages.shape[0], parameters.degree
    u = ring.forward(ring.reduce(draw_ternary(stream, count, degree)))
    mask_errors = ring.forward(ring.reduce(draw_errors(stream, count, degree)))
    masks = ring.add(ring.multiply(u, public.mask), mask_errors)
    products = ring.inverse(ring.multiply(u[:, None], public.bodies))
    return masks, _add_messages(parameters, products, messages, stream)


def decrypt(keys: SecretKeys, masks: Residues, bodies: Residues) -> IntArray:
    """Return the messages (C, S, N), centred modulo t.

    Parameters
    ----------
    keys
        S secrets.
    masks
        (C, L, N) in NTT form.
    bodies
        (C, S, L, N) in coefficient form.
    """
    ring = keys.parameters.ring
    noisy = ring.subtract(bodies, ring.inverse(ring.multiply(masks[:, None], keys.ntt)))
    scaled = ring.to_integers(np.moveaxis(noisy, -2, -1))
    return round_to_plaintext(keys.parameters, scaled).astype(np.int64)


def round_to_plaintext(parameters: Parameters, scaled: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the integers nearest to scaled / delta, centred modulo t."""
    delta, t = parameters.delta, parameters.plaintext_modulus
    nearest = (2 * scaled + delta) // (2 * delta)
    return np.asarray((nearest + t // 2) % t - t // 2, dtype=object)


def _check_messages(parameters: Parameters, messages: IntArray, count: int) -> None:
    """Refuse messages of another shape; their values are the caller's to bound."""
    if messages.ndim != 3 or messages.shape[1:] != (count, parameters.degree) or messages.dtype != np.int64:
        raise ConfigError(
            f"messages must be int64 (C, {count}, {parameters.degree}); got {messages.dtype} {messages.shape}."
        )


def _add_messages(parameters: Parameters, products: Residues, messages: IntArray, stream: Entropy) -> Residues:
    """Add errors and delta times messages to products (C, S, L, N), in place."""
    ring = parameters.ring
    errors = draw_errors(stream, *messages.shape)
    _scale_and_add(
        products.reshape(-1, *products.shape[-2:]),
        np.ascontiguousarray(messages).reshape(-1, parameters.degree),
        errors.reshape(-1, parameters.degree),
        ring.residues_of(parameters.delta),
        ring.prime_words,
        ring.constants,
    )
    return products


@compile_loop
def _scale_and_add(
    products: Residues,
    messages: IntArray,
    errors: NDArray[np.int8],
    delta: Residues,
    primes: Residues,
    constants: Residues,
) -> None:
    """Do it in one pass: delta m + e + product < 2^55 fits a word, negative m and e having p added first."""
    for m in range(products.shape[0]):
        message, error = messages[m], errors[m]
        for l in range(primes.size):  # noqa: E741
            prime, unit, power, power_quotient = primes[l], constants[l, 0], constants[l, 1], constants[l, 2]
            target = products[m, l]
            for i in range(target.size):
                word = reduce_wide(np.uint64(message[i]), prime, unit, power, power_quotient)
                lack = np.uint32(constants[l, 3] & np.uint32(message[i] >> 63))
                residue: Any = subtract_once(np.uint32(word + lack), prime)
                shifted = np.uint64(np.int64(prime) + np.int64(error[i]))
                total = np.uint64(residue) * np.uint64(delta[l]) + shifted + np.uint64(target[i])
                target[i] = reduce_wide(total, prime, unit, power, power_quotient)
