"""The server's data: public points that are similar to the records. Everyone has them; nothing here is private."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloister.errors import ConfigError
from cloister.records import FloatArray

POINTS_MOST = 100_000


@dataclass(frozen=True, kw_only=True)
class ServerStamp:
    """Identifies the points: part of what all roles agree on."""

    points: int
    """How many points."""
    digest: bytes
    """SHA-256 of their coordinates, as doubles, row by row."""
    product_norm: float
    """|mean of q q'| (Frobenius norm) over the largest squared length: an estimate of how records' products add up."""
    mean_fourth: float
    """The mean of |q|^4 over the largest."""

    @classmethod
    def of(cls, points: FloatArray, *, dimensions: int, clusters: int) -> ServerStamp:
        """Check the points and return their stamp."""
        if points.ndim != 2 or points.shape[1] != dimensions or not clusters <= len(points) <= POINTS_MOST:
            raise ConfigError(
                f"the server's data must be from {clusters} (the number of clusters) to {POINTS_MOST:,} points of "
                f"{dimensions} columns; got an array of shape {points.shape}. Give more points, or use the synopsis, "
                "which needs none."
            )
        if not (np.abs(points) <= 1.0).all():  # also catches NaN
            raise ConfigError(
                "the server's data must lie in [-1, 1] once scaled by the public bounds; some points do not. Clip them."
            )
        content = np.ascontiguousarray(points, dtype=np.float64)
        if len(np.unique(content, axis=0)) < max(clusters, 2):
            raise ConfigError(
                f"the server's data must have at least {max(clusters, 2)} different points; they have fewer. "
                "Give other points, or use the synopsis, which needs none."
            )
        squares = np.square(content).sum(axis=1)
        longest = max(float(squares.max()), 1e-12)
        products = content.T @ content  # exact in any order: points are multiples of 2^-16, and not too many
        return cls(
            points=len(points),
            digest=hashlib.sha256(content.tobytes()).digest(),
            product_norm=float(np.sqrt(np.square(products / len(content)).sum())) / longest,
            mean_fourth=float(np.square(squares).mean()) / (longest * longest),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerData:
    """The points, and what follows from them."""

    points: FloatArray

    @cached_property
    def middle(self) -> FloatArray:
        """Their mean, from which offsets are measured. It is public, so centring costs nothing."""
        mean: FloatArray = self.points.mean(axis=0)
        return mean

    @cached_property
    def longest(self) -> float:
        """The length of the longest: the radius Delta of section 5.1, around the origin."""
        return max(float(np.sqrt(np.square(self.points).sum(axis=1).max())), 1e-6)

    @cached_property
    def offsets(self) -> FloatArray:
        """The points' offsets from the middle."""
        return self.points - self.middle

    @cached_property
    def radius(self) -> float:
        """The median distance from the middle, never 0, to which records' offsets are shortened."""
        lengths = np.sqrt((self.offsets**2).sum(axis=1))
        return max(float(np.median(lengths)), 1e-6)

    @cached_property
    def covariance(self) -> FloatArray:
        """The covariance of the points, each shortened to the radius as records are."""
        lengths = np.sqrt((self.offsets**2).sum(axis=1))
        shortened = self.offsets * (self.radius / np.maximum(lengths, self.radius))[:, None]
        product: FloatArray = shortened.T @ shortened / len(shortened)
        return product
