"""Opening a finished sum: remove every member's own mask. The pads are gone already: they cancel in the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import pack_members, unpack_members
from cloister.aggregation.pairwise_pads import MASK_KEY_BYTES, expand_mask
from cloister.crypto.secret_sharing import combine_shares
from cloister.errors import RemoteProtocolError
from cloister.protocols.serverless.keyring import Keyring, cut_shares
from cloister.protocols.serverless.messages import Attempt, Parcel, Total
from cloister.protocols.serverless.terms import Terms
from cloister.records import IntArray


@dataclass(frozen=True, kw_only=True)
class OpenedTotal:
    """The sum of one round and how many are in it."""

    round: int
    total: IntArray
    members: int


def read_members(bitmap: bytes, terms: Terms, keyring: Keyring) -> tuple[int, ...]:
    """Return who is in an attempt; refuses too few, and parties that we never met."""
    members = unpack_members(bitmap, terms.parties)
    if len(members) < terms.members_min or not keyring.known.issuperset(members):
        raise RemoteProtocolError(
            f"a sum must be over at least {terms.members_min} parties that were introduced; got {len(members)}, "
            f"{len(keyring.known.intersection(members))} of them introduced."
        )
    return members


def read_vector(plaintext: bytes, terms: Terms) -> NDArray[Any]:
    """Return the ring elements of an opened box."""
    words = np.dtype(terms.ring.dtype).newbyteorder("<")
    if len(plaintext) != terms.length * words.itemsize:
        raise RemoteProtocolError(f"a vector must have {terms.length * words.itemsize} bytes; got {len(plaintext)}.")
    return np.frombuffer(plaintext, dtype=words).astype(terms.ring.dtype, copy=False)


def write_vector(vector: NDArray[Any]) -> bytes:
    """Undo :func:`read_vector`."""
    return vector.astype(vector.dtype.newbyteorder("<"), copy=False).tobytes()


def open_total(total: Total, terms: Terms, keyring: Keyring) -> OpenedTotal:
    """Return the sum in the clear; raises :class:`RemoteProtocolError` if anything does not fit its attempt."""
    attempt = total.attempt
    members = read_members(attempt.members, terms, keyring)
    elements = read_vector(keyring.open(total.box, "sum", attempt, sender=members[-1]), terms)
    revealed = _senders(total.reveals, members)
    keys = [keyring.open(parcel.box, "mask key", attempt, sender=parcel.party) for parcel in total.reveals]
    missing = tuple(member for member in members if member not in revealed)
    keys += _restore_keys(total.recoveries, missing, attempt, members, terms, keyring)
    if any(len(key) != MASK_KEY_BYTES for key in keys):
        raise RemoteProtocolError(f"a mask's key must have {MASK_KEY_BYTES} bytes; some have not.")
    for key in keys:
        elements = elements - expand_mask(key, terms.length, terms.ring)
    return OpenedTotal(round=attempt.round, total=terms.ring.decode(elements), members=len(members))


def _restore_keys(
    recoveries: tuple[Parcel, ...],
    missing: tuple[int, ...],
    attempt: Attempt,
    members: tuple[int, ...],
    terms: Terms,
    keyring: Keyring,
) -> list[bytes]:
    """The mask keys of members that left before they revealed them, from the others' shares."""
    holders = _senders(recoveries, members)
    if len(holders) != (keyring.restorers if missing else 0):
        raise RemoteProtocolError(
            f"masks of {len(missing)} members must be restored by {keyring.restorers if missing else 0} others; "
            f"got {len(holders)}."
        )
    asked = pack_members(missing, terms.parties)
    cuts = {
        parcel.party: cut_shares(keyring.open(parcel.box, "shares", attempt, sender=parcel.party, detail=asked))
        for parcel in recoveries
    }
    if any(len(shares) != len(missing) for shares in cuts.values()):
        raise RemoteProtocolError(f"each must give {len(missing)} shares; some gave another number.")
    return [
        keyring.mask_key_of(owner, combine_shares({p: shares[at] for p, shares in cuts.items()}), attempt)
        for at, owner in enumerate(missing)
    ]


def _senders(parcels: tuple[Parcel, ...], members: tuple[int, ...]) -> frozenset[int]:
    """Who sent these; each must be a member, once, by rising number."""
    numbers = [parcel.party for parcel in parcels]
    if sorted(set(numbers)) != numbers or not set(numbers) <= set(members):
        raise RemoteProtocolError("parcels must come from members, once each, by rising number; they do not.")
    return frozenset(numbers)
