"""k-means, pure: no privacy, no messages, no files. Whatever is computed here stays where the records are.

Reading order: :mod:`~cloister.records` (what is read), :mod:`~cloister.kmeans.kernel` (the one pass
over the data) with :mod:`~cloister.kmeans.blocks` and :mod:`~cloister.kmeans.prefetch` (its compiled half)
and :mod:`~cloister.kmeans.pool` (its threads), :mod:`~cloister.kmeans.assignment` (which record counts where)
with :mod:`~cloister.kmeans.flow` (sizes by minimum-cost flow), :mod:`~cloister.kmeans.initialisation`,
:mod:`~cloister.kmeans.lloyd` and :mod:`~cloister.kmeans.postprocess`.
"""

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
    kmeans_plus_plus,
    random_in_domain,
    random_records,
    sphere_packing,
)
from cloister.kmeans.kernel import ClusterSums, Nearest, cluster_sums, nearest
from cloister.kmeans.lloyd import Fit, lloyd, update_centres, weighted_kmeans
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
    "cluster_sums",
    "fold",
    "kmeans_plus_plus",
    "lloyd",
    "nearest",
    "random_in_domain",
    "random_records",
    "sphere_packing",
    "truncate",
    "update_centres",
    "weighted_kmeans",
]
