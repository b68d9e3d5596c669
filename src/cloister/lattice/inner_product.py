"""Inner products of integer weights with residues: the body half of an answer, and what a key holder takes away.

Records sit in coefficients. The weight of record p belongs to X^-p = -X^(N-p), so that coefficient 0 of weights times
message is sum_p w_p m_p. Only that coefficient is wanted, so bodies need no transform; masks do
(:mod:`~cloister.lattice.weighted_sums`).

The time depends on shapes and, for weights of more than 22 bits, on the largest weight; on no other weight, and on no
residue.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError
from cloister.lattice.ntt import Residues, compile_loop
from cloister.lattice.primes import PRIME_BITS
from cloister.lattice.ring import Ring
from cloister.records import IntArray

_SIGNED_BITS = 62

Weights = NDArray[np.int32]
Places = NDArray[np.integer[Any]]


def sum_bodies(ring: Ring, bodies: Residues, weights: Weights, mask_of: Places, *, secrets: int) -> Residues:
    """Return the weighted sums (J, secrets, L) of bodies: what belongs to the accumulated masks.

    Parameters
    ----------
    ring
        The arithmetic.
    bodies
        (C, S, L, N) in coefficient form.
    weights
        (J, N), the weight of each record of the block.
    mask_of
        (J,), the mask (and so the bodies) of each row of weights.
    secrets
        How many of the S bodies to sum, from the first on.
    """
    _check_places(mask_of, weights.shape[0], bodies.shape[0])
    _check_rows(ring, weights, bodies)
    if not 1 <= secrets <= bodies.shape[1]:
        raise ConfigError(f"secrets must be from 1 to {bodies.shape[1]}; got {secrets}.")
    out = np.empty((weights.shape[0], secrets, len(ring.primes)), dtype=np.uint32)
    _sum_bodies(
        np.ascontiguousarray(bodies),
        np.ascontiguousarray(weights),
        mask_of.astype(np.int64),
        out,
        ring.prime_words,
    )
    return out


def mirror_weights(weights: NDArray[Any]) -> NDArray[Any]:
    """Return the coefficients (..., N) of the polynomial that has weight p at X^-p; its own inverse."""
    out = -weights[..., ::-1]
    return np.concatenate([weights[..., :1], out[..., :-1]], axis=-1)


def _check_places(places: Places, rows: int, end: int) -> None:
    """Refuse an index that the compiled loop would read outside its array."""
    if places.shape != (rows,) or (rows and not 0 <= places.min() <= places.max() < end):
        raise ConfigError(f"{rows} rows of weights need {rows} places in 0..{end - 1}; got shape {places.shape}.")


def _check_rows(ring: Ring, weights: Weights, *residues: Residues) -> None:
    """Refuse arrays of another ring, or of another type than the compiled loops expect."""
    if weights.dtype != np.int32 or weights.ndim != 2 or weights.shape[1] != ring.degree:
        raise ConfigError(f"weights must be int32 (J, {ring.degree}); got {weights.dtype} {weights.shape}.")
    wanted = (len(ring.primes), ring.degree)
    if any(array.dtype != np.uint32 or array.shape[-2:] != wanted for array in residues):
        raise ConfigError(f"residues must be uint32 (..., {wanted[0]}, {wanted[1]}); got another shape or type.")


@compile_loop
def _sum_bodies(
    bodies: Residues,
    weights: Weights,
    mask_of: IntArray,
    out: Residues,
    primes: Residues,
) -> None:
    """Add up signed products in 64-bit words, in runs so short that they cannot overflow."""
    degree = weights.shape[1]
    peak = np.int64(1)
    for j in range(weights.shape[0]):
        for i in range(degree):
            peak = max(peak, abs(np.int64(weights[j, i])))
    run = max(np.int64(1), (np.int64(1) << (_SIGNED_BITS - PRIME_BITS)) // peak)
    for j in range(weights.shape[0]):
        row = weights[j]
        for s in range(out.shape[1]):
            for l in range(primes.size):  # noqa: E741
                body = bodies[mask_of[j], s, l]
                prime = np.int64(primes[l])
                result = np.int64(0)
                for first in range(0, degree, run):
                    total = np.int64(0)
                    some, others = row[first : first + run], body[first : first + run]
                    for i in range(some.size):
                        total += np.int64(some[i]) * np.int64(np.int32(others[i]))
                    result = (result + total % prime) % prime
                out[j, s, l] = np.uint32(result)
