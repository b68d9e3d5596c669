"""One client's work in a round: it sums its coded records by cluster and measures coded distances (Algorithm 1, 8-13).

The coded distance |mu_h - c_h x_i|^2 is expanded into |mu_h|^2 - 2 c_h mu_h . x_i + c_h^2 |x_i|^2. The squared norms of
the records never change, so a round is one modular matrix product; the client's decoding weight goes into its small
factor, and weighting costs nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.errors import LocalProtocolError
from cloister.field import kernels
from cloister.field.kernels import Words
from cloister.field.prime_field import Field
from cloister.records import IntArray


class CodedRecords:
    """One client's shares of all records, with their squared norms.

    Parameters
    ----------
    field
        The field that the shares are over.
    shares
        (residues, m, s): row i is this client's share of record i.
    """

    __slots__ = ("field", "shares", "squared_norms")

    def __init__(self, field: Field, shares: Words) -> None:
        if shares.ndim != 3 or len(shares) != field.residues or shares.dtype != np.uint64:
            raise LocalProtocolError(
                f"shares must be 64-bit words of shape ({field.residues}, m, s); got {shares.dtype} of {shares.shape}."
            )
        self.field = field
        self.shares = np.ascontiguousarray(shares)
        self.squared_norms = np.empty(shares.shape[:2], dtype=np.uint64)
        for modulus, residue, norms in zip(field.words, self.shares, self.squared_norms, strict=True):
            kernels.square_rows(residue, norms, modulus)

    def sum_clusters(self, labels: NDArray[np.int32], clusters: int) -> Words:
        """Return the coded sum of each cluster's records, (residues, k, s).

        Parameters
        ----------
        labels
            (m,): the cluster of each record, from 0; -1 for none of them.
        clusters
            k.
        """
        labels = np.ascontiguousarray(labels, dtype=np.int32)
        residues, records, width = self.shares.shape
        if labels.shape != (records,) or (records and not -1 <= labels.min() <= labels.max() < clusters):
            raise LocalProtocolError(
                f"there must be one label for each of {records} records, from -1 to {clusters - 1}; got "
                f"{labels.shape} labels, or some out of range."
            )
        sums = np.zeros((residues, clusters, width), dtype=np.uint64)
        for modulus, residue, out in zip(self.field.words, self.shares, sums, strict=True):
            kernels.sum_labelled_rows(residue, labels, out, modulus)
        return sums

    def measure(
        self, sums: Words, counts: IntArray, *, weight: Words | None = None, mask: Words | None = None
    ) -> Words:
        """Return weight |mu_h - c_h x_i|^2 + mask of the shares, (residues, m, k).

        Parameters
        ----------
        sums
            (residues, k, s), of :meth:`sum_clusters`; or some of its rows, for the columns that are asked for.
        counts
            (k,): how many records each sum has.
        weight
            (residues,): this client's decoding weight, :meth:`LagrangeCode.weigh_client`; 1 if left out.
        mask
            (residues, m, k), uniform; masks of the clients that are decoded together add up to 0.
        """
        residues, records, width = self.shares.shape
        clusters = len(counts)
        shape = (residues, records, clusters)
        shapes_fit = sums.shape == (residues, clusters, width) and (mask is None or mask.shape == shape)
        if not shapes_fit:
            raise LocalProtocolError(
                f"sums of shape ({residues}, {clusters}, {width}) and a mask of {shape} "
                f"must come with {clusters} counts; got {sums.shape} and {None if mask is None else mask.shape}."
            )
        factors, norm_factors, offsets = self._prepare(sums, counts, weight)
        distances = np.empty(shape, dtype=np.uint64)
        for r, modulus in enumerate(self.field.words):
            kernels.expand_distances(
                self.shares[r], self.squared_norms[r], factors[r], norm_factors[r], offsets[r], distances[r], modulus
            )
            if mask is not None:
                kernels.add_elements(distances[r].reshape(-1), np.ascontiguousarray(mask[r]).reshape(-1), modulus)
        return distances

    def _prepare(self, sums: Words, counts: IntArray, weight: Words | None) -> tuple[Words, Words, Words]:
        """Return -2 c w mu (residues, k, s), c^2 w and w |mu|^2 (residues, k), with w the weight."""
        residues, clusters, width = sums.shape
        factors = np.empty((residues, clusters, width), dtype=np.uint64)
        norm_factors, offsets = (np.empty((residues, clusters), dtype=np.uint64) for _ in range(2))
        sums = np.ascontiguousarray(sums)
        for r, modulus in enumerate(self.field.moduli):
            w = 1 if weight is None else int(weight[r])
            word = np.uint64(modulus)
            norm_factors[r] = [w * int(c) ** 2 % modulus for c in counts]
            kernels.square_rows(sums[r], offsets[r], word)
            kernels.scale_rows(offsets[r : r + 1], np.array([w], dtype=np.uint64), offsets[r : r + 1], word)
            kernels.scale_rows(
                sums[r], np.array([-2 * w * int(c) % modulus for c in counts], dtype=np.uint64), factors[r], word
            )
        return factors, norm_factors, offsets
