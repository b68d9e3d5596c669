"""Queries: what one pass over the encrypted records adds up, in integers, and the most that one record can add."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import TypeVar

import numpy as np

from cloister.errors import LocalProtocolError
from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Sensitivity
from cloister.protocols.vertical.settings import Settings
from cloister.records import FloatArray, IntArray

LONGEST_MOST = 2**20
HISTOGRAM = "joint histogram"


def round_to_length(vectors: FloatArray, longest: int | None) -> IntArray:
    """Round vectors to integers, (..., d), none longer than ``longest``.

    Lemma. With 0 <= longest <= 2^20 and d <= 2000, every result z has |z|^2 <= longest^2, exactly; and it depends on
    its own vector only.

    Proof. z is either checked, in integers, or y truncated towards zero, where y is the vector shortened in doubles:
    |y| <= longest (1 + (d + 4) 2^-53). Then |z|^2 <= |y|^2 < longest^2 + 1, and z's squared length is an integer.
    Squares are added column by column, so the rounding of a row does not depend on the other rows.

    Parameters
    ----------
    vectors
        (..., d), in units, below 2^40.
    longest
        In units; None: round only.
    """
    if longest is None:
        return np.rint(vectors).astype(np.int64)
    if not 0 <= longest <= LONGEST_MOST:
        raise LocalProtocolError(f"a vector's length must be bounded by 0 to 2^20 units; got {longest}: this is a bug.")
    squares = np.zeros(vectors.shape[:-1])
    for j in range(vectors.shape[-1]):
        squares += vectors[..., j] ** 2
    factors = np.minimum(1.0, longest / np.maximum(np.sqrt(squares), max(longest, 1)))
    shortened = vectors * factors[..., None]
    rounded = np.rint(shortened).astype(np.int64)
    too_long = (rounded**2).sum(axis=-1, keepdims=True) > longest**2
    bounded: IntArray = np.where(too_long, np.trunc(shortened).astype(np.int64), rounded)
    return bounded


@dataclass(frozen=True, kw_only=True)
class Part:
    """A contiguous part of a total with one scale of noise.

    Parameters
    ----------
    name
        What is released, in plain words.
    length
        How many numbers.
    touched
        How many of them one record can change at most.
    l2_squared
        The most that the squared L2 norm of one record's part can be, exactly.
    sigma
        The noise wanted on each number; None: exact.
    """

    name: str
    length: int
    touched: int
    l2_squared: int
    sigma: float | None

    @property
    def sensitivity(self) -> Sensitivity:
        """For the accountant: |v|_1 <= sqrt(touched) |v|_2, and |v|_1 <= |v|_2^2 for integers."""
        l1 = min(isqrt(self.touched * self.l2_squared), self.l2_squared)
        return Sensitivity(l1=l1, l2_squared=self.l2_squared)

    def release(self, settings: Settings) -> Release:
        """The event that every role is charged for.

        Privacy
        -------
        Neighbours: one aligned record added or removed. Sensitivity: `sensitivity`. Theorem: docs/proofs/vertical.md.
        """
        if self.sigma is None:
            raise LocalProtocolError("an exact total must not be charged: it is no private release; this is a bug.")
        return Release(
            name=self.name,
            mechanism=settings.released_mechanism(self.sigma),
            sensitivity=self.sensitivity,
            entries=self.length,
        )


def list_histogram_parts(length: int, sigma: float | None) -> tuple[Part, ...]:
    """A record is in one of Alice's cells and in one group: it adds 1 to one number."""
    return (Part(name=HISTOGRAM, length=length, touched=1, l2_squared=1, sigma=sigma),)


def list_round_parts(
    name: str,
    *,
    clusters: int,
    dimensions: int,
    radius_alice: int | None,
    radius_encrypted: int | None,
    sigma_sum: float | None,
    sigma_count: float | None,
) -> tuple[Part, ...]:
    """A record adds its offsets, |a|^2 + |b|^2, to one cluster's d sums, and 1 to its count; None: not clipped."""
    k, d = clusters, dimensions
    l2_squared = (radius_alice or 0) ** 2 + (radius_encrypted or 0) ** 2
    return (
        Part(name=f"{name}: sums of offsets", length=k * d, touched=d, l2_squared=l2_squared, sigma=sigma_sum),
        Part(name=f"{name}: counts", length=k, touched=1, l2_squared=1, sigma=sigma_count),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class HistogramQuery:
    """How many records are in each combination of a cell of Alice's and a group of encrypted cells.

    Parameters
    ----------
    alice_cells
        How many cells Alice has; the total is (alice_cells, groups), row by row.
    group_of
        (m,): the group of each encrypted cell; all numbers from 0 on occur.
    sigma
        The noise on each number; None: exact.
    """

    alice_cells: int
    group_of: IntArray
    sigma: float | None

    @property
    def name(self) -> str:
        """What is released, in plain words."""
        return HISTOGRAM

    @cached_property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group_of.max()) + 1

    @property
    def length(self) -> int:
        """How many numbers the total has."""
        return self.alice_cells * self.groups

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it releases, and at what noise."""
        return list_histogram_parts(self.length, self.sigma)


@dataclass(frozen=True, kw_only=True, eq=False)
class LloydQuery:
    """One round: for each cluster the records' offsets from its origin, clipped, and their number.

    Columns are in session order: Alice's, then the encrypted ones. A total is k * d sums, cluster by cluster, and then
    k counts.

    Parameters
    ----------
    number
        Which round, from 1.
    centres
        (k, d): a record joins the nearest, its encrypted columns taken to be where its cell's representative is.
    origins
        (k, d), in units: what offsets are measured from. The centres on the grid; all zero in an exact round.
    units
        How many units there are in 1.
    constants
        (k, m, d_B): the clipped offsets of the representatives, in units.
    radius_alice
        No offset of Alice's columns is longer, in units; None: they are not clipped.
    radius_encrypted
        No constant and residual together are longer, in units; None: not clipped.
    sigma_sum, sigma_count
        The noise on each sum and on each count; None: exact.
    """

    number: int
    centres: FloatArray
    origins: IntArray
    units: int
    constants: IntArray
    radius_alice: int | None
    radius_encrypted: int | None
    sigma_sum: float | None
    sigma_count: float | None

    @property
    def name(self) -> str:
        """What is released, in plain words."""
        return f"Lloyd round {self.number}"

    @property
    def clusters(self) -> int:
        """K."""
        return int(self.centres.shape[0])

    @property
    def dimensions(self) -> int:
        """D."""
        return int(self.centres.shape[1])

    @property
    def encrypted_count(self) -> int:
        """d_B."""
        return int(self.constants.shape[2])

    @property
    def alice_count(self) -> int:
        """d_A."""
        return self.dimensions - self.encrypted_count

    @property
    def length(self) -> int:
        """How many numbers the total has."""
        return self.clusters * (self.dimensions + 1)

    @property
    def l2_squared(self) -> int:
        """Of one record's offsets: |a|^2 + |b|^2; 0 where they are not clipped."""
        return (self.radius_alice or 0) ** 2 + (self.radius_encrypted or 0) ** 2

    @property
    def parts(self) -> tuple[Part, ...]:
        """What it releases, and at what noise: sums, then counts."""
        return list_round_parts(
            self.name,
            clusters=self.clusters,
            dimensions=self.dimensions,
            radius_alice=self.radius_alice,
            radius_encrypted=self.radius_encrypted,
            sigma_sum=self.sigma_sum,
            sigma_count=self.sigma_count,
        )

    def split_total(self, total: IntArray) -> tuple[IntArray, IntArray]:
        """Return the sums, (k, d), and the counts, (k,)."""
        k, d = self.clusters, self.dimensions
        return total[: k * d].reshape(k, d), total[k * d :]


Query = HistogramQuery | LloydQuery
Answer = TypeVar("Answer")
Asking = Generator[Query, IntArray, Answer]
"""A part of the algorithm: yields queries, is sent the released totals, returns what it found."""
