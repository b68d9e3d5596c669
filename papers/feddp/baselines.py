"""The baselines: starts that read no client (5, G.3), and FedDP-Lloyds (Algorithm 2) from there.

A start comes from the server's points, or from nothing at all. A round releases Gaussian sums and Laplace counts, in
one place and with seeded noise: a study, as every number here. Sums and counts are integers, noise is discrete.

Record level: each record is clipped to the radius Delta of the server's data (5.1). Client level: a client's sums, all
k d numbers as one vector, are clipped to a norm, and its counts to a total (G.5); both bounds come from the server's
points, never from the clients' norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist

from cloister.crypto import Stream
from cloister.kmeans import kmeans_plus_plus, nearest, weighted_kmeans
from cloister.numeric import find_reach
from cloister.privacy.samplers import Sampler
from cloister.privacy.units import Budget, Unit
from cloister.records import FloatArray, IntArray
from papers.feddp.noise import LabelArray, PlannedNoise, Step, plan_releases

LONGEST = 2**26
"""The integer norm of the largest contribution to the sums; noise for an epsilon of 0.01 is still within 2^40."""
PRETENDED_CLIENTS = 30
"""How many clients are drawn from the server's points to find a clip bound."""
Start = Literal["server-kmeans++", "server-lloyds", "sphere-packing"]

_ATTEMPTS = 1000  # for each centre (G.3)
_HALVINGS = 20
_BATCH = 100


def find_start(start: Start, server: FloatArray, clusters: int, stream: Stream) -> FloatArray:
    """Return initial centres in the units of the server's points.

    Parameters
    ----------
    start
        ``server-kmeans++``: k-means++ on the server's points. ``server-lloyds``: a full k-means clustering of them.
        ``sphere-packing``: :func:`pack_cube` with their radius.
    server
        (m, d).
    clusters
        k.
    stream
        The source of randomness.
    """
    if start == "server-kmeans++":
        return kmeans_plus_plus(stream, server, clusters)
    if start == "server-lloyds":
        return weighted_kmeans(server, clusters, stream).centres
    radius = float(np.sqrt((server**2).sum(axis=1).max()))
    return pack_cube(stream, clusters, server.shape[1], radius)


def pack_cube(stream: Stream, clusters: int, dimensions: int, radius: float) -> FloatArray:
    """Place centres apart in [-radius, radius]^d as G.3 describes it.

    A distance a is feasible if k points can be drawn one after another, uniformly in the cube, each at least a from
    the cube's corners and 2 a from those before, with 1000 attempts for each. Binary search finds the largest one. G.3
    says corners where Su et al. (2017) keep clear of the boundary (:func:`~cloister.kmeans.sphere_packing`): in many
    dimensions the centres are then far outside of data of that radius.
    """
    low, high = 0.0, radius * float(np.sqrt(dimensions))
    packed: FloatArray | None = None
    step = 0
    while step < _HALVINGS or packed is None:  # as a falls to 0 every point fits, so the search ends
        apart = (low + high) / 2
        attempt = _try_packing(stream, clusters, dimensions, radius, apart)
        if attempt is None:
            high = apart
        else:
            low, packed = apart, attempt
        step += 1
    return packed


def _try_packing(stream: Stream, clusters: int, dimensions: int, radius: float, apart: float) -> FloatArray | None:
    centres = np.empty((0, dimensions))
    for _ in range(clusters):
        for _ in range(_ATTEMPTS // _BATCH):
            candidates = radius * (2.0 * stream.uniform(_BATCH, dimensions) - 1.0)
            fits = np.linalg.norm(radius - np.abs(candidates), axis=1) >= apart
            fits &= (cdist(candidates, centres) >= 2 * apart).all(axis=1)
            if fits.any():
                centres = np.concatenate([centres, candidates[fits][:1]])
                break
        else:
            return None
    return centres


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What a unit's contribution to a round is clipped to; public.

    Parameters
    ----------
    unit
        A record or a client.
    sums
        The norm of its part of the sums, in the units of the records.
    counts
        The most that it adds to the counts: 1 record, or this many records of a client.
    """

    unit: Unit
    sums: float
    counts: int


def list_steps(
    bounds: Bounds, clusters: int, dimensions: int, *, sum_share: float, count_share: float
) -> tuple[Step, ...]:
    """The two releases of a round, with their parts of the epsilon."""
    return (
        Step(name="sums", share=sum_share, entries=clusters * dimensions, longest=LONGEST, is_gaussian=True),
        Step(name="counts", share=count_share, entries=clusters, longest=bounds.counts, is_gaussian=False),
    )


def run_feddp_lloyds(
    parts: Sequence[FloatArray],
    start: FloatArray,
    bounds: Bounds,
    *,
    budget: Budget,
    rounds: int,
    count_share: float,
    sampler: Sampler,
) -> FloatArray:
    """Run T rounds from given centres and return the last centres.

    Parameters
    ----------
    parts
        Each client's records, in any units.
    start
        (k, d), public.
    bounds
        Public too.
    budget
        For all rounds together; each has the same part of it.
    rounds
        T.
    count_share
        epsilon_L / (epsilon_G + epsilon_L).
    sampler
        Draws the noise.

    Privacy
    -------
    Neighbours: one unit added or removed. It changes a round's sums by an integer vector of norm 2^26 at most and its
    counts by one of L1 norm ``bounds.counts`` at most. Event: all rounds. Theorem: `plan_releases`.
    """
    steps = list_steps(bounds, *start.shape, sum_share=1 - count_share, count_share=count_share) * rounds
    noise = PlannedNoise(budget, plan_releases(budget, steps), sampler)
    centres = start
    for _ in range(rounds):
        centres = run_round(parts, centres, bounds, noise)
    return centres


def run_round(parts: Sequence[FloatArray], centres: FloatArray, bounds: Bounds, noise: PlannedNoise) -> FloatArray:
    """One round (lines 3 to 11): the two next releases of a plan become the next centres."""
    sums, counts = np.zeros(centres.shape, dtype=np.int64), np.zeros(len(centres), dtype=np.int64)
    for part in parts:
        labels = nearest(part, centres).labels
        sums += _encode_sums(part, labels, centres.shape, bounds)
        counts += clip_counts(np.bincount(labels, minlength=len(centres)), bounds.counts, bounds.unit)
    return divide(noise.release(sums), noise.release(counts), bounds)


def divide(sums: IntArray, counts: IntArray, bounds: Bounds) -> FloatArray:
    """Centres from released sums and counts.

    The text divides by whatever count comes out; one below 1 would send a centre anywhere.
    """
    reach = _find_reach(sums.shape, bounds.unit)
    centres: FloatArray = sums * (bounds.sums / reach) / np.maximum(counts, 1)[:, None]
    return centres


def clip_counts(counts: IntArray, most: int, unit: Unit) -> IntArray:
    """Clip a client's counts to a total, in integers; at record level each record adds one already."""
    total = int(counts.sum())
    if unit is Unit.RECORD or total <= most:
        return counts.astype(np.int64)
    return (counts * most // total).astype(np.int64)


def _encode_sums(part: FloatArray, labels: LabelArray, shape: tuple[int, ...], bounds: Bounds) -> IntArray:
    """One client's sums of each cluster, clipped and in integers."""
    if bounds.unit is Unit.CLIENT:
        return encode_vector(sum_clusters(part, labels, shape[0]), bounds.sums)
    sums = np.zeros(shape, dtype=np.int64)
    np.add.at(sums, labels, encode_records(part, bounds.sums, LONGEST))
    return sums


def encode_records(part: FloatArray, bound: float, longest: int) -> IntArray:
    """Clip each record to a norm and round it to integers of norm ``longest`` at most."""
    norms = np.sqrt((part**2).sum(axis=1))
    reach = find_reach(longest, part.shape[1])
    encoded: IntArray = np.rint(part * (reach / np.maximum(norms, bound))[:, None]).astype(np.int64)
    return encoded


def encode_vector(exact: FloatArray, bound: float) -> IntArray:
    """Clip a client's whole vector to a norm and round it to integers of norm 2^26 at most."""
    scale = find_reach(LONGEST, exact.size) / max(float(np.linalg.norm(exact)), bound)
    encoded: IntArray = np.rint(exact * scale).astype(np.int64)
    return encoded


def bound_client_sums(server: FloatArray, centres: FloatArray, records: int, stream: Stream) -> float:
    """Return a clip bound for the sums of clients with this many records: the largest of some drawn from the server."""
    norms = []
    for _ in range(PRETENDED_CLIENTS):
        points = server[stream.integers(len(server), records)]
        sums = sum_clusters(points, nearest(points, centres).labels, len(centres))
        norms.append(float(np.linalg.norm(sums)))
    return max(norms)


def sum_clusters(points: FloatArray, labels: LabelArray, clusters: int) -> FloatArray:
    """The sum of each cluster's points."""
    sums: FloatArray = (labels == np.arange(clusters)[:, None]).astype(np.float64) @ points
    return sums


def _find_reach(shape: tuple[int, ...], unit: Unit) -> float:
    """What the clip bound became in integers: of a record's d numbers, or of a client's k d."""
    return find_reach(LONGEST, shape[0] * shape[1] if unit is Unit.CLIENT else shape[1])
