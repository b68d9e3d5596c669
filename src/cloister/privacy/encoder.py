"""Contributions: what one record puts into a released sum, in integers, and the largest it can be.

The rule that spares all arguments about rounding: records are quantised first, then integers are added. A record of a
table is already scaled by public bounds, clipped to [-1, 1] and rounded to multiples of 2^-f; in units of 2^-f it is an
integer vector x with |x_h| <= 2^f. In a Lloyd step it contributes (x, w) to the slots of its one cluster: its
coordinates, and the public integer w for the count. The sensitivity of the sum under add/remove neighbours is the
largest norm of one contribution, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Protocol

import numpy as np

from cloister.errors import ConfigError
from cloister.numeric import FixedPoint
from cloister.privacy.units import Sensitivity
from cloister.records import FloatArray, IntArray

_MEAN_SQUARE_COORDINATE = 0.2025  # (2 * 0.225)^2: the average coordinate of a centre in Su et al. (2017), thesis 6.2.3


@dataclass(frozen=True, kw_only=True)
class SumCountEncoder:
    """Encodes (coordinates, count) of records that each join exactly one cluster.

    Parameters
    ----------
    dimensions
        d, the number of columns.
    fixed_point
        The grid of the records.
    count_weight
        w: what a record adds to its cluster's count slot. :func:`balance_count_weight` chooses it from public values.
    norm_bound
        If given: records whose integer vector is longer (L2, in grid units) are shortened towards zero to fit.

    Privacy
    -------
    Neighbours: one record added or removed. It touches one cluster's slots and adds (x, w) there, with |x_h| <= 2^f, so
    L1 <= d 2^f + w and L2^2 <= d 2^2f + w^2; with a norm bound R, L2^2 <= R^2 + w^2 and L1 <= min(d 2^f, R sqrt d) + w.
    Which cluster it joins depends on the record and on centres that were released before, never on other records.
    """

    dimensions: int
    fixed_point: FixedPoint
    count_weight: int
    norm_bound: int | None = None

    def __post_init__(self) -> None:
        if self.dimensions < 1 or self.count_weight < 1:
            raise ConfigError(
                "an encoder must have at least one column and a count weight of at least 1; "
                f"got {self.dimensions} and {self.count_weight}."
            )
        if self.norm_bound is not None and self.norm_bound < 1:
            raise ConfigError(f"norm_bound must be at least 1 grid step; got {self.norm_bound}.")

    @property
    def sensitivity(self) -> Sensitivity:
        """The largest norms of one contribution, exact."""
        scale, d, w = self.fixed_point.scale, self.dimensions, self.count_weight
        square, absolute = d * scale**2, d * scale
        if self.norm_bound is not None:
            square = min(square, self.norm_bound**2)
            # Cauchy-Schwarz, and |x| <= x^2 for integers; both sides are integers, so rounding down holds.
            absolute = min(absolute, isqrt(d * self.norm_bound**2), self.norm_bound**2)
        return Sensitivity(l1=absolute + w, l2_squared=square + w**2)

    def encode_sums(self, sums: FloatArray, counts: IntArray) -> IntArray:
        """Turn exact sums and counts of bounded records into the integers that are released, (k, d + 1)."""
        return np.hstack([self.fixed_point.encode(sums), self.count_weight * counts[:, None]])

    def decode_counts(self, total: IntArray) -> FloatArray:
        """Read the counts of a (noisy) total."""
        counts: FloatArray = total[:, -1] / self.count_weight
        return counts

    def decode_sums(self, total: IntArray) -> FloatArray:
        """Read the sums of a (noisy) total, in [-1, 1] units."""
        return self.fixed_point.decode(total[:, :-1])

    def bound(self, points: FloatArray) -> FloatArray:
        """Shorten records that are longer than the norm bound; the result is on the grid and inside the bound.

        Coordinates are rounded towards zero after scaling, in integers, so that the norm cannot exceed the bound by
        rounding.
        """
        if self.norm_bound is None:
            return points
        grid = self.fixed_point.encode(points)
        squares = (grid.astype(np.float64) ** 2).sum(axis=1)
        long = squares > float(self.norm_bound) ** 2 * (1 - 1e-12)  # close calls are shortened too: never too long
        if not long.any():
            return points
        factor = self.norm_bound / np.sqrt(squares[long])
        # One ulp of doubt in the factor moves a coordinate by less than one step; a step towards zero covers it.
        shortened = np.sign(grid[long]) * np.maximum(np.floor(np.abs(grid[long]) * factor[:, None]) - 1, 0)
        out = points.copy()
        out[long] = shortened / self.fixed_point.scale
        return out


class Batches(Protocol):
    """Records in batches; what :class:`cloister.records.Records` offers, seen from below."""

    def batches(self) -> Iterator[FloatArray]:
        """Yield (n_b, d) arrays on the grid in [-1, 1]."""


class BoundedRecords:
    """Records whose every batch has passed an encoder's norm bound."""

    __slots__ = ("_encoder", "_records")

    def __init__(self, records: Batches, encoder: SumCountEncoder) -> None:
        self._records = records
        self._encoder = encoder

    @property
    def dimensions(self) -> int:
        """The number of columns."""
        return self._encoder.dimensions

    def batches(self) -> Iterator[FloatArray]:
        """Yield bounded batches."""
        for batch in self._records.batches():
            yield self._encoder.bound(batch)


def balance_count_weight(dimensions: int, fixed_point: FixedPoint) -> int:
    """Choose w from public values: w = 2^f (0.2025 d)^(1/4).

    A centre's error is about (noise in S - mu noise in w C / w) / C, so its mean square is proportional to
    (d 2^2f + w^2) (d / 2^2f + |mu|^2 / w^2); with |mu|^2 about 0.2025 d (thesis 6.2.3) this w minimises it.
    """
    return max(1, round(float(fixed_point.scale * (_MEAN_SQUARE_COORDINATE * dimensions) ** 0.25)))
