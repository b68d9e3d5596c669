"""The questions of FedDP-KMeans as published. Bounds, and with them prices, are fixed by the agreed settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from cloister.kmeans.kernel import nearest
from cloister.numeric import find_reach
from cloister.protocols.feddp.published_noise import Bounds
from cloister.protocols.feddp.questions import points_of
from cloister.protocols.feddp.server import ServerData
from cloister.protocols.guided_sums.query import Form, PublicValues, Question, clip_client, largest_array, take_points
from cloister.protocols.guided_sums.statistics import UNITS, Plane, Subspace, count_offsets, measure_lengths
from cloister.records import FloatArray, IntArray, Records, iterate_chunks
from cloister.wire import Array

LENGTH = 2**12
"""The length of the longest record in integers, in the published variant; a larger one would only be finer."""
Labels = Callable[[FloatArray], IntArray]
Shorten = Callable[[FloatArray], FloatArray]
Measure = Callable[[Records], IntArray]


class Products(Question, frozen=True):
    """The upper triangle of sum z z'.

    Privacy
    -------
    Its squared norm for one record is at most |z|^4 <= LENGTH^4; a client's is clipped to ``products_l2``.
    """

    def form(self, public: PublicValues) -> Form:
        """Measure."""
        settings = public.settings
        d, bounds = settings.dimensions, settings.bounds
        measure = _measure_products(_shorten_on(public), d, bounds, whole=settings.client_level)
        return Form(length=d * (d + 1) // 2, l2_squared=bounds.products_l2**2, measure=measure, bounds_clients=True)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return it: there is but one."""
        return cls()


class PointWeights(Question, frozen=True, kw_only=True):
    """How many records are nearest to each of the server's points in the subspace.

    Privacy
    -------
    A record adds 1 to one entry; a client ``weights_l1`` in all, at most.
    """

    plane: Plane

    def form(self, public: PublicValues) -> Form:
        """Count."""
        settings = public.settings
        most = settings.bounds.weights_l1
        subspace = self.plane.unpack(public, axes_most=settings.axes_most)
        places = subspace.project(points_of(public))
        measure = _measure_counts(make_labels(subspace, places), len(places), most, whole=settings.client_level)
        return Form(length=len(places), l2_squared=most**2, l1=most, measure=measure, bounds_clients=True)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(plane=Plane.largest(public, public.settings.axes_most))


class Assignment(Question, frozen=True, kw_only=True):
    """Which centre a record joins: the nearest, in a subspace or in all columns."""

    centres: Array
    plane: Plane | None

    def make_labels(self, public: PublicValues) -> Labels:
        """Check the range, and return which centre records join."""
        settings = public.settings
        subspace, m = None, settings.dimensions
        if self.plane is not None:
            subspace = self.plane.unpack(public, axes_most=settings.axes_most)
            m = subspace.axes.shape[1]
        most = 1.0 if subspace is None else public.reach
        return make_labels(subspace, take_points("centres", self.centres, settings.clusters, m, most=most))

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        settings = public.settings
        plane = Plane.largest(public, settings.axes_most)
        return cls(centres=largest_array(settings.clusters, settings.dimensions), plane=plane)


class ClusterSums(Assignment, frozen=True, kw_only=True):
    """The sums of the clusters' records; a client sends their means instead (appendix G.5).

    Privacy
    -------
    A record adds a vector no longer than LENGTH to one sum; a client's means are clipped to ``sums_l2``.
    """

    def form(self, public: PublicValues) -> Form:
        """Sum up."""
        settings, bounds = public.settings, public.settings.bounds
        k, label, whole = settings.clusters, self.make_labels(public), settings.client_level
        measure = _measure_sums(_shorten_on(public), label, k, bounds, whole=whole)
        length = k * settings.dimensions
        return Form(length=length, l2_squared=bounds.sums_l2**2, measure=measure, bounds_clients=True)


class ClusterCounts(Assignment, frozen=True, kw_only=True):
    """The clusters' sizes; a client says only which are not empty (appendix G.5).

    Privacy
    -------
    A record adds 1 to one entry; a client at most 1 to each of ``counts_l1``.
    """

    def form(self, public: PublicValues) -> Form:
        """Count."""
        settings, most = public.settings, public.settings.bounds.counts_l1
        measure = _measure_members(self.make_labels(public), settings.clusters, whole=settings.client_level)
        return Form(length=settings.clusters, l2_squared=most**2, l1=most, measure=measure, bounds_clients=True)


def _shorten_on(public: PublicValues) -> Shorten:
    return _make_shorten(ServerData(points=points_of(public)).longest, public.settings.dimensions)


def _make_shorten(radius: float, d: int) -> Shorten:
    """Records as integer vectors no longer than LENGTH, which a record of length Delta becomes."""
    reach = find_reach(LENGTH, d)
    origin = np.zeros(d)

    def shorten(points: FloatArray) -> FloatArray:
        offsets = count_offsets(points, origin)
        return np.rint(offsets * (reach / np.maximum(measure_lengths(offsets), radius * UNITS))[:, None])

    return shorten


def make_labels(subspace: Subspace | None, centres: FloatArray) -> Labels:
    """Return which centre is nearest to a record; each record's depends on no other."""

    def label(points: FloatArray) -> IntArray:
        coordinates = points if subspace is None else subspace.project(points)
        return nearest(coordinates, centres).labels.astype(np.int64)

    return label


def _measure_products(shorten: Shorten, d: int, bounds: Bounds, *, whole: bool) -> Measure:
    """The upper triangle of sum z z'. Its squared norm for one record is at most |z|^4 <= LENGTH^4."""

    def measure(party: Records) -> IntArray:
        products = np.zeros((d, d), dtype=np.int64)
        for points in iterate_chunks(party):
            z = shorten(points)
            products += (z.T @ z).astype(np.int64)  # integers below 2^53: exact
        triangle = products[np.triu_indices(d)]
        return clip_client(triangle, bounds.products_l2) if whole else triangle

    return measure


def _measure_counts(label: Labels, size: int, l1: int, *, whole: bool) -> Measure:
    """How many records have each label; a client's are scaled down to ``l1`` in all."""

    def measure(party: Records) -> IntArray:
        counts = _count(party, label, size)
        total = int(counts.sum())
        return counts * l1 // total if whole and total > l1 else counts

    return measure


def _count(party: Records, label: Labels, size: int) -> IntArray:
    counts = np.zeros(size, dtype=np.int64)
    for points in iterate_chunks(party):
        counts += np.bincount(label(points), minlength=size)
    return counts


def _measure_sums(shorten: Shorten, label: Labels, k: int, bounds: Bounds, *, whole: bool) -> Measure:
    """Sums of the clusters' records; a client sends their means instead (appendix G.5)."""

    def measure(party: Records) -> IntArray:
        sums: IntArray = np.zeros((k, party.dimensions), dtype=np.int64)
        for points in iterate_chunks(party):
            np.add.at(sums, label(points), shorten(points).astype(np.int64))
        if not whole:
            return sums.ravel()
        means = np.rint(sums / np.maximum(_count(party, label, k), 1)[:, None]).astype(np.int64)
        return clip_client(means.ravel(), bounds.sums_l2)

    return measure


def _measure_members(label: Labels, k: int, *, whole: bool) -> Measure:
    """The clusters' sizes; a client says only which are not empty (appendix G.5)."""

    def measure(party: Records) -> IntArray:
        counts = _count(party, label, k)
        return np.minimum(counts, 1) if whole else counts

    return measure
