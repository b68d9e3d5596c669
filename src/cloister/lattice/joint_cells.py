"""Joint cells of two or three encrypted column holders: every product of their indicators, once, before the rounds.

Each holder encrypts the indicators of its own cells, a record a slot. The joint cell (i, j, l) is the product of
three indicators: m_1 m_2 products and then m_1 m_2 m_3, each relinearised and divided by primes as the plan says
(:mod:`~cloister.lattice.product_plan`). What comes out are ordinary ciphertexts: to the rounds they are the cells of
one holder with m_1 m_2 m_3 of them, except that records sit in slots. A sum over slots is a coefficient:

    sum_r w_r m(zeta_r) = N times coefficient 0 of W m,   W(zeta_r) = w_r,

so the weights are encoded (:func:`encode_weights`) and then accumulated as usual. Answers are integers modulo t, in
coefficient 0, where noise is added to them as to any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Entropy
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.lattice.keys import PublicKeys
from cloister.lattice.levels import switch_level
from cloister.lattice.ntt import compile_loop, inverse_one, multiply_lazy, subtract_once
from cloister.lattice.product_plan import ProductPlan
from cloister.lattice.products import LsbBatch, ScaledBatch, encrypt_lsb, multiply, to_scaled
from cloister.lattice.relinearisation import RelinearisationKey, relinearise
from cloister.lattice.ring import Ring
from cloister.records import IntArray

_PRODUCTS_AT_ONCE = 4  # what stays in the cache


def encode_slots(degree: int, plaintext_modulus: int, slots: IntArray) -> IntArray:
    """Return coefficients (..., N), centred modulo t, of the polynomials with these values in their slots."""
    ring = _slot_ring(degree, plaintext_modulus)
    return _centre(ring.inverse(ring.reduce(slots))[..., 0, :], plaintext_modulus)


def encode_weights(degree: int, plaintext_modulus: int, weights: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return weights of coefficients (..., N) from weights of records (..., N), of 32 bits, for the inner products.

    Column p of the result is N times coefficient -p of W, modulo t: sum_p result_p m_p = sum_r w_r m(zeta_r) modulo t.
    """
    ring = _slot_ring(degree, plaintext_modulus)
    rows = np.ascontiguousarray(weights.reshape(-1, degree), dtype=np.int32)
    out = np.empty(rows.shape, dtype=np.int32)
    unit, power = ring.constants[0, :2]
    _encode_rows(rows, out, ring.prime_words[0], unit, power, ring.inverse_factors[0], ring.inverse_quotients[0])
    return out.reshape(weights.shape)


def encrypt_indicators(
    plan: ProductPlan, public: PublicKeys, holder: int, indicators: IntArray, stream: Entropy
) -> LsbBatch:
    """Encrypt a block of a column holder's indicators (its cells, N) at the level where they are needed.

    Parameters
    ----------
    plan
        The session's plan.
    public
        The key, for all of the plan's primes.
    holder
        Which of the column holders, from 0.
    indicators
        (cells, N), 0 or 1; the last block is filled up with zeros.
    stream
        Where the errors come from.
    """
    shape = (plan.load.cells[holder], plan.parameters.degree)
    if indicators.shape != shape or public.parameters != plan.parameters:
        raise LocalProtocolError(f"indicators must be {shape}, under the plan's key; got {indicators.shape}.")
    if ((indicators != 0) & (indicators != 1)).any():
        raise ConfigError("indicators must be 0 or 1; some are not. One cell of each record is 1.")
    t, level = plan.parameters.plaintext_modulus, plan.holder_level(holder)
    # Dividing by the primes above the level divides the plaintext too: multiply it first.
    factor = plan.holder_factor(holder)
    for prime in plan.parameters.primes[level:]:
        factor = factor * prime % t
    messages = encode_slots(plan.parameters.degree, t, indicators)
    return switch_level(encrypt_lsb(public, messages, stream, factor=factor), level)


def joint_cells(plan: ProductPlan, key: RelinearisationKey, batches: Sequence[LsbBatch]) -> ScaledBatch:
    """Multiply a block of all holders' indicators: cell (i, j, l) comes out at place (i m_2 + j) m_3 + l.

    One block at a time bounds the memory: 8 N L bytes for each joint cell, L the plan's final number of primes.

    Parameters
    ----------
    plan
        The session's plan.
    key
        The relinearisation key, one holder's or collective.
    batches
        One for each column holder, in order.

    Raises
    ------
    RemoteProtocolError
        If a holder's batch is not as the plan says; names the holder.
    """
    if len(batches) != len(plan.load.cells):
        raise LocalProtocolError(f"a block has the cells of {len(plan.load.cells)} holders; got {len(batches)}.")
    for holder, batch in enumerate(batches):
        declared = (plan.load.cells[holder], plan.holder_level(holder), plan.holder_factor(holder))
        if (len(batch), len(batch.parameters.primes), batch.factor) != declared:
            raise RemoteProtocolError(
                f"the cells of column holder {holder} must be {declared[0]} ciphertexts of {declared[1]} primes with "
                f"the plan's factor; got {len(batch)} of {len(batch.parameters.primes)}."
            )
    left = batches[0]
    for place, right in enumerate(batches[1:-1]):
        left = _multiply_all(left, right, key, plan.levels[place + 1])
    return _multiply_last(left, batches[-1], key, plan)


def _multiply_all(left: LsbBatch, right: LsbBatch, key: RelinearisationKey, prime_count: int) -> LsbBatch:
    """Multiply every left with every right ciphertext and step down."""
    parts = list(_step_down(left, right, key, prime_count))
    masks, bodies = np.concatenate([part.masks for part in parts]), np.concatenate([part.bodies for part in parts])
    return LsbBatch(parameters=parts[0].parameters, masks=masks, bodies=bodies, factor=parts[0].factor)


def _multiply_last(left: LsbBatch, right: LsbBatch, key: RelinearisationKey, plan: ProductPlan) -> ScaledBatch:
    """Do the same and scale; each part is written to its place at once, while it is in the cache."""
    final = plan.final
    count = len(left) * len(right)
    masks = np.empty((count, len(final.primes), final.degree), dtype=np.uint32)
    bodies = np.empty((count, 1, len(final.primes), final.degree), dtype=np.uint32)
    first = 0
    for part in _step_down(left, right, key, len(final.primes)):
        scaled = to_scaled(part)
        some = slice(first, first + len(part))
        masks[some], bodies[some] = scaled.masks, scaled.bodies
        first += len(part)
    return ScaledBatch(parameters=final, masks=masks, bodies=bodies)


def _step_down(left: LsbBatch, right: LsbBatch, key: RelinearisationKey, prime_count: int) -> Iterator[LsbBatch]:
    """Yield products of all pairs, in order, a few at a time."""
    pairs = np.array(list(product(range(len(left)), range(len(right)))), dtype=np.int64)
    for first in range(0, len(pairs), _PRODUCTS_AT_ONCE):
        some = pairs[first : first + _PRODUCTS_AT_ONCE]
        yield switch_level(relinearise(multiply(left, right, some), key), prime_count)


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


@cache
def _slot_ring(degree: int, plaintext_modulus: int) -> Ring:
    """Make the transform modulo t once; refuses a t without the roots."""
    return Ring(degree, (plaintext_modulus,))


def _centre(residues: NDArray[np.integer], modulus: int) -> IntArray:
    wide = residues.astype(np.int64)
    return wide - modulus * (wide > modulus // 2)
