"""Assignment methods: which records count in which cluster (thesis 4.1, FastLloyd 7.1).

============================  ==============  =====================================  ================
class                         text            a record is in                         a cluster has
============================  ==============  =====================================  ================
Unconstrained                 thesis 4.1.1    exactly one cluster, the nearest       any size
ConstrainedNonExclusive       thesis 4.1.2    any number of clusters, or none        exactly size_min
ConstrainedExclusive          thesis 4.1.3    exactly one                            min to max
ConstrainedEExclusive         thesis 4.1.4    at least one, at most E                min to max
DistanceConstrained           FastLloyd 7.1   one within the radius, or none         min to max
============================  ==============  =====================================  ================

Sizes are those of one party's LOCAL clusters: constraints are met by each party with the records that it has.
All but the first need the party's records at once, and n x k distances: the flow has an arc for each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from cloister.errors import ConfigError
from cloister.kmeans.flow import SizeLimits, solve_flow
from cloister.kmeans.kernel import ClusterSums, cluster_sums, nearest
from cloister.kmeans.values import check_at_least, check_centres, check_finite_points
from cloister.late import load_late
from cloister.records import FloatArray, IntArray, Records

distance = load_late("scipy.spatial.distance")

AssignmentKind = Literal[
    "unconstrained",
    "constrained-non-exclusive",
    "constrained-exclusive",
    "constrained-e-exclusive",
    "distance-constrained",
]
"""The classes by their names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Membership:
    """The pairs (record, cluster), as two index arrays of equal length, ordered by record."""

    rows: IntArray
    clusters: IntArray


class Assignment(Protocol):
    """What a Lloyd step needs of an assignment method."""

    @property
    def name(self) -> str:
        """The method's name in job files and reports."""

    def assign(self, points: FloatArray, centres: FloatArray) -> Membership:
        """Return which record counts in which cluster."""

    def sums(self, records: Records | FloatArray, centres: FloatArray) -> ClusterSums:
        """Return each cluster's sum and count; a record in several clusters counts in each."""


@dataclass(frozen=True, kw_only=True)
class Unconstrained:
    """Each record in its nearest cluster (thesis 4.1.1); reads the records in a stream."""

    name: ClassVar[str] = "unconstrained"

    def assign(self, points: FloatArray, centres: FloatArray) -> Membership:
        """Return each record with its nearest cluster."""
        labels = nearest(points, centres).labels
        return Membership(rows=np.arange(len(points)), clusters=labels.astype(np.int64))

    def sums(self, records: Records | FloatArray, centres: FloatArray) -> ClusterSums:
        """Return each cluster's sum and count, by the fused kernel."""
        return cluster_sums(records, centres)


class _Constrained(ABC):
    """What the constrained methods share: all records at once, and sums over pairs."""

    def assign(self, points: FloatArray, centres: FloatArray) -> Membership:
        """Return which record counts in which cluster; raise InfeasibleError if the sizes cannot be met."""
        centres = check_centres(centres)
        points = check_finite_points(points, centres.shape[1])
        return self._assign_by_distance(distance.cdist(points, centres, "sqeuclidean"))

    def sums(self, records: Records | FloatArray, centres: FloatArray) -> ClusterSums:
        """Return each cluster's sum and count; a record in several clusters counts in each."""
        centres = check_centres(centres)
        points = check_finite_points(_gather(records), centres.shape[1])
        squared_distances = distance.cdist(points, centres, "sqeuclidean")
        pairs = self._assign_by_distance(squared_distances)
        k = len(centres)
        columns = [np.bincount(pairs.clusters, weights=column[pairs.rows], minlength=k) for column in points.T]
        return ClusterSums(
            sums=np.stack(columns, axis=1),
            counts=np.bincount(pairs.clusters, minlength=k).astype(np.int64),
            loss=float(squared_distances[pairs.rows, pairs.clusters].sum()),
            excluded=len(points) - len(np.unique(pairs.rows)),
        )

    @abstractmethod
    def _assign_by_distance(self, squared_distances: FloatArray) -> Membership:
        """Return the pairs for an (n, k) array of squared distances."""


@dataclass(frozen=True, kw_only=True)
class ConstrainedNonExclusive(_Constrained):
    """Each cluster takes its ``size_min`` nearest records, whoever else has them (thesis 4.1.2).

    Records at the same distance are taken in their order. A record near no centre counts nowhere.
    """

    size_min: int
    name: ClassVar[str] = "constrained-non-exclusive"

    def __post_init__(self) -> None:
        check_at_least("size_min", self.size_min, 0)

    def _assign_by_distance(self, squared_distances: FloatArray) -> Membership:
        n, k = squared_distances.shape
        limits = SizeLimits(
            records=n, clusters=k, size_min=self.size_min, size_max=max(n, self.size_min), memberships_max=k
        )
        limits.check_feasible(all_assigned=False)
        chosen = np.zeros((n, k), dtype=bool)
        if self.size_min > 0:
            for distances, column in zip(squared_distances.T, chosen.T, strict=True):
                limit = np.partition(distances, self.size_min - 1)[self.size_min - 1]
                column[distances < limit] = True
                ties = np.flatnonzero(distances == limit)
                column[ties[: self.size_min - np.count_nonzero(column)]] = True
        rows, clusters = np.nonzero(chosen)
        return Membership(rows=rows, clusters=clusters)


@dataclass(frozen=True, kw_only=True)
class _SizeConstrained(_Constrained):
    """Cluster sizes between two bounds, each given as a number or as a ratio of the average local cluster.

    Parameters
    ----------
    size_min, size_max
        Bounds as numbers of records. Neither bound is required: they default to 0 and n.
    alpha_min, alpha_max
        Bounds as in FastLloyd's Eqn 8, of the N local records: ``size_min = floor(N / (alpha_min k))`` and
        ``size_max = ceil(alpha_max N / k)``. Rounding goes outwards, so ratios of at least 1 are always
        feasible.
    """

    size_min: int | None = None
    size_max: int | None = None
    alpha_min: float | None = None
    alpha_max: float | None = None

    def __post_init__(self) -> None:
        for side, size, alpha in (
            ("min", self.size_min, self.alpha_min),
            ("max", self.size_max, self.alpha_max),
        ):
            if size is not None and alpha is not None:
                raise ConfigError(
                    f"a bound must be given once; got both size_{side}={size} and alpha_{side}={alpha}. Leave one out."
                )
            if size is not None:
                check_at_least(f"size_{side}", size, 0)
            if alpha is not None and not 0 < alpha < math.inf:
                raise ConfigError(f"alpha_{side} must be a positive number; got {alpha}. The paper's value is 1.25.")

    def limits(self, records: int, clusters: int, memberships_max: int = 1) -> SizeLimits:
        """Return the bounds as numbers for this many local records and clusters."""
        low, high = self.size_min or 0, records if self.size_max is None else self.size_max
        if self.alpha_min is not None:
            low = math.floor(records / (self.alpha_min * clusters))
        if self.alpha_max is not None:
            high = math.ceil(self.alpha_max * records / clusters)
        return SizeLimits(
            records=records,
            clusters=clusters,
            size_min=low,
            size_max=high,
            memberships_max=memberships_max,
        )


@dataclass(frozen=True, kw_only=True)
class ConstrainedExclusive(_SizeConstrained):
    """Each record in exactly one cluster, at the least sum of squared distances (thesis 4.1.3)."""

    name: ClassVar[str] = "constrained-exclusive"

    def _assign_by_distance(self, squared_distances: FloatArray) -> Membership:
        rows, clusters = solve_flow(squared_distances, self.limits(*squared_distances.shape))
        return Membership(rows=rows, clusters=clusters)


@dataclass(frozen=True, kw_only=True)
class ConstrainedEExclusive(_SizeConstrained):
    """Each record in at least one and at most ``memberships_max`` clusters (thesis 4.1.4's E).

    A record joins more than one only where a minimum size asks for it.
    """

    memberships_max: int
    name: ClassVar[str] = "constrained-e-exclusive"

    def _assign_by_distance(self, squared_distances: FloatArray) -> Membership:
        n, k = squared_distances.shape
        rows, clusters = solve_flow(squared_distances, self.limits(n, k, self.memberships_max))
        return Membership(rows=rows, clusters=clusters)


@dataclass(frozen=True, kw_only=True)
class DistanceConstrained(_SizeConstrained):
    """Each record in one cluster no further than ``radius``, or in none (FastLloyd 7.1's eta_d).

    Records that have no place stay out, "even if it means that they do not get assigned to any cluster"; all
    others are assigned. Minimum sizes still hold, so a small radius can be infeasible.
    """

    radius: float
    name: ClassVar[str] = "distance-constrained"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.radius < math.inf:
            raise ConfigError(f"radius must be a number >= 0; got {self.radius}. Use ConstrainedExclusive without one.")

    def _assign_by_distance(self, squared_distances: FloatArray) -> Membership:
        limits = self.limits(*squared_distances.shape)
        rows, clusters = solve_flow(squared_distances, limits, radius=self.radius)
        return Membership(rows=rows, clusters=clusters)


def _gather(records: Records | FloatArray) -> FloatArray:
    if isinstance(records, np.ndarray):
        return records
    batches = list(records.batches())
    return np.concatenate(batches) if batches else np.empty((0, records.dimensions))
