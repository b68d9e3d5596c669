"""FedDP-KMeans as published: FedDP-Init and FedDP-Lloyds, Algorithms 1 and 2, and appendix G.5 for clients.

Records are not centred; the radius Delta is the length of the server's longest point, and every record is shortened to
it before any step (section 5.1). Outer products get symmetric noise, one draw per pair of columns (Dwork, Talwar,
Thakurta and Zhang 2014, which the paper cites). Noise is discrete. The server's points are clustered from one start.
Negative weights count as zero, and denominators are at least the scale of their noise: the printed formulas do not
cover these cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans import nearest, weighted_kmeans
from cloister.numeric import find_reach
from cloister.privacy.mechanisms import Release
from cloister.protocols.feddp.published_noise import Bounds
from cloister.protocols.feddp.server import ServerData
from cloister.protocols.feddp.settings import LENGTH, FeddpSettings
from cloister.protocols.guided_sums.agreement import release_of
from cloister.protocols.guided_sums.algorithm import GuidedFinding
from cloister.protocols.guided_sums.postprocessing import part_equal_centres
from cloister.protocols.guided_sums.query import Asking, Query, clip_client
from cloister.protocols.guided_sums.statistics import UNITS, Subspace, count_offsets, fix_signs, measure_lengths
from cloister.records import FloatArray, IntArray, Records, iterate_chunks

AUTHORS_CODE: Final = (
    "As printed, with the sensitivity Delta^2 of the outer products that the text derives. The authors' code differs: "
    "it is said to scale that noise to Delta, to draw Gaussian and Laplace noise from one seed, and to clip records in "
    "step 1 only (docs/proofs/published-feddp.md)."
)


def run_published(settings: FeddpSettings, server: ServerData, stream: Stream) -> Asking[GuidedFinding]:
    """Find centres.

    Privacy
    -------
    Neighbours: one unit added or removed. Each question's bound is in `FeddpSettings.bounds`; all of them, and their
    noise, are fixed before the first (`list_plan`). docs/proofs/published-feddp.md.
    """
    bounds, whole, k, d = settings.bounds, settings.client_level, settings.clusters, settings.dimensions
    shorten = _make_shorten(server.longest, d)
    products = yield from _ask(settings, 0, _measure_products(shorten, d, bounds, whole=whole))
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = products
    _, vectors = np.linalg.eigh(matrix + np.triu(matrix, 1).T)
    subspace = Subspace(origin=np.zeros(d), axes=fix_signs(vectors[:, ::-1][:, : min(k, d)]))
    places = subspace.project(server.points)
    represent = _make_labels(subspace, places)
    weigh = _measure_counts(represent, len(places), bounds.weights_l1, whole=whole)
    weights = np.maximum((yield from _ask(settings, 1, weigh, subspace.axes)), 0).astype(np.float64) + 1e-9
    found = weighted_kmeans(places, k, stream.child("server's points"), weights=weights, restarts=1).centres
    label, state = _make_labels(subspace, found), found
    least = max(1.0, settings.noise.counts.scale)
    for t in range(settings.rounds):
        sums = yield from _ask(settings, 2 + 2 * t, _measure_sums(shorten, label, k, bounds, whole=whole), state)
        counts = yield from _ask(settings, 3 + 2 * t, _measure_members(label, k, whole=whole), state)
        means = sums.reshape(k, d) / np.maximum(counts, least)[:, None]
        centres = np.clip(means * (server.longest / find_reach(LENGTH, d)), -1.0, 1.0)
        label, state = _make_labels(None, centres), centres
    noise = settings.noise
    count_std = float(settings.placement.total_variance(noise.counts) ** 0.5)
    sum_std = float(settings.placement.total_variance(noise.sums) ** 0.5)
    typical = max(float(np.mean(counts)), 1.0)
    released = max(float(np.maximum(counts, 0.0).sum()), 1.0)
    records = released if settings.records is None else float(settings.records)
    return GuidedFinding(
        centres=part_equal_centres(centres, stream.child("equal centres")),
        weights=np.maximum(counts, 0.0) * (records / released),
        weight_noise=count_std * (records / released),
        released_records=records,
        centre_noise=sum_std / typical * server.longest / LENGTH,
        rounds=settings.rounds,
    )


def list_plan(settings: FeddpSettings) -> tuple[Release, ...]:
    """Every release of a session, in order, as parties are charged for it."""
    return tuple(
        release_of(_query(settings, place, _nothing), slot, settings) for place, slot in enumerate(settings.slots)
    )


Labels = Callable[[FloatArray], IntArray]
Measure = Callable[[Records], IntArray]


def _nothing(records: Records) -> IntArray:
    return np.zeros(0, dtype=np.int64)


def _ask(settings: FeddpSettings, place: int, measure: Measure, state: FloatArray | None = None) -> Asking[IntArray]:
    """Ask for a whole slot."""
    return (yield _query(settings, place, measure, b"" if state is None else state.tobytes()))


def _query(settings: FeddpSettings, place: int, measure: Measure, state: bytes = b"") -> Query:
    slot, bounds = settings.slots[place], settings.bounds
    l1: int | None = None
    if place == 0:
        l2 = bounds.products_l2
    elif place == 1:
        l2 = l1 = bounds.weights_l1
    elif place % 2 == 0:
        l2 = bounds.sums_l2
    else:
        l2 = l1 = bounds.counts_l1
    return Query(name=slot.name, measure=measure, length=slot.length, l2_squared=l2**2, l1=l1, state=state)


def _make_shorten(radius: float, d: int) -> Callable[[FloatArray], FloatArray]:
    """Records as integer vectors no longer than LENGTH, which a record of length Delta becomes."""
    reach = find_reach(LENGTH, d)
    origin = np.zeros(d)

    def shorten(points: FloatArray) -> FloatArray:
        offsets = count_offsets(points, origin)
        return np.rint(offsets * (reach / np.maximum(measure_lengths(offsets), radius * UNITS))[:, None])

    return shorten


def _make_labels(subspace: Subspace | None, centres: FloatArray) -> Labels:
    def label(points: FloatArray) -> IntArray:
        coordinates = points if subspace is None else subspace.project(points)
        return nearest(coordinates, centres).labels.astype(np.int64)

    return label


def _measure_products(shorten: Callable[[FloatArray], FloatArray], d: int, bounds: Bounds, *, whole: bool) -> Measure:
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
    """How many records have each label; a client's counts are scaled down to a sum of ``l1``."""

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


def _measure_sums(
    shorten: Callable[[FloatArray], FloatArray], label: Labels, k: int, bounds: Bounds, *, whole: bool
) -> Measure:
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
