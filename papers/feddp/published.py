"""FedDP-KMeans as the text has it: Algorithm 1 (FedDP-Init), then Algorithm 2, with Gaussian and Laplace noise.

In one place and with seeded noise, as everything here. It follows the text and not the authors' code: the outer product
has the sensitivity Delta^2, every release has noise of its own, and records are clipped in every step. Where the text
leaves something open: a noisy weight below 0 counts as 0, a noisy count below 1 as 1, and the server's weighted k-means
has ten starts.

Client level (G.5): what a client sends in a step is clipped as a whole, and in step 3 it sends the means of its
clusters and which clusters it has. Clip bounds are the largest of 30 pretended clients, drawn from the server's points;
never the clients' norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.kmeans import nearest, weighted_kmeans
from cloister.privacy.samplers import Sampler
from cloister.privacy.units import Budget, Unit
from cloister.records import FloatArray, IntArray
from papers.feddp.baselines import (
    LONGEST,
    PRETENDED_CLIENTS,
    Bounds,
    bound_client_sums,
    clip_counts,
    divide,
    encode_records,
    encode_vector,
    list_steps,
    run_round,
    sum_clusters,
)
from papers.feddp.noise import LabelArray, PlannedNoise, Step, plan_releases

_RECORD_LONGEST = 2**13
"""Of a record, before its outer product: sums of products of 2^27 records are exact in doubles."""
_RESTARTS = 10


@dataclass(frozen=True, kw_only=True)
class Split:
    """Shares of epsilon_init for Algorithm 1's releases: projection, weights, sums and counts (G.4)."""

    projection: float
    weights: float
    sums: float
    counts: float

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """In the order of Tables 2 and 3."""
        return (self.projection, self.weights, self.sums, self.counts)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Public values.

    Parameters
    ----------
    budget
        For everything; its unit is the level.
    clusters
        k.
    split
        Shares of epsilon_init. A round of FedDP-Lloyds has the epsilons of step 3.
    rounds
        T.
    client_records
        At client level: how many records of a client count.
    """

    budget: Budget
    clusters: int
    split: Split
    rounds: int
    client_records: int = 1

    @property
    def is_client_level(self) -> bool:
        """Whether a unit is a client."""
        return self.budget.unit is Unit.CLIENT


def run_feddp(
    parts: Sequence[FloatArray], server: FloatArray, plan: Plan, *, sampler: Sampler, stream: Stream
) -> FloatArray:
    """Run Algorithm 1 and T rounds of Algorithm 2; return the centres.

    Parameters
    ----------
    parts
        Each client's records, in any units.
    server
        (m, d), public.
    plan
        Public values.
    sampler
        Draws the noise.
    stream
        Of the server's starts and of pretended clients.

    Privacy
    -------
    Neighbours: one unit added or removed. Sensitivities: Delta^2 for outer products and Delta for sums, 1 for weights
    and counts; at client level the clip bounds. All are exact in integers. Event: all releases. Theorem:
    `plan_releases`.
    """
    dimensions = server.shape[1]
    radius = float(np.sqrt((server**2).sum(axis=1).max()))
    # Nonempty clusters of a client (G.5): each adds one, so no more than k, and no more than it has records.
    means_most = min(plan.clusters, plan.client_records) if plan.is_client_level else 1
    steps = _list_steps(plan, len(server), dimensions, means_most)
    noise = PlannedNoise(plan.budget, plan_releases(plan.budget, steps), sampler)

    projection = _find_projection(_release_products(parts, server, plan, radius, stream, noise), plan.clusters)
    weights = _release_weights(parts, server, projection, plan, noise)
    proxies = weighted_kmeans(
        server @ projection,
        plan.clusters,
        stream.child("server"),
        weights=np.maximum(weights, 0).astype(np.float64),
        restarts=_RESTARTS,
    ).centres
    sums_bound = _bound_means(server, proxies, projection, plan, stream) if plan.is_client_level else radius
    centres = _release_centres(
        parts, proxies, projection, Bounds(unit=plan.budget.unit, sums=sums_bound, counts=means_most), noise
    )
    for number in range(plan.rounds):
        bound = radius
        if plan.is_client_level:
            bound = bound_client_sums(server, centres, plan.client_records, stream.child("round", number))
        bounds = Bounds(unit=plan.budget.unit, sums=bound, counts=plan.client_records)
        centres = run_round(parts, centres, bounds, noise)
    return centres


def _list_steps(plan: Plan, server_points: int, dimensions: int, means_most: int) -> tuple[Step, ...]:
    """All releases in order; a weight counts records, and in step 3 of the client level counts are of clusters."""
    split, unit = plan.split, plan.budget.unit
    products = LONGEST if plan.is_client_level else _RECORD_LONGEST**2
    shares = {"sum_share": split.sums, "count_share": split.counts}
    first, later = (Bounds(unit=unit, sums=1.0, counts=most) for most in (means_most, plan.client_records))
    return (
        Step(
            name="outer products",
            share=split.projection,
            entries=dimensions * (dimensions + 1) // 2,
            longest=products,
            is_gaussian=True,
        ),
        Step(
            name="weights of the server's points",
            share=split.weights,
            entries=server_points,
            longest=plan.client_records,
            is_gaussian=False,
        ),
        *list_steps(first, plan.clusters, dimensions, **shares),
        *list_steps(later, plan.clusters, dimensions, **shares) * plan.rounds,
    )


def _release_products(
    parts: Sequence[FloatArray],
    server: FloatArray,
    plan: Plan,
    radius: float,
    stream: Stream,
    noise: PlannedNoise,
) -> IntArray:
    """Step 1: P^T P with noise, in any unit; its upper triangle, which has the norm of a record's |x|^2 at most."""
    upper = np.triu_indices(server.shape[1])
    total = np.zeros(len(upper[0]), dtype=np.int64)
    if plan.is_client_level:
        draws = stream.child("products")
        drawn = (server[draws.integers(len(server), plan.client_records)] for _ in range(PRETENDED_CLIENTS))
        bound = max(float(np.linalg.norm((points.T @ points)[upper])) for points in drawn)
        for part in parts:
            total += encode_vector((part.T @ part)[upper], bound)
        return noise.release(total)
    for part in parts:
        encoded = encode_records(part, radius, _RECORD_LONGEST).astype(np.float64)
        total += (encoded.T @ encoded)[upper].astype(np.int64)  # whole numbers below 2^53: exact
    return noise.release(total)


def _find_projection(triangle: IntArray, clusters: int) -> FloatArray:
    """The top k eigenvectors as columns, (d, k); noise is symmetric, as in Theorem 8."""
    dimensions = round((np.sqrt(8 * len(triangle) + 1) - 1) / 2)
    matrix = np.zeros((dimensions, dimensions))
    matrix[np.triu_indices(dimensions)] = triangle
    _, vectors = np.linalg.eigh(matrix, UPLO="U")
    top: FloatArray = vectors[:, ::-1][:, :clusters]
    return top


def _release_weights(
    parts: Sequence[FloatArray], server: FloatArray, projection: FloatArray, plan: Plan, noise: PlannedNoise
) -> IntArray:
    """Step 2: how many records are nearest to each of the server's points, in the subspace."""
    proxies = np.ascontiguousarray(server @ projection)
    total = np.zeros(len(server), dtype=np.int64)
    for part in parts:
        counts = np.bincount(nearest(part @ projection, proxies).labels, minlength=len(server))
        total += clip_counts(counts, plan.client_records, plan.budget.unit)
    return noise.release(total)


def _release_centres(
    parts: Sequence[FloatArray], proxies: FloatArray, projection: FloatArray, bounds: Bounds, noise: PlannedNoise
) -> FloatArray:
    """Step 3: centres in the full space, of records that are near in the subspace."""
    clusters, dimensions = len(proxies), projection.shape[0]
    sums, counts = np.zeros((clusters, dimensions), dtype=np.int64), np.zeros(clusters, dtype=np.int64)
    for part in parts:
        labels = nearest(part @ projection, proxies).labels
        own = np.bincount(labels, minlength=clusters)
        if bounds.unit is Unit.CLIENT:
            sums += encode_vector(_average(part, labels, own), bounds.sums)
            counts += clip_counts((own > 0).astype(np.int64), bounds.counts, bounds.unit)
        else:
            np.add.at(sums, labels, encode_records(part, bounds.sums, LONGEST))
            counts += own
    return divide(noise.release(sums), noise.release(counts), bounds)


def _average(part: FloatArray, labels: LabelArray, counts: IntArray) -> FloatArray:
    """A client's mean of each cluster, 0 where it has none (G.5)."""
    means: FloatArray = sum_clusters(part, labels, len(counts)) / np.maximum(counts, 1)[:, None]
    return means


def _bound_means(server: FloatArray, proxies: FloatArray, projection: FloatArray, plan: Plan, stream: Stream) -> float:
    """A clip bound for the means of a client: the largest norm among pretended clients."""
    draws = stream.child("means")
    norms = []
    for _ in range(PRETENDED_CLIENTS):
        points = server[draws.integers(len(server), plan.client_records)]
        labels = nearest(points @ projection, proxies).labels
        means = _average(points, labels, np.bincount(labels, minlength=len(proxies)))
        norms.append(float(np.linalg.norm(means)))
    return max(norms)
