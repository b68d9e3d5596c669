"""FedDP-KMeans as published: FedDP-Init and FedDP-Lloyds, Algorithms 1 and 2, and appendix G.5 for clients.

Records are not centred; the radius Delta is the length of the server's longest point, and every record is shortened to
it before any step (section 5.1). Outer products get symmetric noise, one draw per pair of columns (Dwork, Talwar,
Thakurta and Zhang 2014, which the paper cites). Noise is discrete. The server's points are clustered from one start.
Negative weights count as zero, and denominators are at least the scale of their noise: the printed formulas do not
cover these cases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from cloister.crypto.stream import Stream
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.numeric import find_reach
from cloister.privacy.centre_noise import UNKNOWN, blur_means
from cloister.privacy.mechanisms import Release
from cloister.protocols.feddp.published_questions import (
    LENGTH,
    ClusterCounts,
    ClusterSums,
    PointWeights,
    Products,
)
from cloister.protocols.feddp.server import ServerData
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.agreement import release_of
from cloister.protocols.guided_sums.algorithm import GuidedFinding, conclude
from cloister.protocols.guided_sums.query import IDLE, Asking, PublicValues, Question, pose
from cloister.protocols.guided_sums.refinement import Refined
from cloister.protocols.guided_sums.statistics import Plane, Subspace, fix_signs
from cloister.records import IntArray
from cloister.report.sizes import fit_sizes
from cloister.wire import Array

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
    k, d, public = settings.clusters, settings.dimensions, PublicValues(settings=settings, points=server.points)

    def ask(place: int, question: Question) -> Asking[IntArray]:
        return (yield pose(public, settings.slots[place].name, question))

    products = yield from ask(0, Products())
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = products
    _, vectors = np.linalg.eigh(matrix + np.triu(matrix, 1).T)
    subspace = Subspace(origin=np.zeros(d), axes=fix_signs(vectors[:, ::-1][:, : min(k, d)]))
    places = subspace.project(server.points)
    weighed = yield from ask(1, PointWeights(plane=subspace.pack()))
    weights = np.maximum(weighed, 0).astype(np.float64) + 1e-9
    centres = weighted_kmeans(places, k, stream.child("server's points"), weights=weights, restarts=1).centres
    plane: Plane | None = subspace.pack()
    least = max(1.0, settings.noise.counts.scale)
    for t in range(settings.rounds):
        assigned = Array.of(centres)
        sums = yield from ask(2 + 2 * t, ClusterSums(centres=assigned, plane=plane))
        counts = yield from ask(3 + 2 * t, ClusterCounts(centres=assigned, plane=plane))
        means, unit = sums.reshape(k, d) / np.maximum(counts, least)[:, None], server.longest / find_reach(LENGTH, d)
        centres, plane = np.clip(means * unit, -1.0, 1.0), None
    noise, count_variance = settings.noise, settings.placement.total_variance(settings.noise.counts)
    sum_std = settings.placement.total_variance(noise.sums) ** 0.5
    blurs = blur_means(means, np.maximum(counts, least), sum_std=sum_std, count_variances=count_variance) * unit**2
    refined = Refined(
        centres=centres,
        centre_variances=np.minimum(blurs, UNKNOWN),
        counts=counts.astype(np.float64),
        count_variances=np.full(k, count_variance),
        rounds=settings.rounds,
    )
    # A client counts once for each cluster that it has records in, which says nothing of sizes.
    sizes = (
        None if settings.client_level else fit_sizes(refined.counts, refined.count_variances, total=settings.records)
    )
    return conclude(refined, sizes, stream=stream.child("equal centres"))


def list_plan(settings: FeddpSettings) -> tuple[Release, ...]:
    """Every release of a session, in order, as parties are charged for it."""
    bounds = settings.bounds
    fixed = [(bounds.products_l2, None), (bounds.weights_l1, bounds.weights_l1)]
    fixed += [(bounds.sums_l2, None), (bounds.counts_l1, bounds.counts_l1)] * settings.rounds
    return tuple(
        release_of(replace(IDLE, name=slot.name, length=slot.length, l2_squared=l2**2, l1=l1), slot, settings)
        for slot, (l2, l1) in zip(settings.slots, fixed, strict=True)
    )
