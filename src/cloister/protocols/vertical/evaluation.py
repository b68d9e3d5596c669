"""Alice's work on ciphertexts: from what she knows about each record, the sums that a query asks for.

For record p and encrypted cell c she knows which cluster i the record joins if it is in c. So a round is, for each
block, cell and cluster that occurs there, one row of zeros and ones, and one row with her offsets for each of her
columns:

    count_i += <w_ic, 1_c>,   sums of her columns j: += <w_ic a_j, 1_c>,
    sums of encrypted columns j: += b_icj <w_ic, 1_c> + <w_ic, 1_c r_j>,

where b are the constants of the query and r the residuals, which are ciphertexts of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.lattice.ntt import Residues
from cloister.lattice.parameters import Parameters
from cloister.lattice.slots import encode_weights
from cloister.lattice.weighted_sums import Products, WeightedSums
from cloister.protocols.vertical.query import HistogramQuery, LloydQuery, Query
from cloister.protocols.vertical.statistics import Weights, measure_weights
from cloister.records import FloatArray, IntArray

_PAIRS_AT_ONCE = 64  # rows of this many cells and clusters fit the caches


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """The ciphertexts of some consecutive records.

    Parameters
    ----------
    masks, bodies
        (C, L, N), in NTT form and in coefficient form: one for each cell; then, where there are residuals, one for each
        cell and column, the columns of a cell one after the other.
    """

    masks: Residues
    bodies: Residues


def evaluate_query(
    query: Query,
    *,
    parameters: Parameters,
    blocks: list[Block],
    alice: FloatArray,
    alice_cells: NDArray[np.int32],
    reps: FloatArray,
    residuals: bool,
    in_slots: bool = False,
) -> tuple[Residues, Residues]:
    """Return masks (query.length, L, N) in coefficient form, and bodies (query.length, L).

    Parameters
    ----------
    query
        What to add up.
    parameters
        Of the ciphertexts.
    blocks
        All records.
    alice, alice_cells
        Her columns, (n, d_A), and her cells, (n,).
    reps
        (m, d_B): the encrypted cells' representatives.
    residuals
        Whether there are ciphertexts of residuals.
    in_slots
        Whether records sit in slots, as joint cells' do, and not in coefficients.
    """
    degree = parameters.degree
    sums = WeightedSums(parameters.ring, query.length)
    for number, block in enumerate(blocks):
        rows = slice(number * degree, (number + 1) * degree)
        if isinstance(query, HistogramQuery):
            parts = iter([_count_cells(query, alice_cells[rows], degree)])
        else:
            parts = _sum_offsets(query, alice[rows], reps, degree, residuals=residuals)
        for part in parts:
            weights = part.weights
            if in_slots:
                weights = encode_weights(degree, parameters.plaintext_modulus, weights)
            sums.add(block.masks, block.bodies, replace(part, weights=weights))
    return sums.finish()


def _count_cells(query: HistogramQuery, cells: NDArray[np.int32], degree: int) -> Products:
    """One row for each of her cells; each goes to the sums of all encrypted cells."""
    weights = np.zeros((query.alice_cells, degree), dtype=np.int32)
    weights[cells, np.arange(len(cells))] = 1
    occupied = np.flatnonzero(weights.any(axis=1))
    m = len(query.group_of)
    count = len(occupied) * m
    return Products(
        weights=weights[occupied],
        row_of=np.repeat(np.arange(len(occupied)), m),
        source_of=np.tile(np.arange(m), len(occupied)),
        first_target=np.arange(count + 1),
        into=(occupied[:, None] * query.groups + query.group_of).ravel(),
        factors=np.ones(count, dtype=np.int64),
    )


def _sum_offsets(
    query: LloydQuery, alice: FloatArray, reps: FloatArray, degree: int, *, residuals: bool
) -> Iterator[Products]:
    """Rows for each cell and each cluster that occurs in it, some at a time."""
    own = measure_weights(query, alice, reps)
    cells, clusters = np.nonzero(_find_clusters(own.labels, query.clusters))
    for first in range(0, len(cells), _PAIRS_AT_ONCE):
        some = slice(first, first + _PAIRS_AT_ONCE)
        yield _sum_pairs(query, own, cells[some], clusters[some], degree, residuals=residuals)


def _sum_pairs(
    query: LloydQuery, own: Weights, cells: IntArray, clusters: IntArray, degree: int, *, residuals: bool
) -> Products:
    """Rows for some pairs of a cell and a cluster."""
    m, k = len(own.labels), query.clusters
    columns, encrypted, d = query.alice_count, query.encrypted_count, query.dimensions
    weights = np.empty((len(cells) * (1 + columns), degree), dtype=np.int32)
    _fill_rows(weights, own.labels, own.offsets, cells, clusters)
    # Products of one (cell, cluster): the count, its residuals, then Alice's columns.
    left = encrypted if residuals else 0
    products_each = 1 + left + columns
    rows = np.array([0] * (1 + left) + list(range(1, 1 + columns)))
    row_of = (np.arange(len(cells))[:, None] * (1 + columns) + rows).ravel()
    sources = np.repeat(cells[:, None], products_each, axis=1)
    sources[:, 1 : 1 + left] = m + cells[:, None] * encrypted + np.arange(left)
    # Targets of the count: itself, and the constants' part of the encrypted columns; of the others: one sum each.
    targets_each = np.array([1 + encrypted] + [1] * (left + columns))
    first = np.concatenate([[0], np.cumsum(np.tile(targets_each, len(cells)))])
    sums = clusters[:, None] * d
    into = np.concatenate(
        [
            k * d + clusters[:, None],
            sums + columns + np.arange(encrypted),
            sums + columns + np.arange(left),
            sums + np.arange(columns),
        ],
        axis=1,
    )
    ones = np.ones((len(cells), 1), dtype=np.int64)
    factors = np.concatenate([ones, query.constants[clusters, cells], np.repeat(ones, left + columns, axis=1)], axis=1)
    return Products(
        weights=weights,
        row_of=row_of,
        source_of=sources.ravel(),
        first_target=first,
        into=into.ravel(),
        factors=factors.ravel(),
    )


@compile_loop
def _find_clusters(labels: NDArray[Any], clusters: int) -> NDArray[np.bool_]:
    """Which clusters occur in each cell, (m, k)."""
    occurs = np.zeros((labels.shape[0], clusters), dtype=np.bool_)
    for c in range(labels.shape[0]):
        for p in range(labels.shape[1]):
            occurs[c, labels[c, p]] = True
    return occurs


@compile_loop
def _fill_rows(
    weights: NDArray[Any], labels: NDArray[Any], offsets: NDArray[Any], cells: NDArray[Any], clusters: NDArray[Any]
) -> None:
    """Write the rows of each (cell, cluster) that occurs: ones, then Alice's offsets column by column."""
    count, columns = labels.shape[1], offsets.shape[1]
    for place in range(cells.size):
        i = clusters[place]
        own, ones = labels[cells[place]], weights[place * (1 + columns)]
        ones[count:] = 0
        for p in range(count):
            ones[p] = own[p] == i
        for j in range(columns):
            row, column = weights[place * (1 + columns) + 1 + j], offsets[i, j]
            row[count:] = 0
            for p in range(count):
                row[p] = ones[p] * column[p]
