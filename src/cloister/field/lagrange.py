"""Lagrange coding of records among clients (SecFC, section 4.1; t-private, decoded from any large enough set).

A record is cut into l segments x_1..x_l. Its coding polynomial f has degree below l + t and f(beta_u) = x_u; client j
gets the share f(alpha_j). Any t shares are independent of the record, any l + t recover it, and a squared distance
of shares lies on a polynomial phi of degree 2 (l + t - 1), which any 2l + 2t - 1 clients determine.

The paper fixes f by t uniform values at further points beta_{l+1}..beta_{l+t}. Here the t uniform values are the shares
of the first t clients. Given the record, one set of values determines the other, by a bijection, so that all shares
together have the same law (docs/proofs/lagrange-sharing.md, lemma 1), and t of n shares need no arithmetic.

The server needs only d' = sum_u phi(beta_u), a fixed linear combination of the replies. Its weights depend on which
clients are decoded together, and on nothing else: :meth:`LagrangeCode.weigh_distances`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError
from cloister.field.kernels import Words, multiply_rows
from cloister.field.prime_field import Field, fill_uniform


@lru_cache(maxsize=1024)
def interpolation_matrix(nodes: tuple[int, ...], targets: tuple[int, ...], modulus: int) -> tuple[tuple[int, ...], ...]:
    """Return a row of weights for each target x, so that f(x) = sum_u weight_u f(node_u) for degrees below len(nodes).

    weight_u = prod_{v != u} (x - node_v) / (node_u - node_v). Nodes are distinct modulo the prime.
    """
    scales = [
        pow(_multiply_gaps(node, nodes[:u] + nodes[u + 1 :], modulus), -1, modulus) for u, node in enumerate(nodes)
    ]
    return tuple(
        tuple(
            _multiply_gaps(target, nodes[:u] + nodes[u + 1 :], modulus) * scale % modulus
            for u, scale in enumerate(scales)
        )
        for target in targets
    )


@lru_cache(maxsize=1024)
def summing_weights(nodes: tuple[int, ...], targets: tuple[int, ...], modulus: int) -> tuple[int, ...]:
    """Return weights with sum_{x in targets} f(x) = sum_u weight_u f(node_u) for degrees below len(nodes)."""
    columns = zip(*interpolation_matrix(nodes, targets, modulus), strict=True)
    return tuple(sum(column) % modulus for column in columns)


def _multiply_gaps(point: int, others: tuple[int, ...], modulus: int) -> int:
    return prod(point - other for other in others) % modulus


_BLOCK_WORDS = 1 << 12  # of one segment: a block's segments and noise stay in the second cache


@dataclass(frozen=True, kw_only=True)
class LagrangeCode:
    """The code that a session agrees on.

    Parameters
    ----------
    field
        What the shares are over.
    clients
        n. Clients are numbered from 1 to n.
    segments
        l: a share is l times shorter than a record.
    privacy
        t: how many clients may pool their shares and still learn nothing.
    """

    field: Field
    clients: int
    segments: int
    privacy: int

    def __post_init__(self) -> None:
        n, segments, privacy = self.clients, self.segments, self.privacy
        if segments < 1 or privacy < 1:
            raise ConfigError(
                f"there must be at least 1 segment and privacy against at least 1 client; got l = {segments} and "
                f"t = {privacy}. Use l = 1 and t = 1 or more."
            )
        if self.replies > n:
            most_privacy, most_segments = (n + 1) // 2 - segments, (n + 1) // 2 - privacy
            ways = [f"n = {self.replies} or more clients"]
            if most_privacy >= 1:
                ways.append(f"t = {most_privacy} with l = {segments}")
            if most_segments >= 1:
                ways.append(f"l = {most_segments} with t = {privacy}")
            if n >= 3 and not (most_privacy >= 1 or most_segments >= 1):
                ways.append(f"t = {(n + 1) // 2 - 1} with l = 1")
            raise ConfigError(
                f"2t + 2l - 1 must be at most the number of clients; got t = {privacy}, l = {segments}: "
                f"{self.replies} > {n}. Use {', or '.join(ways)}."
            )
        if segments + n >= min(self.field.moduli):
            raise ConfigError(
                f"a code must have l + n = {segments + n} distinct points other than 0; the field has "
                f"{min(self.field.moduli) - 1}. Use a larger field."
            )

    @property
    def betas(self) -> tuple[int, ...]:
        """The points that hold the segments: 1..l."""
        return tuple(range(1, self.segments + 1))

    @property
    def alphas(self) -> tuple[int, ...]:
        """The clients' points: l + 1..l + n."""
        return tuple(range(self.segments + 1, self.segments + self.clients + 1))

    @property
    def replies(self) -> int:
        """How many clients' distances are decoded together: 2l + 2t - 1."""
        return 2 * self.segments + 2 * self.privacy - 1

    @property
    def holders(self) -> int:
        """How many clients reveal a sum together: l + t."""
        return self.segments + self.privacy

    def width(self, dimensions: int) -> int:
        """Return the length of a segment: d / l, rounded up; the last one is padded with zeros."""
        return -(-dimensions // self.segments)

    def share(self, points: Words, stream: Stream) -> Words:
        """Return every client's shares of some records, (n, residues, m, width); client j's are at index j - 1.

        Parameters
        ----------
        points
            (residues, m, d), the records as elements.
        stream
            The owner's secret randomness; t width words for each record and residue are taken from it.
        """
        if points.ndim != 3 or len(points) != self.field.residues or points.shape[2] < self.segments:
            raise LocalProtocolError(
                f"records must be of shape ({self.field.residues}, m, d) with d at least l = {self.segments}; got "
                f"{points.shape}."
            )
        residues, records, dimensions = points.shape
        width, privacy = self.width(dimensions), self.privacy
        shares = np.empty((self.clients, residues, records, width), dtype=np.uint64)
        rows = max(1, _BLOCK_WORDS // width)
        values = np.zeros((min(rows, records) * width, self.holders), dtype=np.uint64)  # a sum's terms lie together
        nodes = self.betas + self.alphas[:privacy]
        flat = shares.reshape(self.clients, -1)
        for r, modulus in enumerate(self.field.moduli):
            weights = np.array(interpolation_matrix(nodes, self.alphas[privacy:], modulus), dtype=np.uint64)
            for start in range(0, records, rows):
                stop = min(start + rows, records)
                block = values[: (stop - start) * width]
                for u in range(self.segments):
                    part = points[r, start:stop, u * width : (u + 1) * width]
                    block.reshape(stop - start, width, -1)[:, : part.shape[1], u] = part
                first = (r * records + start) * width
                for v in range(privacy):
                    noise = flat[v, first : first + len(block)]
                    fill_uniform(noise, modulus, stream)
                    block[:, self.segments + v] = noise
                multiply_rows(block, weights, flat[privacy:], first, np.uint64(modulus))
        return shares

    def weigh_distances(self, responders: Sequence[int]) -> Words:
        """Return the weights (residues, 2l + 2t - 1) of the replies of these clients, in their ascending order.

        sum_{u <= l} phi(beta_u) = sum_j w_j phi(alpha_j) for every polynomial phi of degree at most 2 (l + t - 1).
        """
        nodes = self._points(responders, self.replies)
        return np.array([summing_weights(nodes, self.betas, q) for q in self.field.moduli], dtype=np.uint64)

    def weigh_client(self, responders: Sequence[int], client: int) -> Words:
        """Return one client's weight (residues,) among these responders."""
        weights = self.weigh_distances(responders)
        if client not in responders:
            raise LocalProtocolError(f"only a responder has a weight; got client {client} of {sorted(responders)}.")
        return weights[:, sorted(responders).index(client)]

    def combine_distances(self, responders: Sequence[int], replies: Words) -> Words:
        """Return d' from unweighted replies (2l + 2t - 1, residues, m, k), in the clients' ascending order."""
        weights = self.weigh_distances(responders)
        combined: Words = self._combine(weights[:, None, :], replies)[0]
        return combined

    def reveal(self, holders: Sequence[int], shares: Words, dimensions: int) -> Words:
        """Return a linear quantity, (residues, rows, d), from l + t clients' shares of it.

        Parameters
        ----------
        holders
            The clients whose shares these are.
        shares
            (l + t, residues, rows, width), in the clients' ascending order.
        dimensions
            d; what the last segment was padded with is cut off.
        """
        nodes = self._points(holders, self.holders)
        weights = np.array([interpolation_matrix(nodes, self.betas, q) for q in self.field.moduli], dtype=np.uint64)
        segments = self._combine(weights, shares)
        revealed: Words = np.concatenate(list(segments), axis=-1)[..., :dimensions]
        return revealed

    def _points(self, clients: Sequence[int], needed: int) -> tuple[int, ...]:
        """Return the points of a set of clients of the right size, ascending."""
        chosen = sorted(set(clients))
        if len(clients) != needed or len(chosen) != needed or not 1 <= chosen[0] <= chosen[-1] <= self.clients:
            raise LocalProtocolError(
                f"there must be {needed} different clients between 1 and {self.clients}; got {list(clients)}."
            )
        return tuple(self.alphas[client - 1] for client in chosen)

    def _combine(self, weights: Words, terms: Words) -> Words:
        """Return (outputs, residues, ...): weights (residues, outputs, u) times terms (u, residues, ...)."""
        outputs = weights.shape[1]
        if terms.shape[:2] != (weights.shape[2], self.field.residues):
            raise LocalProtocolError(
                f"there must be {weights.shape[2]} shares of {self.field.residues} residues; got {terms.shape[:2]}."
            )
        combined = np.empty((self.field.residues, outputs, *terms.shape[2:]), dtype=np.uint64)
        for r, modulus in enumerate(self.field.words):
            rows = np.ascontiguousarray(terms[:, r].reshape(len(terms), -1).T)
            multiply_rows(rows, weights[r], combined[r].reshape(outputs, -1), 0, modulus)
        return combined.swapaxes(0, 1)
