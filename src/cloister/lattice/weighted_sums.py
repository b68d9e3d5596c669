"""Weighted sums of encrypted records: each row of weights is transformed once, whatever it is used for.

Records sit in coefficients. The weight of record p belongs to X^-p = -X^(N-p), so that coefficient 0 of weights times
message is sum_p w_p m_p. Only that coefficient is wanted: the mask half of a product is added up in NTT form, the body
half is a plain sum of residues, which needs no transform.

A *product* is one row of weights times one ciphertext; it may go into several sums, each with a public factor. So an
offset that is a constant for a whole cell costs no transform of its own: it is a factor on the product that counts.

The time depends on how many rows, products and targets there are, on which factors are 1, and on the bits of a row's
largest weight where they are more than 35 - log2 N; not on single weights or residues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_inline, compile_loop
from cloister.errors import ConfigError, LocalProtocolError
from cloister.lattice.ntt import Residues, forward_one, multiply_lazy, reduce_wide, subtract_once
from cloister.lattice.ring import Ring
from cloister.records import IntArray

_LAZY_PRODUCTS = 511  # products of a residue and twice a residue are below 2^55: so many and a residue fit 64 bits
_PRODUCT_BITS = 35  # residues are below 2^27: so many more bits fit a signed 64-bit word
Weights = NDArray[np.int32]
Places = NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Products:
    """What is multiplied with what, and where it goes.

    Attributes
    ----------
    weights
        int32 (J, N): rows of weights, one number for each record of the block.
    row_of, source_of
        (Q,): the row and the ciphertext of each product; rows rise, so that each is transformed once.
    first_target
        (Q + 1,): product q has the targets from ``first_target[q]`` to ``first_target[q + 1]``.
    into, factors
        (T,): the sum that each target is, and its factor, any 64-bit integer.
    """

    weights: NDArray[np.int32]
    row_of: IntArray
    source_of: IntArray
    first_target: IntArray
    into: IntArray
    factors: IntArray


class WeightedSums:
    """Sums in the making: masks (G, L, N) in NTT form and bodies (G, L).

    Parameters
    ----------
    ring
        The arithmetic.
    count
        G, how many sums.
    """

    def __init__(self, ring: Ring, count: int) -> None:
        self._ring = ring
        self._masks = np.zeros((count, len(ring.primes), ring.degree), dtype=np.uint64)
        self._held = np.zeros((count, len(ring.primes)), dtype=np.int64)
        self._bodies = np.zeros((count, len(ring.primes)), dtype=np.uint64)

    def add(self, masks: Residues, bodies: Residues, products: Products) -> None:
        """Add one block's products.

        Parameters
        ----------
        masks
            (C, L, N) in NTT form.
        bodies
            (C, L, N) in coefficient form.
        products
            What to add.
        """
        ring = self._ring
        _check(products, sources=len(masks), sums=len(self._masks), degree=ring.degree)
        if masks.shape != bodies.shape or masks.shape[1:] != (len(ring.primes), ring.degree):
            raise LocalProtocolError(f"masks and bodies must have one shape; got {masks.shape} and {bodies.shape}.")
        factors = np.stack([products.factors % prime for prime in ring.primes], axis=1).astype(np.uint32)
        _add_products(
            self._masks,
            self._held,
            self._bodies,
            masks,
            bodies,
            np.ascontiguousarray(products.weights),
            products.row_of,
            products.source_of,
            products.first_target,
            products.into,
            factors,
            ring.prime_words,
            ring.constants,
            ring.factors,
            ring.quotients,
        )

    def finish(self) -> tuple[Residues, Residues]:
        """Return masks (G, L, N) in coefficient form and bodies (G, L), reduced."""
        primes = self._ring.prime_words.astype(np.uint64)
        masks = (self._masks % primes[:, None]).astype(np.uint32)
        return self._ring.inverse(masks), (self._bodies % primes).astype(np.uint32)


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


def _check(products: Products, *, sources: int, sums: int, degree: int) -> None:
    """Refuse indices that the compiled loops would read or write outside their arrays."""
    count, targets = len(products.row_of), len(products.into)
    fits = (
        products.weights.dtype == np.int32
        and products.weights.ndim == 2
        and products.weights.shape[1] == degree
        and len(products.source_of) == count
        and len(products.first_target) == count + 1
        and len(products.factors) == targets
        and _rises_to(products.first_target, 0, targets + 1)
        and products.first_target[0] == 0
        and products.first_target[-1] == targets
        and _rises_to(products.row_of, 0, len(products.weights))
        and _is_within(products.source_of, sources)
        and _is_within(products.into, sums)
    )
    if not fits:
        raise LocalProtocolError("products must name existing rows, ciphertexts and sums; they do not: this is a bug.")


@compile_loop
def _is_within(places: IntArray, end: int) -> bool:
    """Whether all places are in 0..end-1."""
    outside = 0
    for place in places:
        outside += place < 0 or place >= end
    return outside == 0


@compile_loop
def _rises_to(places: IntArray, least: int, end: int) -> bool:
    """Whether places are in least..end-1 and never fall."""
    for place in places:
        if place < least or place >= end:
            return False
        least = place
    return True


@compile_loop
def _write_mirrored(weights: Any, out: Any, prime: Any, unit: Any, lack: Any) -> None:
    """Write the residues of the weights' polynomial: place 0 as it is, place N-p the negative of weight p."""
    out[0] = _find_residue(weights[0], prime, unit, lack)
    for p in range(1, weights.size):
        residue = _find_residue(weights[p], prime, unit, lack)  # negated as a residue: -(-2^31) is no 32-bit integer
        out[np.uintp(weights.size - p)] = subtract_once(np.uint32(prime - residue), prime)


@compile_inline
def _find_residue(weight: Any, prime: Any, unit: Any, lack: Any) -> Any:
    """Return a weight modulo p; a negative one's word is 2^32 too large, which ``lack`` = -2^32 mod p makes up for."""
    word = subtract_once(multiply_lazy(np.uint32(weight), np.uint32(1), unit, prime), prime)
    return subtract_once(np.uint32(word + np.uint32(lack & np.uint32(weight >> 31))), prime)


@compile_loop
def _find_run(weights: Any) -> Any:
    """How many products of these weights and residues may be added before a signed 64-bit word is full."""
    bits = np.uint32(0)
    for i in range(weights.size):
        bits |= np.uint32(weights[i] ^ (weights[i] >> 31))  # so that |w| <= bits + 1, also for -2^31
    return max(np.int64(1), (np.int64(1) << _PRODUCT_BITS) // (np.int64(bits) + 1))


@compile_loop
def _sum_body(weights: Any, body: Any, run: Any, prime: Any) -> Any:
    """Return the sum of weights times residues, modulo p."""
    result = np.int64(0)
    for first in range(0, weights.size, run):
        some, others = weights[first : first + run], body[first : first + run]
        total = np.int64(0)
        for i in range(some.size):
            total += np.int64(some[i]) * np.int64(np.int32(others[i]))
        result += total % prime
    return np.uint64(result % prime)


@compile_loop
def _reduce(total: Any, prime: Any, unit: Any, power: Any, power_quotient: Any) -> None:
    for i in range(total.size):
        total[i] = np.uint64(reduce_wide(total[i], prime, unit, power, power_quotient))


@compile_loop
def _accumulate(total: Any, left: Any, right: Any) -> None:
    for i in range(total.size):
        total[i] += np.uint64(left[i]) * np.uint64(right[i])


@compile_loop
def _accumulate_multiple(total: Any, left: Any, right: Any, factor: Any, prime: Any) -> None:
    """Add the products of ``factor * left``, in 0..2p-1, and ``right``."""
    quotient = np.uint32((np.uint64(factor) << np.uint64(32)) // np.uint64(prime))
    for i in range(total.size):
        total[i] += np.uint64(multiply_lazy(left[i], factor, quotient, prime)) * np.uint64(right[i])


@compile_loop
def _add_products(
    sums: Any,
    held: Any,
    body_sums: Any,
    masks: Residues,
    bodies: Residues,
    weights: Any,
    row_of: Any,
    source_of: Any,
    first_target: Any,
    into: Any,
    factors: Residues,
    primes: Residues,
    constants: Residues,
    roots: Residues,
    quotients: Residues,
) -> None:
    """Do all of it, row by row, so that a row and its transforms stay in the nearest caches."""
    degree = masks.shape[2]
    polynomials = np.empty((primes.size, degree), dtype=np.uint32)
    scratch = np.empty(degree, dtype=np.uint32)
    last, run = -1, np.int64(1)
    for q in range(row_of.size):
        source, targets = source_of[q], range(first_target[q], first_target[q + 1])
        if row_of[q] != last:
            last = row_of[q]
            run = _find_run(weights[last])
            for l in range(primes.size):  # noqa: E741
                prime, unit, power = primes[l], constants[l, 0], constants[l, 1]
                _write_mirrored(weights[last], polynomials[l], prime, unit, np.uint32((prime - power) % prime))
                forward_one(polynomials[l], scratch, roots[l], quotients[l], prime)
        for l in range(primes.size):  # noqa: E741
            prime, unit, power, power_quotient = primes[l], constants[l, 0], constants[l, 1], constants[l, 2]
            wide_prime = np.uint64(prime)
            value = _sum_body(weights[last], bodies[source, l], run, np.int64(prime))
            for target in targets:
                g, factor = into[target], factors[target, l]
                body_sums[g, l] = (body_sums[g, l] + value * np.uint64(factor)) % wide_prime
                if held[g, l] == _LAZY_PRODUCTS:
                    held[g, l] = 0
                    _reduce(sums[g, l], prime, unit, power, power_quotient)
                held[g, l] += 1
                if factor == 1:
                    _accumulate(sums[g, l], polynomials[l], masks[source, l])
                else:
                    _accumulate_multiple(sums[g, l], polynomials[l], masks[source, l], factor, prime)


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
def _sum_bodies(bodies: Residues, weights: Weights, mask_of: IntArray, out: Residues, primes: Residues) -> None:
    """Write the weighted sums of each row's bodies."""
    for j in range(weights.shape[0]):
        run = _find_run(weights[j])
        for s in range(out.shape[1]):
            for l in range(primes.size):  # noqa: E741
                out[j, s, l] = np.uint32(_sum_body(weights[j], bodies[mask_of[j], s, l], run, np.int64(primes[l])))
