"""The choice of k: which number of clusters the released histogram shows best. Post-processing; it costs no budget.

Every k is tried on the cells and scored by the **simplified silhouette** (Hruschka, Campello and de Castro 2006): the
mean over records of 1 - a/b, where a and b are the distances to the nearest and to the second nearest centre. It is
large if every record has one centre that is clearly the nearest: with too few centres, a is large; with too many, b is

small.

- A record is somewhere in its cell: the variance of that is added to both squared distances. Without it, as many
  clusters as there are full cells look perfect (a = 0), and in many dimensions, with two or three bins
  per axis, that is what any index finds that takes records to be in the middles of cells.
- Where there is little but noise, clusters of noise look better the more there are. So the same is done with
  references that have no clusters: one bell with the histogram's mean and variances, the same noise, the same
  denoising. As far as their score rises with k, that rise is subtracted. It is half a remedy: where a table has no
  clusters and few records, k may still come out near the most (docs/study-synopsis.md).

What else was tried, and how often k is right: docs/study-synopsis.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from cloister.crypto.stream import Stream
from cloister.late import load_late
from cloister.protocols.synopsis.histogram import Histogram, cluster_cells, denoise_histogram
from cloister.protocols.synopsis.questions import Grid
from cloister.protocols.synopsis.settings import Settings
from cloister.records import FloatArray
from cloister.report.result import KChoice

distance = load_late("scipy.spatial.distance")

_ALL_UP_TO = 30  # each k is tried up to here; then steps grow
_STEP = 0.1  # of k
_TRIES, _REFERENCE_TRIES = 4, 1  # starts of k-means for each k: a silhouette needs no perfect clustering
_REFERENCES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The k that scored best, and all that were tried, in order."""

    k: int
    curve: tuple[KChoice, ...]


def choose_k(
    settings: Settings, grid: Grid, histogram: Histogram, *, l2_squared: int, records: float, stream: Stream
) -> Choice:
    """Choose k from 2 to ``settings.clusters``; the smallest of those that score best.

    Parameters
    ----------
    settings
        Public values.
    grid, histogram
        What was released, and where.
    l2_squared, records
        What the histogram was released with: so are the references.
    stream
        Common to all parties: starts of k-means, and the noise of the references.
    """
    ks = list_candidates(settings.clusters)
    starts = [cluster_cells(histogram, k, restarts=_TRIES, stream=stream.child("cells", k)) for k in ks]
    silhouettes = np.array([measure_silhouette(histogram, start.centres) for start in starts])
    bell = _make_bell(grid, histogram)
    by_noise = np.zeros(len(ks))
    for number in range(_REFERENCES):
        ours = stream.child("reference", number)
        reference = _denoise_reference(settings, grid, bell, l2_squared=l2_squared, records=records, stream=ours)
        by_noise += [_try_reference(reference, k, ours.child("cells", k)) / _REFERENCES for k in ks]
    scores = silhouettes - (np.maximum.accumulate(by_noise) - by_noise[0])
    curve = tuple(
        KChoice(k=k, loss=start.loss, score=float(score)) for k, start, score in zip(ks, starts, scores, strict=True)
    )
    return Choice(k=ks[int(scores.argmax())], curve=curve)


def list_candidates(k_max: int) -> list[int]:
    """Every k from 2 to 30, then steps of a tenth; always ``k_max`` itself."""
    ks = list(range(2, min(k_max, _ALL_UP_TO) + 1))
    while ks[-1] < k_max:
        ks.append(min(k_max, ks[-1] + int(_STEP * ks[-1])))
    return ks


def measure_silhouette(histogram: Histogram, centres: FloatArray) -> float:
    """Return the mean of 1 - a/b over the records, each of them anywhere in its cell."""
    squares = distance.cdist(histogram.points, centres, "sqeuclidean")
    squares.partition(1, axis=1)
    nearest, second = squares[:, 0] + histogram.cell_variance, squares[:, 1] + histogram.cell_variance
    # Two centres in the middle of the one cell there is: 0/0, and neither is the nearer.
    ratios = np.sqrt(np.divide(nearest, second, out=np.ones_like(second), where=second > 0))
    return float(histogram.weights @ (1.0 - ratios) / histogram.weights.sum())


def _try_reference(reference: Histogram, k: int, stream: Stream) -> float:
    start = cluster_cells(reference, k, restarts=_REFERENCE_TRIES, stream=stream)
    return measure_silhouette(reference, start.centres)


def _make_bell(grid: Grid, histogram: Histogram) -> FloatArray:
    """Return as many records over all cells as the histogram has, normal along each axis, with its mean and variance.

    Middles of cells vary by a twelfth of the squared side even where all records are at one place.
    """
    weights = histogram.weights / histogram.weights.sum()
    mean = weights @ histogram.points
    variances = np.maximum(weights @ (histogram.points - mean) ** 2, grid.sides**2 / 12)
    used = grid.bins > 1
    exponents = -0.5 * ((grid.centres - mean)[:, used] ** 2 / variances[used]).sum(axis=1)
    heights = np.exp(exponents - exponents.max())
    bell: FloatArray = heights * (histogram.weights.sum() / heights.sum())
    return bell


def _denoise_reference(
    settings: Settings, grid: Grid, expected: FloatArray, *, l2_squared: int, records: float, stream: Stream
) -> Histogram:
    """Give the expected counts the noise of a release, and take it away again by the same code."""
    height = isqrt(l2_squared)
    total = height * expected + settings.noise_std * stream.normal(len(expected))
    # Clipped: after totals that make no sense the expected counts may not fit, and a party must go on all the same.
    total = np.rint(np.clip(total, -(2.0**62), 2.0**62))
    return denoise_histogram(settings, grid, total / height, noise_std=settings.noise_std / height, records=records)
