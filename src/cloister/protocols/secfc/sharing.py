"""A client's side of secure data sharing (section 4.1; Algorithm 1, lines 1-4; appendix B for the union).

It rounds its records to the grid, cuts them into chunks, codes each chunk and seals every other client's share for it;
and it gathers what the others sealed for it: a table with one row per record, on which it computes afterwards.

Revealed centres (section 7) are l + t clients' shares of the clusters' sums, in boxes under the seed that the clients
know and the coordinator does not. A sum is linear in the records, so it is coded as a record is: l + t shares give it
back, and what they show beyond it is noise.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Context, Stream, open_keyed, seal_keyed
from cloister.errors import DataError, LocalProtocolError, RemoteProtocolError
from cloister.field import CodedRecords, Words
from cloister.numeric import FixedPoint
from cloister.protocols.secfc.agreement import SecfcAgreement
from cloister.protocols.secfc.labels import LabelBook
from cloister.protocols.secfc.layout import Layout
from cloister.protocols.secfc.messages import AddressedBox, read_words, write_words
from cloister.records import IntArray, Records


def count_records(records: Records, agreement: SecfcAgreement) -> int:
    """Return how many records a client has; refuses those that cannot be coded, before anything is sent."""
    if records.dimensions != agreement.dimensions:
        raise DataError(f"records must have {agreement.dimensions} columns; got {records.dimensions}. Check the table.")
    count = 0
    for batch in records.batches():
        outside = batch.size - int(np.count_nonzero(np.abs(batch) <= 1))  # counts NaN as outside
        if outside:
            raise DataError(f"coordinates must lie in [-1, 1]; {outside} do not. Scale the table by its public bounds.")
        count += len(batch)
    return count


def round_records(records: Records, grid: FixedPoint) -> NDArray[np.int32]:
    """Return a client's records as integers on the grid (appendix A, rounded to the nearest)."""
    parts = [np.empty((0, records.dimensions), dtype=np.int32)]
    parts += [grid.encode(batch).astype(np.int32) for batch in records.batches()]  # at most 2^30
    return np.concatenate(parts)


def check_positions(positions: IntArray | None, count: int, agreement: SecfcAgreement) -> None:
    """Refuse positions in the union that do not fit: none without one, and one different place for each record."""
    if (positions is None) == agreement.union:
        raise LocalProtocolError("records must have positions in the union exactly where membership is private.")
    if positions is None:
        return
    different = len(np.unique(positions))
    inside = not positions.size or 0 <= positions.min() <= positions.max() < agreement.count_rows(count)
    if positions.shape != (count,) or different != count or not inside:
        raise DataError(
            f"each of {count} records must have its own position among the {agreement.records_max} of the union; got "
            f"{positions.size} positions, {different} different{'' if inside else ', some outside'}. Align again."
        )


class ShareExchange:
    """One client's exchange of shares.

    Parameters
    ----------
    number, session, layout
        Who we are, which session, and whose rows there are.
    exact_points, positions
        Our records on the grid; with membership private, the row of each among those of the union.
    secrets
        With each other client.
    stream
        The noise of our shares.
    """

    def __init__(
        self,
        *,
        number: int,
        session: bytes,
        layout: Layout,
        exact_points: NDArray[np.int32],
        positions: IntArray | None,
        secrets: Mapping[int, bytes],
        stream: Stream,
    ) -> None:
        self._number = number
        self._session = session
        self.layout = layout
        self._exact_points = exact_points
        self._positions = positions
        self._secrets = secrets
        self._stream = stream
        self._table = layout.coding.field.zeros(layout.records, layout.coding.width)
        self._lost: set[int] = set()
        self.given = 0  # chunks that we have shared

    @property
    def complete(self) -> frozenset[int]:
        """The owners of whose rows nothing that was due is missing."""
        return frozenset(owner.party for owner in self.layout.owners) - self._lost

    def give(self) -> tuple[AddressedBox, ...]:
        """Code our next chunk, keep our own share, and seal the others'."""
        chunk, layout = self.given, self.layout
        self.given += 1
        if not layout.count_in(self._number, chunk):
            return ()
        coding = layout.coding
        shares = coding.code.share(coding.field.encode(self._exact_rows(chunk)), self._stream)
        self._enter(self._number, chunk, shares[self._number - 1])
        boxes = {
            owner.party: seal_keyed(
                write_words(shares[owner.party - 1]),
                self._secrets[owner.party],
                *self._name(self._number, owner.party, chunk),
            )
            for owner in layout.owners
            if owner.party != self._number
        }
        return tuple(AddressedBox(party, box) for party, box in boxes.items())

    def read(self, chunk: int, boxes: tuple[AddressedBox, ...]) -> dict[int, Words]:
        """Open the shares of a chunk that others sealed for us; changes nothing."""
        senders = [sent.party for sent in boxes]
        due = set(self.layout.senders_in(chunk)) - {self._number}
        if senders != sorted(set(senders)) or not due.issuperset(senders):
            raise RemoteProtocolError("shares must come once each, by rising number, from clients that owe some.")
        return {sent.party: self._open(sent, chunk) for sent in boxes}

    def take(self, chunk: int, opened: Mapping[int, Words]) -> None:
        """Store what :meth:`read` returned; an owner whose shares did not come is lost to us."""
        for party, shares in opened.items():
            self._enter(party, chunk, shares)
        self._lost |= set(self.layout.senders_in(chunk)) - opened.keys() - {self._number}

    def finish(self, kept: tuple[int, ...]) -> tuple[Layout, CodedRecords]:
        """Return whose records are clustered, and our shares of them."""
        everyone = tuple(owner.party for owner in self.layout.owners)
        if not self.complete.issuperset(kept) or (self.layout.union and kept != everyone):
            raise RemoteProtocolError(
                f"the records that are clustered must be of clients whose shares all came, {len(self.complete)} of "
                f"{len(everyone)}; got {len(kept)}, or with membership private not all."
            )
        table = self._table if kept == everyone else self._table[:, self.layout.select(kept)]
        return self.layout.keep(kept), CodedRecords(self.layout.coding.field, table)

    def _exact_rows(self, chunk: int) -> IntArray:
        """Our rows of a chunk; with membership private, zeros where a record of the union is not ours."""
        rows = self.layout.own_rows_in(self._number, chunk)
        if self._positions is None:
            return self._exact_points[rows].astype(np.int64)
        padded = np.zeros((rows.stop - rows.start, self._exact_points.shape[1]), dtype=np.int64)
        ours = (self._positions >= rows.start) & (self._positions < rows.stop)
        padded[self._positions[ours] - rows.start] = self._exact_points[ours]
        return padded

    def _open(self, sent: AddressedBox, chunk: int) -> Words:
        name = self._name(sent.party, self._number, chunk)
        plain = open_keyed(sent.box, self._secrets[sent.party], *name)
        coding = self.layout.coding
        shape = (self.layout.count_in(sent.party, chunk), coding.width)
        return read_words(plain, coding.field, shape, what="shares of records")

    def _enter(self, party: int, chunk: int, shares: Words) -> None:
        """Write an owner's rows; with membership private all owners' are added up (appendix B)."""
        rows = self.layout.rows_in(party, chunk)
        if not self.layout.union:
            self._table[:, rows] = shares
            return
        total = np.ascontiguousarray(self._table[:, rows])
        self.layout.coding.field.accumulate(total, shares)
        self._table[:, rows] = total

    def _name(self, owner: int, holder: int, chunk: int) -> tuple[Context, ...]:
        """Return the context of one box; each is sealed once, and opens only for clients with the same layout."""
        return (self._session, "record shares", self.layout.digest, owner, holder, chunk)


# --- revealed centres -------------------------------------------------------------------------------------------------


def name_sum_share(session: bytes, sender: int, owners: bytes, book: LabelBook) -> tuple[Context, ...]:
    """Return the context of one client's box; it seals one in a session."""
    return (session, "sum shares", sender, owners, book.digest)


def open_sums(
    boxes: tuple[AddressedBox, ...], layout: Layout, *, seed: bytes, session: bytes, owners: bytes, book: LabelBook
) -> IntArray:
    """Return the exact sums (k, d), on the integer grid, from l + t clients' boxes."""
    agreement, field, code = layout.coding.agreement, layout.coding.field, layout.coding.code
    senders = [sent.party for sent in boxes]
    within = senders and senders[-1] <= agreement.parties
    if len(senders) != code.holders or senders != sorted(set(senders)) or not within:
        raise RemoteProtocolError(
            f"sums must come from {code.holders} clients, once each, by rising number; got {len(senders)}."
        )
    shape = (agreement.clusters, layout.coding.width)
    opened = (open_keyed(sent.box, seed, *name_sum_share(session, sent.party, owners, book)) for sent in boxes)
    shares = np.stack([read_words(plain, field, shape, what="shares of sums") for plain in opened])
    return field.decode(code.reveal(senders, shares, agreement.dimensions))
