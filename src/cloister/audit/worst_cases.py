"""Neighbours that a sum-and-count release finds hardest to hide, for audits.

Noise is added to integers, so what an audit can see depends only on the difference of two neighbours' exact vectors:
one record's contribution, round by round. The hardest difference is the longest one. The centres are taken as fixed,
and the record's clusters in each round are the adversary's choice: the guarantee holds for every sequence of centres,
so these are cases that it covers.

All other clusters, and all other records, are left out: with additive noise they change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.errors import ConfigError
from cloister.privacy.encoder import SumCountEncoder
from cloister.records import FloatArray, IntArray

_OUTSIDE = 4.0


@dataclass(frozen=True, kw_only=True)
class WorstRecord:
    """A made-up record to add to an input, and the clusters it is assigned to.

    Parameters
    ----------
    name
        In words, for the report.
    point
        (d,): scaled by the public bounds; may lie outside [-1, 1], where the release under audit must clip it.
    clusters
        Its cluster in each round; as many as there are rounds.
    """

    name: str
    point: FloatArray
    clusters: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class NeighbourPair:
    """The exact vectors of two neighbouring inputs, all rounds in one row: what a release adds its noise to."""

    name: str
    exact_without: IntArray
    exact_with: IntArray

    @property
    def difference(self) -> FloatArray:
        """One record's contribution in all rounds."""
        return (self.exact_with - self.exact_without).astype(np.float64)


def worst_records(dimensions: int, *, clusters: int, rounds: int) -> tuple[WorstRecord, ...]:
    """Return the records to try, hardest to hide first.

    Parameters
    ----------
    dimensions
        Columns.
    clusters, rounds
        Of the release. With one cluster or one round the record cannot move.
    """
    if min(dimensions, clusters, rounds) < 1:
        raise ConfigError(
            f"dimensions, clusters and rounds must be at least 1; got {dimensions}, {clusters} and {rounds}."
        )
    corner = np.ones(dimensions)
    axis = np.zeros(dimensions)
    axis[0] = 1.0
    same = (0,) * rounds
    moving = tuple(number % clusters for number in range(rounds))
    records = [
        WorstRecord(name="a record at a corner of the domain, alone in its cluster", point=corner, clusters=same),
        WorstRecord(
            name="a record far outside the domain, alone in its cluster", point=_OUTSIDE * corner, clusters=same
        ),
        WorstRecord(name="a record at the end of one axis, alone in its cluster", point=axis, clusters=same),
    ]
    if moving != same:
        name = "a record at a corner that joins another, empty cluster in every round"
        records.append(WorstRecord(name=name, point=corner, clusters=moving))
    return tuple(records)


def exact_pair(record: WorstRecord, encoder: SumCountEncoder, *, clusters: int) -> NeighbourPair:
    """Return the exact vectors without and with a record, clipped and bounded as the encoder declares.

    The layout of a round is the encoder's: for each cluster d sums, then the weighted count.
    """
    inside = np.clip(record.point, -1.0, 1.0)
    (units,) = encoder.fixed_point.encode(encoder.bound(inside[None, :]))
    return place_contribution(record, np.append(units, encoder.count_weight), clusters=clusters)


def place_contribution(record: WorstRecord, contribution: IntArray, *, clusters: int) -> NeighbourPair:
    """Put one contribution (d sums, weighted count) into its cluster's slots in every round; all else is empty."""
    exact_with = np.zeros((len(record.clusters), clusters, len(contribution)), dtype=np.int64)
    exact_with[np.arange(len(record.clusters)), list(record.clusters)] = contribution
    return NeighbourPair(
        name=record.name, exact_without=np.zeros(exact_with.size, dtype=np.int64), exact_with=exact_with.reshape(-1)
    )


def entry_labels(dimensions: int, *, clusters: int, rounds: int) -> tuple[str, ...]:
    """Name the entries of a release of several rounds, in its layout; everything counts from 1."""
    parts = [f"sum {column + 1}" for column in range(dimensions)] + ["count"]
    return tuple(
        f"round {number + 1}, cluster {cluster + 1}, {part}"
        for number in range(rounds)
        for cluster in range(clusters)
        for part in parts
    )
