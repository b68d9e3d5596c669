"""Which rows belong to whom, and how the coordinator checks replies about them.

Without membership privacy, the owners' rows follow each other by client number. With it, every owner shares a
row for each record of the union, and the rows of all are added up (appendix B).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from cloister.crypto import TAG_BYTES
from cloister.errors import RemoteProtocolError
from cloister.protocols.secfc.agreement import Coding, SecfcAgreement
from cloister.protocols.secfc.messages import HeldRecords, Holding, Measured, SealedShares, SumShares
from cloister.roles import Check, Message


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The rows of one session.

    Parameters
    ----------
    owners
        Who shares how many rows, by rising number.
    coding
        How they are coded.
    """

    owners: tuple[Holding, ...]
    coding: Coding

    @classmethod
    def settle(cls, owners: tuple[Holding, ...], agreement: SecfcAgreement) -> Layout:
        """Return the layout on which the owners' counts decide; refuses counts as `SecfcAgreement.choose_coding`."""
        counts = [owner.records for owner in owners]
        coding = agreement.choose_coding(max(counts, default=0) if agreement.union else sum(counts))
        return cls(owners=owners, coding=coding)

    @property
    def union(self) -> bool:
        """Whether all owners' rows stand for the same records."""
        return self.coding.agreement.union

    @cached_property
    def records(self) -> int:
        """How many records there are in all, m."""
        counts = [owner.records for owner in self.owners]
        return max(counts, default=0) if self.union else sum(counts)

    @cached_property
    def chunk_rows(self) -> int:
        """How many rows of each owner go in one chunk."""
        return self.coding.chunk_rows

    @cached_property
    def chunks(self) -> int:
        """How many chunks it takes until all rows are exchanged."""
        return -(-max((owner.records for owner in self.owners), default=0) // self.chunk_rows)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of what was agreed, in advance and by the owners' counts."""
        coding = self.coding
        moduli = [str(modulus) for modulus in coding.field.moduli]
        settled = (coding.agreement.digest, self.owners, coding.records_max, coding.bits, moduli)
        return hashlib.sha256(msgspec.msgpack.encode(settled)).digest()

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
        return replace(self, owners=tuple(owner for owner in self.owners if owner.party in chosen))

    def select(self, kept: Iterable[int]) -> NDArray[np.bool_]:
        """Return which rows are of these owners."""
        chosen = np.zeros(self.records, dtype=bool)
        for party in kept:
            chosen[self.rows_of(party)] = True
        return chosen


# --- checks of replies; a client that sends anything else counts as silent --------------------------------------------


def expect_count(agreement: SecfcAgreement) -> Check:
    """Return a check that a client says how many rows it shares."""

    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, HeldRecords) or reply.records != agreement.count_rows(reply.records):
            raise RemoteProtocolError(f"party {party} must say how many rows it shares, as agreed; it does not.")

    return check


def expect_shares(chunk: int, layout: Layout) -> Check:
    """Return a check of one chunk: a box for each other owner, of the right length, from who has rows in it."""
    row_bytes = layout.coding.word_bytes * layout.coding.width
    everyone = [owner.party for owner in layout.owners]

    def check(party: int, reply: Message) -> None:
        rows = layout.count_in(party, chunk)
        holders = [other for other in everyone if other != party] if rows else []
        if (
            not isinstance(reply, SealedShares)
            or [sent.party for sent in reply.boxes] != holders
            or any(len(sent.box) != rows * row_bytes + TAG_BYTES for sent in reply.boxes)
        ):
            raise RemoteProtocolError(
                f"party {party} must seal the shares of {rows} records to each of {len(holders)} others; it did not."
            )

    return check


def expect_distances(layout: Layout, columns: int) -> Check:
    """Return a check of coded distances: shape, and every word an element."""
    field, records = layout.coding.field, layout.records

    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, Measured):
            raise RemoteProtocolError(f"party {party} must answer with distances; got {type(reply).__name__}.")
        values = reply.values.to_numpy(np.uint64, field.residues, records, columns)
        field.check_received(values, (records, columns), what=f"distances of party {party}")

    return check


def expect_sums(coding: Coding) -> Check:
    """Return a check of a sealed share of the sums: its length is all that can be checked."""

    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, SumShares) or len(reply.box) != coding.sum_box_bytes:
            raise RemoteProtocolError(
                f"party {party} must seal its share of the sums in {coding.sum_box_bytes} bytes; it did not."
            )

    return check
