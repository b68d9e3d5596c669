"""k-means, pure: no privacy, no messages, no files. Whatever is computed here stays where the records are.

Reading order: :mod:`~cloister.records` (what is read), :mod:`~cloister.kmeans.kernel` (the one pass over the data) with
:mod:`~cloister.kmeans.blocks` (its compiled half) and :mod:`~cloister.kmeans.pool` (its threads),
:mod:`~cloister.kmeans.assignment` (which record counts where) with :mod:`~cloister.kmeans.flow` (sizes by minimum-cost
flow), :mod:`~cloister.kmeans.initialisation`, :mod:`~cloister.kmeans.lloyd`, :mod:`~cloister.kmeans.offsets` (clipped
sums around given centres) and :mod:`~cloister.kmeans.values`.

Sections cited as "thesis" are of Ahmed, "Differentially-Private Multiparty Clustering" (2023), those cited as
"FastLloyd" of Diaa, Humphries and Kerschbaum, "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering
with Differential Privacy" (2024).
"""

from cloister.kmeans.assignment import (
    Assignment,
    AssignmentKind,
    ConstrainedEExclusive,
    ConstrainedExclusive,
    ConstrainedNonExclusive,
    DistanceConstrained,
    Membership,
    Unconstrained,
)
from cloister.kmeans.initialisation import kmeans_plus_plus, random_in_domain, random_records, sphere_packing
from cloister.kmeans.kernel import ClusterSums, Nearest, cluster_sums, nearest
from cloister.kmeans.lloyd import Fit, lloyd, update_centres, weighted_kmeans
from cloister.kmeans.missing import fill_from_centres
from cloister.kmeans.offsets import Join, Joined, sum_offsets
from cloister.kmeans.values import fold, truncate

__all__ = [
    "Assignment",
    "AssignmentKind",
    "ClusterSums",
    "ConstrainedEExclusive",
    "ConstrainedExclusive",
    "ConstrainedNonExclusive",
    "DistanceConstrained",
    "Fit",
    "Join",
    "Joined",
    "Membership",
    "Nearest",
    "Unconstrained",
    "cluster_sums",
    "fill_from_centres",
    "fold",
    "kmeans_plus_plus",
    "lloyd",
    "nearest",
    "random_in_domain",
    "random_records",
    "sphere_packing",
    "sum_offsets",
    "truncate",
    "update_centres",
    "weighted_kmeans",
]
