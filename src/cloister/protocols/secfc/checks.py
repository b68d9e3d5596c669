"""What a valid reply is, as far as the coordinator can see; a client that sends anything else counts as silent."""

from __future__ import annotations

import numpy as np

from cloister.crypto.sealing import TAG_BYTES
from cloister.errors import RemoteProtocolError
from cloister.protocols.secfc.agreement import SecfcAgreement
from cloister.protocols.secfc.centres import count_box_bytes
from cloister.protocols.secfc.layout import Layout
from cloister.protocols.secfc.messages import HeldRecords, Measured, SealedShares, SumShares
from cloister.protocols.secfc.words import WORD_BYTES
from cloister.roles import Check, Message


def expect_count(agreement: SecfcAgreement) -> Check:
    """Return a check that a client says how many rows it shares."""

    def check(party: int, reply: Message) -> None:
        union_differs = agreement.union and isinstance(reply, HeldRecords) and reply.records != agreement.records_max
        if not isinstance(reply, HeldRecords) or union_differs:
            raise RemoteProtocolError(f"party {party} must say how many rows it shares, as agreed; it does not.")

    return check


def expect_shares(chunk: int, layout: Layout, agreement: SecfcAgreement) -> Check:
    """Return a check of one chunk: a box for each other owner, of the right length, from who has rows in it."""
    word_bytes = WORD_BYTES * agreement.field.residues * agreement.width
    everyone = [owner.party for owner in layout.owners]

    def check(party: int, reply: Message) -> None:
        rows = layout.count_in(party, chunk)
        holders = [other for other in everyone if other != party] if rows else []
        box_bytes = rows * word_bytes + TAG_BYTES
        if (
            not isinstance(reply, SealedShares)
            or [parcel.party for parcel in reply.parcels] != holders
            or any(len(parcel.box) != box_bytes for parcel in reply.parcels)
        ):
            raise RemoteProtocolError(
                f"party {party} must seal the shares of {rows} records to each of {len(holders)} others; it did not."
            )

    return check


def expect_distances(agreement: SecfcAgreement, records: int, columns: int) -> Check:
    """Return a check of coded distances: shape, and every word an element."""

    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, Measured):
            raise RemoteProtocolError(f"party {party} must answer with distances; got {type(reply).__name__}.")
        values = reply.values.to_numpy(np.uint64, agreement.field.residues, records, columns)
        agreement.field.check_received(values, (records, columns), what=f"distances of party {party}")

    return check


def expect_sums(agreement: SecfcAgreement) -> Check:
    """Return a check of a sealed share of the sums: its length is all that can be checked."""

    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, SumShares) or len(reply.box) != count_box_bytes(agreement):
            raise RemoteProtocolError(
                f"party {party} must seal its share of the sums in {count_box_bytes(agreement)} bytes; it did not."
            )

    return check
