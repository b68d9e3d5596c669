"""Statistics that several algorithms release: the number of records, and their second moments in a subspace or not.

What one record adds must not depend on the records next to it. A product of two matrices of doubles rounds a row
differently if there are more rows (full tiles, tails and single rows run different code). A record on the border
between two cells could then change its cell because another record was added, so that one record would move two. Sums
of integers below 2^53 are exact in any order, so everything that decides where a record counts is computed from offsets
in integer units (`count_offsets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Self

import numpy as np
from msgspec import Struct

from cloister.numeric import find_reach
from cloister.protocols.guided_sums.query import (
    LENGTH_MOST,
    SHARE_MOST,
    Asking,
    Form,
    PublicValues,
    Question,
    Share,
    largest_array,
    pose,
    require_length,
    take_points,
)
from cloister.protocols.guided_sums.settings import GuidedSettings, Slot, require
from cloister.records import FloatArray, IntArray, Records, iterate_chunks
from cloister.wire import Array

UNITS = 2.0**20
"""Units per 1. With x and origin in [-1, 1]^d and d <= 2000, |x - origin|^2 <= 4 d UNITS^2 < 2^53."""
_AXIS_UNITS = 2.0**25  # |x - origin| |axis| <= 2 sqrt(d) 2^20 (2^25 + sqrt(d)/2) < 2^52, and so is any part of the sum


def count_offsets(points: FloatArray, origin: FloatArray) -> FloatArray:
    """Return the offsets from the origin in whole units, (n, d)."""
    offsets: FloatArray = np.rint((points - origin) * UNITS)
    return offsets


def measure_lengths(offsets: FloatArray) -> FloatArray:
    """Return the length of each offset, in units, (n,)."""
    lengths: FloatArray = np.sqrt((offsets**2).sum(axis=1))
    return lengths


def project_offsets(offsets: FloatArray, axes: FloatArray) -> FloatArray:
    """Return the coordinates along unit vectors, (d, m), in [-1, 1] scaling, (n, m)."""
    coordinates: FloatArray = (offsets @ np.rint(axes * _AXIS_UNITS)) / (UNITS * _AXIS_UNITS)
    return coordinates


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

    def pack(self) -> Plane:
        """Return it as it stands in a question."""
        return Plane(origin=Array.of(self.origin), axes=Array.of(self.axes))


_LONG = 1e-6  # by which an axis may be longer than 1: rounding; with it, coordinates still are exact sums


class Plane(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """A `Subspace` in a question."""

    origin: Array
    axes: Array

    def unpack(self, public: PublicValues, *, axes_most: int) -> Subspace:
        """Check the range: an axis that is longer than 1 would make a record's coordinates depend on other records."""
        d = public.settings.dimensions
        origin = take_points("origin", self.origin, d)
        m = self.axes.shape[-1] if len(self.axes.shape) == 2 else 0
        require(1 <= m <= axes_most, "the number of a question's axes", f"from 1 to {axes_most}", m)
        axes = take_points("axes", self.axes, d, m, most=1.0 + _LONG)
        short = bool((np.square(axes).sum(axis=0) <= 1.0 + _LONG).all())
        require(short, "a question's axes", "no longer than 1", "others")
        return Subspace(origin=origin, axes=axes)

    @classmethod
    def largest(cls, public: PublicValues, axes_most: int) -> Plane:
        """Return one that takes as many bytes as any with so many axes."""
        d = public.settings.dimensions
        return cls(origin=largest_array(d), axes=largest_array(d, axes_most))


def fix_signs(vectors: FloatArray) -> FloatArray:
    """Return eigenvectors, (d, m), with the sign that makes each one's largest entry positive."""
    signs = np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    fixed: FloatArray = np.ascontiguousarray(vectors * signs)
    return fixed


SIZE_BINS = 20
"""Of party sizes: 1, 2, 4, 8 and so on, each twice the last; a party votes between two of them."""
_VOTE = 3.5  # deviations of noise above which a bin has votes; in one of 200 releases, some bin has that much noise
_CELLS, _CELLS_PER_OCCUPIED = 16, 3  # cells per cluster, of which about one in three holds records


def list_size_slots(settings: GuidedSettings) -> tuple[Slot, ...]:
    """The round that counts the records, where their number is not declared."""
    if settings.records is not None:
        return ()
    if settings.client_level:
        return (Slot(name="votes for the size of a party", length=SIZE_BINS, kind=Sizes),)
    return (Slot(name="number of records", length=1, kind=Count),)


@dataclass(frozen=True, kw_only=True)
class NumberOfRecords:
    """How many records there are: declared, or as released; at least 1."""

    estimate: float
    noise: float | None
    """Its standard deviation, 0 if it is declared; None: the number is lost in the noise, and the estimate a guess."""

    def scaled(self, factor: float) -> NumberOfRecords:
        """Return the number of a part, or of the whole."""
        return NumberOfRecords(
            estimate=factor * self.estimate, noise=None if self.noise is None else factor * self.noise
        )


def find_number(settings: GuidedSettings, *, l2_squared: int) -> Asking[NumberOfRecords]:
    """Return the declared number of records, or release it for this share of the budget."""
    if settings.records is not None:
        return NumberOfRecords(estimate=float(settings.records), noise=0.0)
    count = release_sizes if settings.client_level else count_records
    return (yield from count(settings, l2_squared=l2_squared))


class Count(Question, frozen=True, kw_only=True):
    """How many records there are.

    Privacy
    -------
    A record adds a = isqrt(share): squared L2 norm a^2 <= share.
    """

    share: Share

    def form(self, public: PublicValues) -> Form:
        """Count."""
        height = isqrt(self.share)

        def measure(party: Records) -> IntArray:
            return np.array([height * sum(len(batch) for batch in party.batches())], dtype=np.int64)

        return Form(length=1, l2_squared=height**2, measure=measure)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(share=SHARE_MOST)


def count_records(settings: GuidedSettings, *, l2_squared: int) -> Asking[NumberOfRecords]:
    """Release the number of records.

    Privacy
    -------
    As `Count`.
    """
    total = yield pose(PublicValues(settings=settings), "number of records", Count(share=l2_squared))
    height = isqrt(l2_squared)
    return NumberOfRecords(estimate=max(1.0, float(total[0]) / height), noise=settings.noise_std / height)


class Sizes(Question, frozen=True, kw_only=True):
    """How many records a party holds: its vote, split between the two nearest of 1, 2, 4, 8 and so on.

    The votes' mean is the number of records, exactly. A number above the last counts as the last.

    Privacy
    -------
    A party adds x and y, at least 0, to two bins, x + y = a = isqrt(share): squared L2 norm x^2 + y^2 <= a^2 <= share.
    """

    share: Share

    def form(self, public: PublicValues) -> Form:
        """Vote."""
        height = isqrt(self.share)

        def measure(party: Records) -> IntArray:
            size = min(sum(len(batch) for batch in party.batches()), 2 ** (SIZE_BINS - 1))
            votes = np.zeros(SIZE_BINS, dtype=np.int64)
            if size:
                lower = min(size.bit_length() - 1, SIZE_BINS - 2)
                upper = height * (size - 2**lower) >> lower
                votes[lower : lower + 2] = height - upper, upper
            return votes

        return Form(length=SIZE_BINS, l2_squared=height**2, measure=measure, bounds_clients=True)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(share=SHARE_MOST)


def release_sizes(settings: GuidedSettings, *, l2_squared: int) -> Asking[NumberOfRecords]:
    """Let every party vote for its number of records; return the sum, from the bins with votes and those beside them.

    Privacy
    -------
    As `Sizes`.
    """
    total = yield pose(PublicValues(settings=settings), "votes for the size of a party", Sizes(share=l2_squared))
    values, noise = 2.0 ** np.arange(SIZE_BINS), settings.noise_std / isqrt(l2_squared)
    votes = total / isqrt(l2_squared)
    voted = np.flatnonzero(votes > _VOTE * noise)
    if not voted.size:
        return NumberOfRecords(estimate=float(settings.parties * values[votes.argmax()]), noise=None)
    near = (np.abs(np.arange(SIZE_BINS)[:, None] - voted) <= 1).any(axis=1)
    mass = max(float(votes[near].sum()), noise)
    mean = float(np.clip(votes[near] @ values[near] / mass, 1.0, values[-1]))
    of_mean = noise * float(np.sqrt(((values[near] - mean) ** 2).sum())) / mass
    return NumberOfRecords(estimate=settings.parties * mean, noise=settings.parties * of_mean)


def weigh_clients(settings: GuidedSettings, records: float) -> float:
    """Return about how many records all parties count as once their vectors are scaled.

    A party's histogram p over 16 k cells, of which about a third hold records, counts as 1 / |p| records, and
    |p|^2 is about 1 / n + 3 / (16 k) for n records.
    """
    each = max(records / settings.parties, 1.0)
    return settings.parties * float((1 / each + _CELLS_PER_OCCUPIED / (_CELLS * settings.clusters)) ** -0.5)


# Weights of z_i z_i and z_i z_j (i < j) in the released vector. With 1 and sqrt 2 its norm would be |z|^2 and all its
# entries equally noisy; 5 and 7 are integers with 7^2 = 2 * 5^2 - 1, so the squared norm is at most 25 |z|^4.
DIAGONAL, OFF = 5, 7
_SUM_PART = 2  # sums of z weigh a half of the second moments


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedMoments:
    """What was released, in the scale of the columns, not yet divided by the number of records."""

    sums: FloatArray
    """Of the shortened offsets, (d,)."""
    second: FloatArray
    """Of their products, (d, d), symmetric."""
    sum_noise: float
    """The standard deviation of the noise in one of the sums."""
    noise: float
    """That on the diagonal of the products; off it a factor 5/7 less."""


def moments_length(dimensions: int) -> int:
    """Return how many numbers the sums and second moments of this many columns are."""
    return dimensions + dimensions * (dimensions + 1) // 2


class Moments(Question, frozen=True, kw_only=True):
    """Sums and second moments of the records' offsets from a middle, shortened to a radius.

    Privacy
    -------
    A record becomes an integer vector z, |z| <= c: its direction is kept, its length at most c. It adds (b z, 5 z_i^2,
    7 z_i z_j for i < j). With 49 = 2 * 25 - 1 the squared norm is b^2 |z|^2 + 25 |z|^4 - sum_{i<j} z_i^2 z_j^2, at
    most b^2 c^2 + 25 c^4 <= share.
    """

    share: Share
    middle: Array
    radius: float

    def form(self, public: PublicValues) -> Form:
        """Measure."""
        d = public.settings.dimensions
        longest, sum_weight = scale_moments(self.share)
        reach = find_reach(longest, d)
        middle, radius = take_points("middle", self.middle, d), self.radius
        require_length("radius", radius)

        def measure(party: Records) -> IntArray:
            sums = np.zeros(d, dtype=np.int64)
            moments = np.zeros((d, d), dtype=np.int64)
            for points in iterate_chunks(party, fill=middle):
                z = _shorten(count_offsets(points, middle), radius * UNITS, reach)
                sums += z.sum(axis=0).astype(np.int64)
                moments += (z.T @ z).astype(np.int64)  # integers below 2^53: exact
            return np.concatenate([sum_weight * sums, (moments * _weights(d))[np.triu_indices(d)]])

        return Form(
            length=moments_length(d),
            l2_squared=sum_weight**2 * longest**2 + DIAGONAL**2 * longest**4,
            measure=measure,
        )

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(share=SHARE_MOST, middle=largest_array(public.settings.dimensions), radius=LENGTH_MOST)


def release_moments(
    settings: GuidedSettings, *, l2_squared: int, middle: FloatArray, radius: float
) -> Asking[ReleasedMoments]:
    """Release sums and second moments of the records' offsets from the middle, shortened to the radius.

    Privacy
    -------
    As `Moments`.
    """
    d = settings.dimensions
    question = Moments(share=l2_squared, middle=Array.of(middle), radius=radius)
    total = yield pose(PublicValues(settings=settings), "sums and second moments", question)
    longest, sum_weight = scale_moments(l2_squared)
    reach = find_reach(longest, d)
    unit = radius / reach  # what 1 of z is worth
    second = np.zeros((d, d))
    second[np.triu_indices(d)] = total[d:]
    return ReleasedMoments(
        sums=np.asarray(total[:d] * (unit / sum_weight), dtype=np.float64),
        second=(second + np.triu(second, 1).T) / _weights(d) * unit**2,
        sum_noise=settings.noise_std * unit / sum_weight,
        noise=settings.noise_std / DIAGONAL * unit**2,
    )


def _shorten(offsets: FloatArray, radius: float, reach: float) -> FloatArray:
    """Scale the offsets so that the radius becomes ``reach``, shorten what is longer, and round to integers."""
    shortened: FloatArray = np.rint(offsets * (reach / np.maximum(measure_lengths(offsets), radius))[:, None])
    return shortened


def scale_moments(l2_squared: int) -> tuple[int, int]:
    """Return c and b: the longest z, and the weight of its sums, for a squared norm of at most ``l2_squared``."""
    longest = isqrt(isqrt(l2_squared * _SUM_PART**2 // (DIAGONAL**2 * (_SUM_PART**2 + 1))))  # on every processor
    return longest, DIAGONAL * longest // _SUM_PART


def _weights(d: int) -> IntArray:
    return np.where(np.eye(d, dtype=bool), DIAGONAL, OFF).astype(np.int64)
