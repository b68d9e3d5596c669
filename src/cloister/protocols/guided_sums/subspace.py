"""A subspace: coordinates of a record along a few directions, the same to the last bit whatever lies beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.protocols.guided_sums.exact import count_offsets, project_offsets
from cloister.records import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Subspace:
    """An origin in [-1, 1]^d and orthonormal axes: the coordinates of x are (x - origin) . axes."""

    origin: FloatArray
    axes: FloatArray
    """(d, m)."""

    def project(self, points: FloatArray) -> FloatArray:
        """Return coordinates, (n, m); those of a record depend on no other record, to the last bit."""
        return project_offsets(count_offsets(points, self.origin), self.axes)

    def embed(self, coordinates: FloatArray) -> FloatArray:
        """Return the points of the subspace with these coordinates, (n, d)."""
        embedded: FloatArray = self.origin + coordinates @ self.axes.T
        return embedded


def fix_signs(vectors: FloatArray) -> FloatArray:
    """Return eigenvectors, (d, m), with the sign that makes each one's largest entry positive."""
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    fixed: FloatArray = np.ascontiguousarray(vectors * signs)
    return fixed
