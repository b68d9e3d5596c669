"""What a result says of its groups: which columns set a cluster apart, and what is true of all records together.

Everything here is post-processing of released numbers. How sure a mean over clusters is: docs/proofs/uncertainty.md,
"Means over clusters".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloister.columns import Coordinate
from cloister.records import FloatArray
from cloister.report.layout import is_lost
from cloister.report.result import Result

_TRAITS_MOST = 3
_CLEARLY = 2.0
"""A cluster differs from the mean where it does so by so many standard deviations of the noise."""
_APART = 0.02
"""And by so much of the column's range."""
_MOST_EMPTY = 0.4


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One cluster.

    Parameters
    ----------
    number
        Its row among the centres.
    share
        Its part of all records; None if sizes were not released.
    is_lost
        Whether its size is lost in the noise: it may not be there at all.
    traits
        The columns in which it differs most from the mean of all, the clearest first.
    """

    number: int
    share: float | None
    is_lost: bool
    traits: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """A result, ready to be shown.

    Parameters
    ----------
    result
        What a run returned.
    clusters
        The largest first.
    means, mean_noise
        (d,), in original units: the mean of all records and what noise does to it, at most; None if sizes were not
        released.
    """

    result: Result
    clusters: tuple[Cluster, ...]
    means: FloatArray | None
    mean_noise: FloatArray | None

    @cached_property
    def axes(self) -> tuple[Coordinate, ...]:
        """What was clustered: numbers, dates, and the levels of categories."""
        return self.result.coordinates

    def find_range(self, i: int) -> tuple[float, float]:
        """Return what of a coordinate's axis is drawn: all of it, or, where that would leave most of it empty, a part.

        The part holds all centres with two deviations of their noise.
        """
        axis, values = self.axes[i], self.result.centres[:, i]
        around = 0.0 if self.noise is None else 2.0 * np.minimum(self.noise[:, i], axis.high - axis.low)
        low, high = float((values - around).min()), float((values + around).max())
        room = max(0.15 * (high - low), 0.02 * (axis.high - axis.low))
        low, high = max(axis.low, low - room), min(axis.high, high + room)
        return (low, high) if 0 < high - low < _MOST_EMPTY * (axis.high - axis.low) else (axis.low, axis.high)

    @property
    def noise(self) -> FloatArray | None:
        """What noise does to the centres, (k, d)."""
        return self.result.centre_noise


def look_at(result: Result) -> View:
    """Look at a result's groups."""
    shares = _find_shares(result)
    means, mean_noise = _find_means(result, shares)
    lost = find_lost_sizes(result)
    order = range(result.k) if shares is None else np.argsort(-shares, kind="stable").tolist()
    clusters = tuple(
        Cluster(
            number=j,
            share=None if shares is None else float(shares[j]),
            is_lost=lost[j],
            traits=_find_traits(result, j, means, mean_noise),
        )
        for j in order
    )
    return View(result=result, clusters=clusters, means=means, mean_noise=mean_noise)


def find_lost_sizes(result: Result) -> list[bool]:
    """Return which clusters' sizes are lost in the noise."""
    sizes = result.sizes
    return [False] * result.k if sizes is None else list(map(is_lost, sizes.clusters, sizes.noise))


def _find_shares(result: Result) -> FloatArray | None:
    sizes = result.sizes
    if sizes is None or sizes.total <= 0:
        return None
    shares: FloatArray = np.asarray(sizes.clusters, dtype=np.float64) / sizes.total
    return shares


def _find_means(result: Result, shares: FloatArray | None) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the mean of all records and the most, to first order, that noise does to it."""
    if shares is None:
        return None, None
    sizes, means = result.sizes, shares @ result.centres
    assert sizes is not None
    noise = np.zeros_like(result.centres) if result.centre_noise is None else result.centre_noise
    of_sizes = np.asarray(sizes.noise)[:, None] / sizes.total * np.abs(result.centres - means)
    return means, np.sqrt(((shares[:, None] * noise + of_sizes) ** 2).sum(axis=0))


def _find_traits(result: Result, j: int, means: FloatArray | None, mean_noise: FloatArray | None) -> tuple[int, ...]:
    """Return the columns in which a cluster differs from the mean, by far more than noise, the clearest first."""
    if means is None or mean_noise is None or result.k == 1:
        return ()
    own = np.zeros(len(means)) if result.centre_noise is None else result.centre_noise[j]
    ranges = np.array([column.high - column.low for column in result.coordinates])
    apart = np.abs(result.centres[j] - means)
    clear = (apart >= _CLEARLY * (own + mean_noise)) & (apart >= _APART * ranges) & ~result.mostly_noise[j]
    between = np.sqrt(((result.centres - means) ** 2).mean(axis=0))
    score = np.where(clear, apart / np.maximum(between, 1e-300), 0.0)
    order = np.argsort(-score, kind="stable")[:_TRAITS_MOST].tolist()
    return tuple(i for i in order if score[i] > 0)
