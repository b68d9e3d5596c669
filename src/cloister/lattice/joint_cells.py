"""Joint cells of two or three encrypted column holders: every product of their indicators, once, before the rounds.

Each holder encrypts the indicators of its own cells, one record per slot. The joint cell (i, j, l) is the product of
three indicators: m_1 m_2 products and then m_1 m_2 m_3, each relinearised and divided by primes as the plan says
(:mod:`~cloister.lattice.product_plan`). What comes out are ordinary ciphertexts: to the rounds they are the cells of
one holder with m_1 m_2 m_3 of them, except that records sit in slots, so weights are encoded first
(:func:`~cloister.lattice.slots.encode_weights`). Answers are integers modulo t, in coefficient 0, where noise is added
to them as to any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from cloister.crypto import Entropy
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.lattice.keys import PublicKeys
from cloister.lattice.product_plan import ProductPlan
from cloister.lattice.products import LsbBatch, ScaledBatch, encrypt_lsb, multiply, to_scaled
from cloister.lattice.relinearisation import RelinearisationKey, relinearise, switch_level
from cloister.lattice.slots import encode_slots
from cloister.records import IntArray

_PRODUCTS_AT_ONCE = 4  # what stays in the cache


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
