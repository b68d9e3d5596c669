"""Step 1: the subspace in which the clusters differ, from the records' noisy second moments and the server's own.

FedDP-KMeans 3.1 takes the k main directions of the noisy moments alone. Here the server's data speak too: their
covariance is one more estimate, with an error of its own that is known from how many points there are. Both are
averaged by their precision. With little noise the server's part vanishes; with much it is all there is.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from cloister.protocols.feddp.server import ServerData
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.moments import release_moments
from cloister.protocols.guided_sums.query import Asking
from cloister.protocols.guided_sums.shrinkage import shrink_mean
from cloister.protocols.guided_sums.subspace import Subspace, fix_signs

_DISTRUST = 4.0  # the server's points may come from elsewhere: their covariance counts as from so many times fewer


def find_projection(
    settings: FeddpSettings, server: ServerData, *, l2_squared: int, records: float
) -> Asking[Subspace]:
    """Release sums and second moments around the server's middle; return the main directions around the mean."""
    d = settings.dimensions
    moments = yield from release_moments(settings, l2_squared=l2_squared, middle=server.middle, radius=server.radius)
    if settings.client_level:  # parties' vectors are scaled: how much is read off the trace
        records = max(float(np.trace(moments.second)), moments.noise * sqrt(d)) / float(np.trace(server.covariance))
    mean = shrink_mean(moments.sums / records, moments.sum_noise / records)
    covariance = moments.second / records - np.outer(mean, mean)
    # Of one entry off the diagonal. A sample's varies by the product of the two variances over its size.
    ours = (moments.noise / records) ** 2 / 2
    theirs = _DISTRUST * (float(np.trace(server.covariance)) / d) ** 2 / settings.stamp.points
    combined = (covariance / ours + server.covariance / theirs) / (1 / ours + 1 / theirs)
    _, vectors = np.linalg.eigh(combined)
    axes = fix_signs(vectors[:, ::-1][:, : min(d, settings.clusters)])
    return Subspace(origin=np.clip(server.middle + mean, -1.0, 1.0), axes=axes)
