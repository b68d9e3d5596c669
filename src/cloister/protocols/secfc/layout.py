"""Which rows are whose, and in which chunk of the exchange each travels.

Without membership privacy the owners' rows stand one behind the other, by client number. With it every owner shares a
row for each record of the union, and the rows of all are added up (appendix B).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cloister.protocols.secfc.messages import Holding


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The rows of one session.

    Parameters
    ----------
    owners
        Who shares how many rows, by rising number.
    chunk_rows
        How many rows of each owner go in one chunk.
    union
        Whether all owners' rows stand for the same records.
    """

    owners: tuple[Holding, ...]
    chunk_rows: int
    union: bool

    @property
    def records(self) -> int:
        """How many records there are in all, m."""
        counts = [owner.records for owner in self.owners]
        return max(counts, default=0) if self.union else sum(counts)

    @property
    def chunks(self) -> int:
        """How many chunks it takes until all rows are exchanged."""
        return -(-max((owner.records for owner in self.owners), default=0) // self.chunk_rows)

    @cached_property
    def _firsts(self) -> dict[int, int]:
        """Each owner's first row among all."""
        firsts, at = {}, 0
        for owner in self.owners:
            firsts[owner.party] = at
            at += 0 if self.union else owner.records
        return firsts

    @cached_property
    def _counts(self) -> dict[int, int]:
        return {owner.party: owner.records for owner in self.owners}

    def rows_of(self, party: int) -> slice:
        """Return an owner's rows among all."""
        first = self._firsts[party]
        return slice(first, first + self._counts[party])

    def own_rows_in(self, party: int, chunk: int) -> slice:
        """Return which of an owner's rows, counted from its first, travel in a chunk; empty past its last."""
        count = self._counts[party]
        return slice(min(chunk * self.chunk_rows, count), min((chunk + 1) * self.chunk_rows, count))

    def count_in(self, party: int, chunk: int) -> int:
        """Return how many of an owner's rows travel in a chunk."""
        rows = self.own_rows_in(party, chunk)
        return int(rows.stop - rows.start)

    def rows_in(self, party: int, chunk: int) -> slice:
        """Return which rows among all these are."""
        own, first = self.own_rows_in(party, chunk), self._firsts[party]
        return slice(first + own.start, first + own.stop)

    def senders_in(self, chunk: int) -> tuple[int, ...]:
        """Return the owners that have rows in a chunk."""
        return tuple(owner.party for owner in self.owners if self.count_in(owner.party, chunk))

    def keep(self, kept: Iterable[int]) -> Layout:
        """Return the layout of some of the owners' records."""
        chosen = set(kept)
        owners = tuple(owner for owner in self.owners if owner.party in chosen)
        return Layout(owners=owners, chunk_rows=self.chunk_rows, union=self.union)

    def select(self, kept: Iterable[int]) -> NDArray[np.bool_]:
        """Return which rows are of these owners."""
        chosen = np.zeros(self.records, dtype=bool)
        for party in kept:
            chosen[self.rows_of(party)] = True
        return chosen
