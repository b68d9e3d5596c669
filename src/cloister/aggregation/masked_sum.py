"""Masked secure aggregation (thesis 2.2, table 2.1; FastLloyd 5.2.4, figure 2).

All parties hold one seed. In round t party l sends v_l + r_{t,l} in the ring; the coordinator adds what arrives and
returns the sum with the list of who is in it; every party subtracts the masks of exactly those. So a party that drops
out is simply not in the sum and not in the mask sum.

Who sees what: to the coordinator every vector is a one-time pad over the whole ring. A party sees the sum. A party that
also sees the coordinator's view can remove every mask, since all know the seed: **the coordinator together with any one
party learns every term**. With two parties in a sum, each can subtract itself and has the other's term.

The masks: ChaCha20 under a key derived from (seed, session), with nonce (round, party). A key is never used for two
sessions and a nonce never for two vectors; a repeated request gets the first answer again, byte for byte
(wire.endpoint).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct
from numpy.typing import NDArray

from cloister.crypto import Stream, derive_key
from cloister.errors import RemoteProtocolError
from cloister.numeric import Ring
from cloister.wire import Array


class Aggregate(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the coordinator returns of one round: the masked sum and who is in it."""

    round: Annotated[int, Meta(ge=1, lt=2**31)]
    members: bytes
    masked_sum: Array


def pack_members(members: Iterable[int], parties: int) -> bytes:
    """Write a set of party numbers 1..parties as a bitmap."""
    bits = 0
    for member in members:
        bits |= 1 << (member - 1)
    return bits.to_bytes((parties + 7) // 8, "little")


def unpack_members(bitmap: bytes, parties: int) -> tuple[int, ...]:
    """Read a bitmap; refuses a wrong length and bits beyond the last party."""
    bits = int.from_bytes(bitmap, "little")
    if len(bitmap) != (parties + 7) // 8 or bits >> parties:
        raise RemoteProtocolError(
            f"a member list must be a bitmap of {parties} parties; got {len(bitmap)} bytes"
            f"{' with bits beyond the last party' if bits >> parties else ''}."
        )
    return tuple(number for number in range(1, parties + 1) if bits >> (number - 1) & 1)


def sum_masked(
    vectors: Mapping[int, NDArray[Any]],
    ring: Ring,
    *,
    round_: int,
    parties: int,
    plain_addition: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
) -> Aggregate:
    """Add the masked vectors of the parties that answered (thesis 2.2.1, step 3).

    ``plain_addition`` is the optional step 4: what the coordinator adds to the sum that it cannot read, such as noise.
    """
    total = ring.sum([vectors[party] for party in sorted(vectors)])
    if plain_addition is not None:
        total = plain_addition(total)
    return Aggregate(round_, pack_members(vectors, parties), Array.of(total))


class MaskSchedule:
    """One party's view of the common masks of one session."""

    __slots__ = ("_key", "_length", "_parties", "_ring")

    def __init__(self, seed: bytes, *, session: bytes, ring: Ring, length: int, parties: int) -> None:
        self._key = derive_key(seed, "mask", session, ring.bits)
        self._ring = ring
        self._length = length
        self._parties = parties

    def mask_of(self, round_: int, party: int) -> NDArray[Any]:
        """The mask r_{t,l}: uniform over the ring, one stream for each (session, round, party)."""
        nonce = round_.to_bytes(8, "little") + party.to_bytes(4, "little")
        return Stream(self._key, nonce).words(self._length, self._ring.dtype)

    def mask(self, values: NDArray[Any], round_: int, party: int) -> NDArray[Any]:
        """Enc_l(v) = v + r_{t,l} (thesis 2.2.1, step 2); ``values`` are ring elements."""
        masked: NDArray[Any] = values + self.mask_of(round_, party)
        return masked

    def unmask(self, aggregate: Aggregate, *, members_min: int) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Subtract the masks of exactly the members (step 5); returns ring elements and the members.

        Raises
        ------
        RemoteProtocolError
            If the aggregate is malformed, or sums fewer than ``members_min`` parties: a smaller sum would show more of
            one party than was agreed.
        """
        members = unpack_members(aggregate.members, self._parties)
        if len(members) < members_min:
            raise RemoteProtocolError(
                f"a sum must be over at least {members_min} parties to be unmasked; got {len(members)}."
            )
        total = aggregate.masked_sum.to_numpy(self._ring.dtype, self._length)
        return total - self._ring.sum([self.mask_of(aggregate.round, member) for member in members]), members
