"""Revealed centres: l + t clients' shares of the clusters' sums, opened by every client (section 7).

The shares travel in boxes under the seed that the clients know and the coordinator does not. A sum is linear in the
records, so it is coded as a record is: l + t shares give it back, and what they show beyond it is noise.
"""

from __future__ import annotations

import numpy as np

from cloister.crypto.sealing import TAG_BYTES, open_keyed
from cloister.crypto.stream import Context
from cloister.errors import RemoteProtocolError
from cloister.protocols.secfc.agreement import SecfcAgreement
from cloister.protocols.secfc.labels import LabelBook
from cloister.protocols.secfc.messages import Parcel
from cloister.protocols.secfc.words import WORD_BYTES, read_words
from cloister.records import IntArray


def name_sum_share(session: bytes, sender: int, owners: bytes, book: LabelBook) -> tuple[Context, ...]:
    """Return the context of one client's box; it seals one in a session."""
    return (session, "sum shares", sender, owners, book.digest)


def count_box_bytes(agreement: SecfcAgreement) -> int:
    """Return the length of a box with one client's share of the sums."""
    return WORD_BYTES * agreement.field.residues * agreement.clusters * agreement.width + TAG_BYTES


def open_sums(
    parcels: tuple[Parcel, ...],
    agreement: SecfcAgreement,
    *,
    seed: bytes,
    session: bytes,
    owners: bytes,
    book: LabelBook,
) -> IntArray:
    """Return the exact sums (k, d), on the integer grid, from l + t clients' boxes."""
    senders = [parcel.party for parcel in parcels]
    within = senders and senders[-1] <= agreement.parties
    if len(senders) != agreement.code.holders or senders != sorted(set(senders)) or not within:
        raise RemoteProtocolError(
            f"sums must come from {agreement.code.holders} clients, once each, by rising number; got {len(senders)}."
        )
    shape = (agreement.clusters, agreement.width)
    opened = (open_keyed(parcel.box, seed, *name_sum_share(session, parcel.party, owners, book)) for parcel in parcels)
    shares = np.stack([read_words(plain, agreement.field, shape, what="shares of sums") for plain in opened])
    return agreement.field.decode(agreement.code.reveal(senders, shares, agreement.dimensions))
