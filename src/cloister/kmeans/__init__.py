"""k-means, pure: no privacy, no messages, no files. Whatever is computed here stays where the records are.

Reading order: :mod:`~cloister.records` (what is read), :mod:`~cloister.kmeans.kernel` (the one pass
over the data) with :mod:`~cloister.kmeans.blocks` and :mod:`~cloister.kmeans.prefetch` (its compiled half)
and :mod:`~cloister.kmeans.pool` (its threads), :mod:`~cloister.kmeans.assignment` (which record counts where)
with :mod:`~cloister.kmeans.flow` (sizes by minimum-cost flow), :mod:`~cloister.kmeans.initialisation`,
:mod:`~cloister.kmeans.lloyd`, :mod:`~cloister.kmeans.postprocess`, :mod:`~cloister.kmeans.metrics` and
:mod:`~cloister.kmeans.agreement` (how good the result is).
"""

from cloister.kmeans.agreement import (
    adjusted_rand,
    fowlkes_mallows,
    matched_accuracy,
    normalised_mutual_information,
)
from cloister.kmeans.assignment import (
    Assignment,
    ConstrainedEExclusive,
    ConstrainedExclusive,
    ConstrainedNonExclusive,
    DistanceConstrained,
    Membership,
    Unconstrained,
)
from cloister.kmeans.initialisation import (
    centre_separation,
    kmeans_plus_plus,
    random_in_domain,
    random_records,
    sphere_packing,
)
from cloister.kmeans.kernel import ClusterSums, Nearest, cluster_sums, nearest
from cloister.kmeans.lloyd import Fit, lloyd, update_centres, weighted_kmeans
from cloister.kmeans.metrics import bcss, davies_bouldin, dunn, empty_clusters, nicv, silhouette, wcss
from cloister.kmeans.postprocess import fold, truncate
from cloister.records import ArrayRecords, FloatArray, Records

__all__ = [
    "ArrayRecords",
    "Assignment",
    "ClusterSums",
    "ConstrainedEExclusive",
    "ConstrainedExclusive",
    "ConstrainedNonExclusive",
    "DistanceConstrained",
    "Fit",
    "FloatArray",
    "Membership",
    "Nearest",
    "Records",
    "Unconstrained",
    "adjusted_rand",
    "bcss",
    "centre_separation",
    "cluster_sums",
    "davies_bouldin",
    "dunn",
    "empty_clusters",
    "fold",
    "fowlkes_mallows",
    "kmeans_plus_plus",
    "lloyd",
    "matched_accuracy",
    "nearest",
    "nicv",
    "normalised_mutual_information",
    "random_in_domain",
    "random_records",
    "silhouette",
    "sphere_packing",
    "truncate",
    "update_centres",
    "wcss",
    "weighted_kmeans",
]
