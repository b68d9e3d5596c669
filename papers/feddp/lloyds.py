"""FedDP-Lloyds (Algorithm 2) from public centres, as the baselines run it: Gaussian sums and Laplace counts a round.

In one place and with seeded noise: a study, as every number here. Sums and counts are integers, noise is discrete.

Record level: each record is clipped to the radius Delta of the server's data (5.1). Client level: a client's sums, all
k d numbers as one vector, are clipped to a norm, and its counts to a total (G.5); both bounds come from the server's
points, never from the clients' norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans.kernel import nearest
from cloister.numeric import find_reach
from cloister.privacy.samplers import Sampler
from cloister.privacy.units import Budget, Unit
from cloister.records import FloatArray, IntArray
from papers.feddp.noise_desk import LabelArray, NoiseDesk, Step, plan_releases

LONGEST = 2**26
"""The integer norm of the largest contribution to the sums; noise for an epsilon of 0.01 is still within 2^40."""
PRETENDED_CLIENTS = 30
"""How many clients are drawn from the server's points to find a clip bound."""


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
        The most that it adds to the counts: 1 record, or so many records of a client.
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
    desk = NoiseDesk(budget, plan_releases(budget, steps), sampler)
    centres = start
    for _ in range(rounds):
        centres = run_round(parts, centres, bounds, desk)
    return centres


def run_round(parts: Sequence[FloatArray], centres: FloatArray, bounds: Bounds, desk: NoiseDesk) -> FloatArray:
    """One round (lines 3 to 11): the two next releases of a desk become the next centres."""
    sums, counts = np.zeros(centres.shape, dtype=np.int64), np.zeros(len(centres), dtype=np.int64)
    for part in parts:
        labels = nearest(part, centres).labels
        sums += _encode_sums(part, labels, centres.shape, bounds)
        counts += clip_counts(np.bincount(labels, minlength=len(centres)), bounds.counts, bounds.unit)
    return divide(desk.release(sums), desk.release(counts), bounds)


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
    """Return a clip bound for the sums of clients with so many records: the largest of some drawn from the server."""
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
