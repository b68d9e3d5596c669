"""The best that can be made of the totals of guided sums: how well they fit what one unit would have added.

The adversary runs the same algorithm on the same totals, so it knows every question, and it is given all records but
one unit's. It subtracts what these add and looks for the rest, v, in noise: the most powerful statistic is the
likelihood ratio (Neyman and Pearson), for Gaussian noise the sum over rounds of (<x, v> - |v|^2 / 2) / sigma^2, for
Laplace noise that of (|x|_1 - |x - v|_1) / b. Questions, and with them v, change from run to run, which is why no fixed
projection of the totals would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.crypto import Stream
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.protocols.guided_sums.query import Asking, Query, relay
from cloister.protocols.guided_sums.settings import GuidedSettings, Slot
from cloister.protocols.guided_sums.thinking import Pipeline
from cloister.records import FloatArray, IntArray, Records

_RAW_ENTRIES = 32  # of each slot, as they were read: for noise that is the same twice
_FRACTION = 2.0**20  # scores are handed on as integers, in this fraction of 1


class Watch:
    """The algorithm with every question kept."""

    def __init__(self, pipeline: Pipeline[Any]) -> None:
        self._pipeline = pipeline
        self.queries: list[Query] = []

    def __call__(self, settings: GuidedSettings, stream: Stream) -> Asking[Any]:
        """Run it."""
        self.queries.clear()
        return relay(self._pipeline(settings, stream), self._keep)

    def _keep(self, query: Query) -> Query:
        self.queries.append(query)
        return query


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenUnit:
    """What the adversary is given.

    Parameters
    ----------
    settings
        Public: the noise of each round.
    others
        The records of every party whose records do not differ.
    without, present
        Those of the one party whose records do, on either input.
    """

    settings: GuidedSettings
    others: tuple[Records, ...]
    without: Records
    present: Records

    def read(self, queries: Sequence[Query], totals: Sequence[IntArray]) -> IntArray:
        """Return one run's view: the score of all rounds, that of each, and the first entries of each slot."""
        scores, entries = [], []
        for query, total, slot in zip(queries, totals, self.settings.slots, strict=True):
            rest, without = total.copy(), query.measure(self.without)
            rest[: query.length] -= sum((query.measure(records) for records in self.others), start=without)
            v = (query.measure(self.present) - without).astype(np.float64)
            scores.append(_FRACTION * self._score(rest[: query.length].astype(np.float64), v, slot))
            entries.append(rest[:_RAW_ENTRIES])
        rounded = np.rint([sum(scores), *scores]).astype(np.int64)
        return np.concatenate([rounded, *entries])

    def _score(self, x: FloatArray, v: FloatArray, slot: Slot) -> float:
        """The logarithm of the likelihood ratio; of shared noise, of a Gaussian with its variance."""
        noise = self.settings.noise_in(slot)
        if isinstance(noise, DiscreteLaplace):
            return float((np.abs(x) - np.abs(x - v)).sum() / noise.scale)
        return float(x @ v - v @ v / 2) / self.settings.placement.total_variance(noise)


def name_entries(slots: Sequence[Slot]) -> Iterator[str]:
    """Yield the names of a view's entries, in order."""
    yield "likelihood ratio of all rounds"
    for slot in slots:
        yield f"likelihood ratio of {slot.name!r}"
    for slot in slots:
        for entry in range(1, min(slot.length, _RAW_ENTRIES) + 1):
            yield f"{slot.name!r}, number {entry}"
