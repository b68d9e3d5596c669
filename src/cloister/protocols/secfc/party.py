"""A client: shares its records, computes on everybody's shares, and learns the labels.

::

    opening ──OpenSession, ShareSeed | TakeSeed, MeetPeers──▶ met
    met ──ExchangeShares 0──▶ sharing ──ExchangeShares c, one after the other──▶ sharing ──BeginRounds──▶ holding
    holding ──Measure, newer labels or a later attempt──▶ holding ──RevealSums, once, if agreed──▶ revealed
    sharing, holding, revealed ──Finish──▶ finished

Whatever breaks this order raises :class:`~cloister.errors.RemoteProtocolError` and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cloister.aggregation import SeedHolder, unpack_members
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy, Identity, Stream
from cloister.errors import CloisterError, LocalProtocolError, RemoteProtocolError
from cloister.protocols.secfc import messages
from cloister.protocols.secfc.agreement import SecfcAgreement
from cloister.protocols.secfc.holder import ShareHolder, read_final
from cloister.protocols.secfc.labels import LabelBook, Labels, count_labels
from cloister.protocols.secfc.layout import Layout
from cloister.protocols.secfc.sharing import ShareExchange, check_positions, count_records, open_sums, round_records
from cloister.records import FloatArray, IntArray, Records
from cloister.roles import Message


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What a client holds at the end.

    Attributes
    ----------
    labels
        The cluster of every record of all clients, by its index.
    own_rows
        The indices of this client's records, in the order of its table; none if they were left out.
    counts
        How many records each cluster has.
    centres
        (k, d), the means of the rounded records, with noise if that was agreed; None unless they were to be revealed,
        or if too few clients were left to do it.
    """

    labels: Labels = field(repr=False)
    own_rows: IntArray = field(repr=False)
    counts: IntArray
    centres: FloatArray | None

    @property
    def own_labels(self) -> Labels:
        """The clusters of this client's records."""
        return self.labels[self.own_rows]


class SecfcParty:
    """One client of a session.

    Parameters
    ----------
    number
        This client's number, from 1.
    agreement
        What was agreed.
    records
        This client's records in [-1, 1]^d; may be empty.
    identity, entropy, session
        This client's keys, the source of its keys and of the noise in its shares, and the session's ID.
    positions
        With membership private: the index in the union of each of our records, in order.
    """

    def __init__(
        self,
        *,
        number: int,
        agreement: SecfcAgreement,
        records: Records,
        identity: Identity,
        entropy: Entropy,
        session: bytes,
        positions: IntArray | None = None,
    ) -> None:
        self._number = number
        self._agreement = agreement
        self._entropy = entropy
        self._session = session
        self._records: Records | None = records
        self._positions = positions
        count = count_records(records, agreement)
        check_positions(positions, count, agreement)
        self._own_rows = agreement.count_rows(count)
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=session,
            entropy=entropy,
        )
        self._secrets: dict[int, bytes] = {}
        self._exchange: ShareExchange | None = None
        self._holder: ShareHolder | None = None
        self._finding: Finding | None = None

    @property
    def finished(self) -> bool:
        """Whether this client has the result."""
        return self._finding is not None

    @property
    def finding(self) -> Finding:
        """The result."""
        if self._finding is None:
            raise LocalProtocolError("a client must be finished to have a finding; it is not. Check `finished` first.")
        return self._finding

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises and changes nothing."""
        if self._finding is not None:
            raise RemoteProtocolError("a finished session takes no more requests; got one.")
        reply: Message
        match request:
            case messages.MeetPeers():
                reply = self._meet(request)
            case messages.ExchangeShares():
                reply = self._exchange_shares(request)
            case messages.BeginRounds():
                reply = self._begin(request)
            case messages.Measure():
                reply = self._require_holder().measure(request)
            case messages.RevealSums():
                reply = self._require_holder().reveal(request, self._require_seed())
            case messages.Finish():
                reply = self._finish(request)
            case _:
                reply = self._seed_holder.handle(request)
        return reply

    def _require_seed(self) -> bytes:
        if self._seed_holder.seed is None:
            raise RemoteProtocolError("the seed must be agreed first; it is not.")
        return self._seed_holder.seed

    def _require_holder(self) -> ShareHolder:
        if self._holder is None:
            raise RemoteProtocolError("rounds must begin before anything is asked in them; they have not.")
        return self._holder

    # --- sharing --------------------------------------------------------------------------------------------------

    def _meet(self, request: messages.MeetPeers) -> messages.HeldRecords:
        self._require_seed()
        needed = self._agreement.replies
        if self._secrets or len(request.keys) < needed:
            raise RemoteProtocolError(f"at least {needed} clients must meet, once; got {len(request.keys)} keys.")
        self._secrets = self._seed_holder.exchange_with_peers(request.keys)
        return messages.HeldRecords(self._own_rows)

    def _exchange_shares(self, request: messages.ExchangeShares) -> messages.SealedShares:
        exchange = self._exchange
        layout = self._read_layout(request) if exchange is None else exchange.layout
        due = 0 if exchange is None else exchange.given
        same = (request.owners, request.digest) == (layout.owners, layout.digest)
        if self._holder is not None or not same or not request.chunk == due <= layout.chunks:
            raise RemoteProtocolError(
                f"chunk {due} of {layout.chunks} must come next, among the same owners, before rounds begin; got chunk "
                f"{request.chunk}."
            )
        if exchange is not None:
            exchange.take(request.chunk - 1, exchange.read(request.chunk - 1, request.boxes))
            return messages.SealedShares(exchange.give())
        if request.boxes or self._records is None:
            raise RemoteProtocolError("shares of others must come after ours were asked for; they do not.")
        self._exchange = ShareExchange(
            number=self._number,
            session=self._session,
            layout=layout,
            exact_points=round_records(self._records, layout.coding.fixed_point),
            positions=self._positions,
            secrets=self._secrets,
            stream=Stream(self._entropy.bytes(32)),
        )
        self._records = None  # what is needed is in the shares
        return messages.SealedShares(self._exchange.give())

    def _read_layout(self, request: messages.ExchangeShares) -> Layout:
        """Return who shares how much, and what follows from it, if it is as agreed."""
        agreement = self._agreement
        numbers = [owner.party for owner in request.owners]
        counts = {owner.party: owner.records for owner in request.owners}
        listed = numbers == sorted(counts) and {self._number, *self._secrets}.issuperset(numbers)
        if not listed or counts.get(self._number) != self._own_rows or len(numbers) < agreement.replies:
            raise RemoteProtocolError(
                f"at least {agreement.replies} clients that met must share, by rising number, we with as many "
                f"rows as we said; got {len(numbers)}."
            )
        if agreement.union and (len(numbers) != agreement.parties or set(counts.values()) != {agreement.records_max}):
            raise RemoteProtocolError("with membership private every client must share a row for each of the union.")
        try:
            layout = Layout.settle(request.owners, agreement)
        except CloisterError as error:  # the coordinator should have ended the session
            raise RemoteProtocolError(f"the clients' counts must allow a session: {error}") from None
        if request.digest != layout.digest:
            raise RemoteProtocolError("what follows from the clients' counts must be the same everywhere; it differs.")
        return layout

    def _begin(self, request: messages.BeginRounds) -> Ready:
        exchange = self._exchange
        if exchange is None or self._holder is not None or exchange.given <= exchange.layout.chunks:
            raise RemoteProtocolError("rounds must begin once, after all shares were exchanged; they do not.")
        layout, coded = exchange.finish(unpack_members(request.owners, self._agreement.parties))
        self._holder = ShareHolder(
            number=self._number,
            session=self._session,
            secrets=self._secrets,
            owners=request.owners,
            layout=layout,
            coded=coded,
        )
        self._exchange = None
        return Ready()

    # --- the end --------------------------------------------------------------------------------------------------

    def _finish(self, request: messages.Finish) -> Ready:
        agreement, seed = self._agreement, self._require_seed()
        if self._holder is not None:
            layout, book = self._holder.layout, self._holder.book
        elif self._exchange is not None:  # we missed a step, but what we shared before it may still be in
            layout = self._exchange.layout.keep(unpack_members(request.owners, agreement.parties))
            book = LabelBook(records=layout.records, clusters=agreement.clusters)
        else:
            raise RemoteProtocolError("a session must finish after shares were exchanged; they were not.")
        if self._holder is not None and request.owners != self._holder.owners:
            raise RemoteProtocolError("a session must finish with the records that it began with; these are others.")
        if request.sums and not agreement.reveal_centres:
            raise RemoteProtocolError("centres must be revealed only where that was agreed; they are.")
        labels = read_final(request.news, book, agreement)
        final = LabelBook(records=layout.records, clusters=agreement.clusters)
        final.keep(request.news.version, labels)
        counts = count_labels(labels, agreement.clusters)
        centres = None
        if request.sums:
            sums = open_sums(request.sums, layout, seed=seed, session=self._session, owners=request.owners, book=final)
            centres = layout.coding.fixed_point.decode(sums) / counts[:, None]
            if agreement.budget is not None:  # post-processing: noise may leave the domain, means do not
                centres = np.clip(centres, -1.0, 1.0)
        self._finding = Finding(labels=labels, own_rows=self._find_own(layout), counts=counts, centres=centres)
        return Ready()

    def _find_own(self, layout: Layout) -> IntArray:
        """Return the indices of our records."""
        if self._positions is not None:
            return self._positions
        if all(owner.party != self._number for owner in layout.owners):
            return np.empty(0, dtype=np.int64)
        rows = layout.rows_of(self._number)
        return np.arange(rows.start, rows.stop, dtype=np.int64)
