"""What a key holder can read off the low bits of an answer: the errors of its own ciphertexts, as Alice weighted them.

The holder knows its keys and every error e that it drew. In an answer's low bits there is <w, e>, an equation about
Alice's weights w, under her flood, her re-randomisation and the rounding to a small modulus
(:mod:`cloister.protocols.vertical.flood`). An adversary that knows all records but one subtracts what these add and
looks for the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.lattice.encryption import round_to_plaintext
from cloister.lattice.inner_product import mirror_weights
from cloister.lattice.keys import SecretKeys
from cloister.lattice.lwe import SmallLweBatch
from cloister.protocols.vertical.evaluation import Block
from cloister.protocols.vertical.query import HistogramQuery, Query
from cloister.protocols.vertical.statistics import measure_weights
from cloister.records import FloatArray, IntArray


def read_fresh_errors(keys: SecretKeys, block: Block, records: int) -> IntArray:
    """Return the errors (C, records) of the first records of a block: body - mask * s - delta * message."""
    parameters, ring = keys.parameters, keys.parameters.ring
    noisy = ring.subtract(block.bodies, ring.inverse(ring.multiply(block.masks, keys.ntt)))
    scaled = ring.to_integers(np.moveaxis(noisy[..., :records], -2, -1))
    return np.asarray(scaled - parameters.delta * round_to_plaintext(parameters, scaled), dtype=np.int64)


def read_answer_errors(keys: SecretKeys, batch: SmallLweBatch) -> FloatArray:
    """Return what is left of each number of an answer beside delta times its plaintext, in units of q."""
    parameters = batch.parameters
    signed = mirror_weights(keys.ternary)[0].astype(np.int64).view(np.uint64)
    up = np.uint64(64 - batch.bits)
    rest = ((batch.bodies - batch.masks @ signed) << up).view(np.int64) >> np.int64(up)
    scaled = rest.astype(object) * parameters.modulus
    plain = round_to_plaintext(parameters, (2 * scaled + (1 << batch.bits)) // (2 << batch.bits))
    # scaled / 2^bits - delta * plain, exactly, before it becomes a double.
    left = (scaled - (plain * parameters.delta << batch.bits)) / (1 << batch.bits)
    return np.asarray(left, dtype=np.float64)


def weigh_errors(
    query: Query, errors: IntArray, *, alice: FloatArray, alice_cells: NDArray[np.int32], reps: FloatArray
) -> FloatArray:
    """Return <w, e> for each number of a query, over some records.

    Parameters
    ----------
    query
        What was asked.
    errors
        (C, n): of each cell's ciphertext at each record's place; then, where there are residuals, of each cell's and
        column's.
    alice, alice_cells, reps
        The records' columns in the clear, (n, d_A), their cells, (n,), and the encrypted cells' representatives.
    """
    m = len(reps)
    out = np.zeros(query.length)
    if isinstance(query, HistogramQuery):
        places = alice_cells.astype(np.int64) * query.groups + query.group_of[:, None]
        np.add.at(out, places, errors[:m])
        return out
    weights = measure_weights(query, alice, reps)
    k, d, columns, encrypted = query.clusters, query.dimensions, query.alice_count, query.encrypted_count
    labels = weights.labels.astype(np.int64)
    cells, records = np.indices(labels.shape)
    np.add.at(out, k * d + labels, errors[:m])
    for j in range(columns):
        np.add.at(out, labels * d + j, weights.offsets[labels, j, records] * errors[:m])
    for j in range(encrypted):
        part = query.constants[labels, cells, j] * errors[:m]
        if len(errors) > m:
            part = part + errors[m + np.arange(m) * encrypted + j]
        np.add.at(out, labels * d + columns + j, part)
    return out
