"""The number of records: one noisy count, or, where a whole party is the unit, votes for the size of a party."""

from __future__ import annotations

from math import isqrt

import numpy as np

from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.settings import GuidedSettings
from cloister.records import IntArray, Records

SIZE_BINS = 20
"""Of the sizes of parties: 1, 2, 3 to 4, 5 to 8 and so on, each twice the last; more than 2^18 records share one."""
_VOTE = 2.5  # deviations of noise above which a bin has votes; one of the bins has so much noise once in eight releases
_CELLS, _CELLS_TO_A_FULL_ONE = 16, 3  # for each cluster; and one in three of them holds records, about


def count_slot_length(settings: GuidedSettings) -> int:
    """How many numbers the round that counts the records sends."""
    return SIZE_BINS if settings.client_level else 1


def release_size(settings: GuidedSettings, *, l2_squared: int) -> Asking[float]:
    """Release about how many records there are."""
    count = release_sizes if settings.client_level else count_records
    return (yield from count(settings, l2_squared=l2_squared))


def count_records(settings: GuidedSettings, *, l2_squared: int) -> Asking[float]:
    """Release the number of records.

    Privacy
    -------
    A record adds a: squared L2 norm a^2 <= ``l2_squared``.
    """
    height = isqrt(l2_squared)

    def measure(party: Records) -> IntArray:
        return np.array([height * sum(len(batch) for batch in party.batches())], dtype=np.int64)

    total = yield Query(name="number of records", measure=measure, length=1, l2_squared=height**2)
    return max(1.0, float(total[0]) / height)


def release_sizes(settings: GuidedSettings, *, l2_squared: int) -> Asking[float]:
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


def weigh_clients(settings: GuidedSettings, records: float) -> float:
    """About how many records all parties count for once their vectors are scaled.

    A party's histogram p over 16 k cells, of which about a third hold records, counts as 1 / |p| records, and
    |p|^2 is about 1 / n + 3 / (16 k) for n records.
    """
    each = max(records / settings.parties, 1.0)
    return settings.parties * float((1 / each + _CELLS_TO_A_FULL_ONE / (_CELLS * settings.clusters)) ** -0.5)
