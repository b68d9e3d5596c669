"""A client that holds a share of every record: its part in a round, and in revealing the centres.

It answers each attempt once. What it sends in one is w_j phi(alpha_j) + pad_j: its decoding weight among the responders
of the attempt times its coded distances, and a pad that is used for nothing else.

Pads cancel over the responders, so the coordinator can only read the sum of their replies. The responders R of
one attempt form a circle, by number. Neighbours share a keystream, which the first adds and the second subtracts:

    pad_j = F(j, next j) - F(previous j, j),        sum over j in R of pad_j = 0.

A circle is connected and stays so when one of R is taken out: to the coordinator, even with the secrets of one client
of R, the others' replies are uniform except for their sum. More pads would protect against more helpers of the
coordinator; but one client's records already fix the isometry (docs/proofs/secfc.md, claim 6), so that two keystreams,
whatever the number of clients, are what there is to gain.

F is uniform over the field, from the two clients' Diffie-Hellman secret and a context that never comes twice with
different values: the labels, the attempt, R and the columns. If clients got different ones, pads do not cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cloister.aggregation import unpack_members
from cloister.crypto import Context, Stream, derive_key, seal_keyed
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.field import CodedRecords, Field, Words
from cloister.protocols.secfc.agreement import SecfcAgreement
from cloister.protocols.secfc.labels import LabelBook, Labels, count_labels
from cloister.protocols.secfc.layout import Layout
from cloister.protocols.secfc.messages import LabelNews, Measure, Measured, RevealSums, SumShares, write_words
from cloister.protocols.secfc.sharing import name_sum_share
from cloister.records import IntArray
from cloister.wire import Array

_MOVED_COST = 8  # a record that moved is read, squared and added twice, out of order: the cost relative to a plain sum
_SAVING_WORDS = 1 << 17  # saving fewer additions than this does not pay for finding out who moved


class CirclePads:
    """One client's pads of one session.

    Parameters
    ----------
    number
        This client.
    secrets
        The Diffie-Hellman secret with each other client.
    session, field
        Which session, and where the replies live.
    """

    __slots__ = ("_field", "_number", "_secrets", "_session")

    def __init__(self, *, number: int, secrets: Mapping[int, bytes], session: bytes, field: Field) -> None:
        self._number = number
        self._secrets = dict(secrets)
        self._session = session
        self._field = field

    def pad(self, responders: Sequence[int], shape: tuple[int, ...], *context: Context) -> Words:
        """Return pad_j, (residues, *shape); ``responders`` are rising, at least three, and this client among them."""
        if len(responders) < 3 or self._number not in responders or list(responders) != sorted(set(responders)):
            raise LocalProtocolError(
                f"pads must be among at least 3 responders by rising number, us among them; got {len(responders)}."
            )
        at = responders.index(self._number)
        behind, before = responders[(at + 1) % len(responders)], responders[at - 1]
        name = (*context, np.array(responders, dtype="<u2").tobytes())
        pad = self._keystream(self._number, behind, shape, name)
        self._field.deduct(pad, self._keystream(before, self._number, shape, name))
        return pad

    def _keystream(self, first: int, second: int, shape: tuple[int, ...], context: tuple[Context, ...]) -> Words:
        """F: the same at both ends of an edge of the circle."""
        secret = self._secrets[second if first == self._number else first]
        key = derive_key(secret, "circle pad", self._session, first, second, *context)
        return self._field.uniform(Stream(key), *shape)


class ShareHolder:
    """One client in the rounds.

    Parameters
    ----------
    number, session
        Who we are, and which session.
    secrets
        With each other client that we met.
    owners
        Whose records are clustered, as the bitmap that all were told.
    layout, coded
        The records' places, and our shares of them.
    """

    def __init__(
        self,
        *,
        number: int,
        session: bytes,
        secrets: Mapping[int, bytes],
        owners: bytes,
        layout: Layout,
        coded: CodedRecords,
    ) -> None:
        self._number = number
        self._session = session
        self._agreement = agreement = layout.coding.agreement
        self._field, self._code = layout.coding.field, layout.coding.code
        self._met = {number, *secrets}
        self._pads = CirclePads(number=number, secrets=secrets, session=session, field=self._field)
        self.owners = owners
        self.layout = layout
        self._coded = coded
        self.book = LabelBook(records=layout.records, clusters=agreement.clusters)
        self._summed = self.book.labels  # what the sums are of: no record is in a cluster yet
        self._sums = self._field.zeros(agreement.clusters, layout.coding.width)
        self._attempt = 0  # the last one that we answered of the book's version
        self._revealed = False
        self._last_set: tuple[bytes, tuple[int, ...], Words] | None = None  # most rounds have the set of the one before

    def measure(self, request: Measure) -> Measured:
        """Algorithm 1, lines 8-13, weighted and masked for one set of responders."""
        agreement, news = self._agreement, request.news
        answered = self._attempt if news.version == self.book.version else 0
        if self._revealed or news.version >= agreement.versions or request.attempt <= answered:
            raise RemoteProtocolError(
                f"distances must be of labels of a version below {agreement.versions}, in an attempt later than "
                f"{answered}, before sums are revealed; got version {news.version}, attempt {request.attempt}."
            )
        responders, weight = self._read_responders(request.responders)
        labels = self.book.read(news)
        counts = count_labels(labels, agreement.clusters)
        columns = _check_columns(request.columns, counts)
        self.book.keep(news.version, labels)
        self._attempt = request.attempt
        # all that the reply depends on: a pad of this name never meets another value
        name: tuple[Context, ...] = (self.owners, self.book.digest, news.version, request.attempt, columns.tobytes())
        values = self._coded.measure(
            self._sum_clusters(labels)[:, columns],
            counts[columns],
            weight=weight,
            mask=self._pads.pad(responders, (len(labels), len(columns)), *name),
        )
        return Measured(Array.of(values))

    def reveal(self, request: RevealSums, seed: bytes) -> SumShares:
        """Section 7: our share of the final clusters' sums, for whoever knows the seed; once."""
        agreement = self._agreement
        if not agreement.reveal_centres or self._revealed:
            raise RemoteProtocolError("sums must be revealed once, and only if that was agreed on; they were not.")
        labels = read_final(request.news, self.book, agreement)
        noise = self._read_noise(request)
        self.book.keep(request.news.version, labels)
        self._revealed = True
        sums = self._sum_clusters(labels).copy()
        if noise is not None:
            self._field.accumulate(sums, noise)
        return SumShares(
            seal_keyed(write_words(sums), seed, *name_sum_share(self._session, self._number, self.owners, self.book))
        )

    def _sum_clusters(self, labels: Labels) -> Words:
        """Algorithm 1, line 9: our coded sums, (residues, k, s); only records that moved are added and taken away.

        Sums in the field are exact, so that it does not matter how they were arrived at.
        """
        field, clusters = self._field, self._agreement.clusters
        moved = np.flatnonzero(labels != self._summed)
        if (len(labels) - _MOVED_COST * len(moved)) * self.layout.coding.width < _SAVING_WORDS:
            self._sums = self._coded.sum_clusters(labels, clusters)
        elif len(moved):
            rows = CodedRecords(field, self._coded.shares[:, moved])
            field.accumulate(self._sums, rows.sum_clusters(labels[moved], clusters))
            field.deduct(self._sums, rows.sum_clusters(self._summed[moved], clusters))
        self._summed = labels
        return self._sums

    def _read_noise(self, request: RevealSums) -> Words | None:
        """Return our share of the noise on the sums, where that was agreed."""
        if (request.noise is None) != (self._agreement.budget is None):
            raise RemoteProtocolError("noise must come with the request if and only if it was agreed on; it does not.")
        if request.noise is None:
            return None
        shape = (self._agreement.clusters, self.layout.coding.width)
        words = request.noise.to_numpy(np.uint64, self._field.residues, *shape)
        return self._field.check_received(words, shape, what="shares of noise")

    def _read_responders(self, bitmap: bytes) -> tuple[tuple[int, ...], Words]:
        """Return who is decoded together, and our weight; refuses a wrong number, and clients that we never met."""
        if self._last_set is not None and self._last_set[0] == bitmap:
            return self._last_set[1:]
        responders = unpack_members(bitmap, self._agreement.parties)
        needed = self._code.replies
        if self._number not in responders or len(responders) != needed or not self._met.issuperset(responders):
            raise RemoteProtocolError(
                f"{needed} clients that met must be decoded together, we among them; got {len(responders)}."
            )
        weight = self._code.weigh_client(responders, self._number)
        self._last_set = (bitmap, responders, weight)
        return responders, weight


def read_final(news: LabelNews, book: LabelBook, agreement: SecfcAgreement) -> Labels:
    """Return the last labels, in which every record is in a cluster and every cluster has one."""
    labels = book.read(news)
    placed = len(labels) > 0 and labels.min() >= 0 and count_labels(labels, agreement.clusters).all()
    if news.version > agreement.versions or not placed:
        raise RemoteProtocolError(
            f"the final labels must be of a version up to {agreement.versions}, with every record in a cluster and no "
            "cluster empty; they are not."
        )
    return labels


def _check_columns(columns: tuple[int, ...], counts: IntArray) -> IntArray:
    """Return the asked clusters; each must have records, for an empty one has no centre."""
    rising = columns and list(columns) == sorted(set(columns)) and columns[-1] < len(counts)
    if not rising or not counts[list(columns)].all():
        raise RemoteProtocolError("columns must be of clusters that have records, by rising number; they are not.")
    return np.array(columns, dtype="<i8")
