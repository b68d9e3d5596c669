"""The client as the unit: every party sends a vector of one length, whatever it holds; only the direction tells.

With the unit "client" all records of a party are hidden at once, so the whole vector of a party must be bounded.
Each party scales its exact vector to the largest length that the round allows. No clipping threshold is needed, so none
has to be guessed, released or tuned: what the lengths would tell is read from ratios in the release (sums over counts,
cells over their total) or from a vote. Records in different directions gain by it: the histogram of n records in
different cells has length sqrt(n), so the party counts as sqrt(n) records and not as one. The price: a party with ten
times the records of another weighs one to three times as much, not ten times.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt, sqrt

import numpy as np

from cloister.kmeans.records import FloatArray, Records
from cloister.numeric import find_reach
from cloister.protocols.synopsis.query import Answer, Asking, IntArray, Query, relay
from cloister.protocols.synopsis.settings import SIZE_BINS, Settings

_VOTE = 2.5  # deviations of noise above which a bin has votes; one of the bins has so much noise once in eight releases
_CELLS, _CELLS_TO_A_FULL_ONE = 16, 3  # for each cluster; and one in three of them holds records, about


def bound_client(exact: IntArray | FloatArray, l2_squared: int) -> IntArray:
    """Scale a party's exact vector to the length that a round allows, in integers; zeros stay zeros.

    Privacy
    -------
    Returns v = rint(y), y = exact * reach / |exact|: |v| <= floor(sqrt(l2_squared)) by the lemma of `find_reach`, for
    every input, so |v|^2 <= l2_squared. v depends on this party's records and on public values only, so adding or
    removing the party changes the sum by v.
    """
    reach = find_reach(isqrt(l2_squared), len(exact))
    direction = exact.astype(np.float64)
    largest = float(np.abs(direction).max(initial=0.0))
    if largest == 0:
        return np.zeros(len(exact), dtype=np.int64)
    direction /= largest  # no overflow in the squares
    return np.rint(direction * (reach / sqrt(float((direction**2).sum())))).astype(np.int64)


def bound_answers(asking: Asking[Answer]) -> Asking[Answer]:
    """Ask the same questions of whole parties: each answer is scaled by `bound_client` to the squared length agreed."""
    return relay(asking, _bound_query)


def _bound_query(query: Query) -> Query:
    if query.length == 0:
        return query
    return replace(query, measure=lambda records: bound_client(query.measure(records), query.l2_squared))


def release_sizes(settings: Settings, *, l2_squared: int) -> Asking[float]:
    """Let every party vote for the bin of its number of records, 1, 2, 3 to 4, 5 to 8 and so on; return about all.

    Privacy
    -------
    A party adds a to one bin: squared L2 norm a^2 <= ``l2_squared``.
    """
    height = isqrt(l2_squared)

    def measure(party: Records) -> IntArray:
        size = sum(len(batch) for batch in party.batches())
        votes = np.zeros(SIZE_BINS, dtype=np.int64)
        if size:
            votes[min((size - 1).bit_length(), SIZE_BINS - 1)] = height
        return votes

    total = yield Query(name="votes for the size of a party", measure=measure, length=SIZE_BINS, l2_squared=height**2)
    middles = 2.0 ** np.maximum(np.arange(SIZE_BINS) - 0.5, 0.0)
    votes = np.where(total > _VOTE * settings.noise_std, total / height, 0.0)
    if not votes.any():
        votes[int(np.argmax(total))] = 1.0
    return float(settings.parties * (votes @ middles) / votes.sum())


def weigh_clients(settings: Settings, records: float) -> float:
    """About how many records all parties count for once their vectors are scaled.

    A party's histogram p over 16 k cells, of which about a third hold records, counts as 1 / |p| records, and
    |p|^2 is about 1 / n + 3 / (16 k) for n records.
    """
    each = max(records / settings.parties, 1.0)
    return settings.parties * float((1 / each + _CELLS_TO_A_FULL_ONE / (_CELLS * settings.clusters)) ** -0.5)


def vote_for_median(counts: IntArray, height: int) -> IntArray:
    """A party's vote for the bin that its median record is in; a party without records does not vote."""
    votes = np.zeros_like(counts)
    if counts.any():
        votes[int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))] = height
    return votes
