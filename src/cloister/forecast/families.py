"""Families of made-up records, on which plans run the algorithm instead of on the tables; the same for everyone.

Clusters are round and normal, around centres that a sphere packing spreads over the domain. With deviation s in each
direction and distance D between neighbours, the separation index of Qiu and Joe (2006) is J = (x - z) / (x + z), x =
D / 2s, z = 1.96. So s = D (1 - J) / (2 z (1 + J)) gives any degree of separation in any number of dimensions.
Bounds are assumed to be tight: the extremes of each column are the ends of its domain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans import sphere_packing
from cloister.late import load_late
from cloister.records import FloatArray, IntArray

distance = load_late("scipy.spatial.distance")

SYNTH_OVERLAPPING, SYNTH_SEPARATED = 0.21, 0.70
"""Separation indices (Qiu and Joe 2006) of clusters that overlap and of clusters that do not (FastLloyd 6.1)."""

_QUANTILE = 1.9599639845400545  # of the normal distribution, at 0.975
_UNBALANCED = 16.0  # the ratio of the largest cluster to the smallest
_MIDDLING = 0.5  # the separation of the unbalanced clusters


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Made-up records with their ground truth."""

    points: FloatArray
    """(n, d)."""
    labels: IntArray
    """(n,): the cluster of each point, as the generator's paper defines it."""
    centres: FloatArray
    """(k, d): the means that the clusters were drawn around."""


def scale_to_domain(sample: Sample) -> Sample:
    """Map each column's extremes to [-1, 1], as the papers prepare their data (FastLloyd 6.1).

    For studies only: this treats the extremes as public, which those of real records are not.
    """
    low, high = sample.points.min(axis=0), sample.points.max(axis=0)
    width = np.where(high > low, high - low, 1.0)  # a constant column goes to -1
    points, centres = (2.0 * (array - low) / width - 1.0 for array in (sample.points, sample.centres))
    return Sample(points=np.clip(points, -1.0, 1.0), labels=sample.labels, centres=centres)


@dataclass(frozen=True, kw_only=True)
class Family:
    """One kind of records.

    Attributes
    ----------
    name
        In plain words.
    even
        Whether there are clusters, and all are of about the same size.
    unsteady
        Whether runs vary much: if a small cluster is missed, as happens now and then, the loss is a multiple.
    draw
        From (stream, records, k, d) to points in [-1, 1]^d in random order, and the centres they were drawn around.
    """

    name: str
    even: bool
    unsteady: bool
    draw: Callable[[Stream, int, int, int], Sample]


def place_clusters(stream: Stream, sizes: list[int], d: int, separation: float) -> Sample:
    """Draw round clusters of these sizes, in this order, with at least this separation from their neighbours."""
    centres = sphere_packing(stream.child("centres"), len(sizes), d)
    apart = float(distance.pdist(centres).min()) if len(sizes) > 1 else 1.0
    deviation = apart * (1.0 - separation) / (2.0 * _QUANTILE * (1.0 + separation))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    points = centres[labels] + deviation * stream.child("points").normal(labels.size, d)
    return scale_to_domain(Sample(points=points, labels=labels, centres=centres))


def split_by_weight(records: int, weights: FloatArray) -> list[int]:
    """Split a number of records in proportion to the weights; no part is empty if there are enough records."""
    ends = np.rint(np.cumsum(weights) / weights.sum() * (records - len(weights))).astype(int)
    return [int(size) + 1 for size in np.diff(ends, prepend=0)]


def _draw_even(separation: float) -> Callable[[Stream, int, int, int], Sample]:
    def draw(stream: Stream, records: int, k: int, d: int) -> Sample:
        return _shuffle(stream, place_clusters(stream, split_by_weight(records, np.ones(k)), d, separation))

    return draw


def _draw_unbalanced(stream: Stream, records: int, k: int, d: int) -> Sample:
    sizes = split_by_weight(records, _UNBALANCED ** -np.linspace(0.0, 1.0, k))
    return _shuffle(stream, place_clusters(stream, sizes, d, _MIDDLING))


def _draw_uniform(stream: Stream, records: int, k: int, d: int) -> Sample:
    points = 2.0 * stream.child("points").uniform(records, d) - 1.0
    return Sample(points=points, labels=np.zeros(records, dtype=np.int64), centres=points[:k])


def _shuffle(stream: Stream, sample: Sample) -> Sample:
    order = stream.child("order").permutation(len(sample.points))
    return Sample(points=sample.points[order], labels=sample.labels[order], centres=sample.centres)


FAMILIES = (
    Family(name="well separated", even=True, unsteady=False, draw=_draw_even(SYNTH_SEPARATED)),
    Family(name="overlapping", even=True, unsteady=False, draw=_draw_even(SYNTH_OVERLAPPING)),
    Family(name="unbalanced (16 to 1)", even=False, unsteady=True, draw=_draw_unbalanced),
    Family(name="no clusters", even=False, unsteady=False, draw=_draw_uniform),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Planting:
    """Well-separated clusters, one of which can have any size.

    Attributes
    ----------
    others
        Records of the other k - 1 clusters, in random order.
    planted
        Records of the planted cluster, at least an even share.
    centre
        The middle of the planted cluster.
    gap
        The distance to the middle of the nearest other cluster.
    """

    others: FloatArray
    planted: FloatArray
    centre: FloatArray
    gap: float

    def with_size(self, size: int) -> FloatArray:
        """Return as many records as there are others, ``size`` of them in the planted cluster."""
        return np.concatenate([self.others[size:], self.planted[:size]])

    def is_found_by(self, centres: FloatArray) -> bool:
        """Whether a centre is less than halfway from the planted cluster's middle to that of the nearest other."""
        return bool(np.sqrt(((centres - self.centre) ** 2).sum(axis=1)).min() < self.gap / 2)


def plant_cluster(stream: Stream, records: int, k: int, d: int) -> Planting:
    """Draw clusters for `Planting`; k must be at least 2."""
    most = -(-records // k)
    sizes = [most, *split_by_weight(records, np.ones(k - 1))]
    sample = place_clusters(stream, sizes, d, SYNTH_SEPARATED)
    centre, others = sample.centres[0], sample.points[most:]
    return Planting(
        others=others[stream.child("order").permutation(len(others))],
        planted=sample.points[:most],
        centre=centre,
        gap=float(np.sqrt(((sample.centres[1:] - centre) ** 2).sum(axis=1)).min()),
    )
