"""Lagrange interpolation in exact integers modulo a prime: what shares and decoding weights are made of."""

from __future__ import annotations

from functools import lru_cache
from math import prod


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
    """Return the product of point - other."""
    return prod(point - other for other in others) % modulus
