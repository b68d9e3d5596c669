"""A party's keys: how it gets them, what each is used for, and how they open a finished sum.

Introduction::

    steps 1-3  the common seed and signed session keys (aggregation.seed_agreement)
    step 4     relay → all   MeetPeers(all signed keys)       ← DealtShares(a share of our mask secret for each other)
    step 5     relay → all   KeepShares(the others' for us)   ← Ready

Shares are sealed under the secret of two parties, derived from keys signed by identities in the directory. From then
on, everything is bound to (session, round, attempt, members): a box, pad or mask of one attempt is useless in another.
To open a finished sum, every member's own mask is removed. The pads are gone already: they cancel in the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import SeedHolder, pack_members, unpack_members
from cloister.aggregation.pairwise_pads import MASK_KEY_BYTES, PairwisePads, derive_mask_key, expand_mask
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import SHARE_BYTES, Context, combine_shares, open_keyed, seal_keyed, split_secret
from cloister.errors import RemoteProtocolError
from cloister.numeric import Ring
from cloister.protocols.serverless.messages import Attempt, DealtShares, KeepShares, MeetPeers, PartyBox, Total
from cloister.protocols.serverless.terms import Terms
from cloister.records import IntArray
from cloister.roles import Message, Seat

_PURPOSE = "mask share"


class Keyring:
    """One party's secrets of one session.

    Parameters
    ----------
    number, session, ring
        This party's number, the session's ID, and the ring of the vectors.
    seed
        Known to all parties and not to the relay.
    pair_secrets
        With each other party, known to the two of us.
    mask_secret, kept_shares
        The source of our own masks, and our share of each other party's.
    restorers
        How many parties' shares restore a mask secret.
    """

    def __init__(
        self,
        *,
        number: int,
        session: bytes,
        ring: Ring,
        seed: bytes,
        pair_secrets: Mapping[int, bytes],
        mask_secret: bytes,
        kept_shares: Mapping[int, bytes],
        restorers: int,
    ) -> None:
        self._number = number
        self._session = session
        self._ring = ring
        self.seed = seed
        self.restorers = restorers
        self._mask_secret = mask_secret
        self._kept_shares = dict(kept_shares)
        self._pads = PairwisePads(number=number, secrets=pair_secrets, session=session, ring=ring)

    @property
    def known(self) -> frozenset[int]:
        """Ourselves and the parties whose shares we keep: the only ones that a sum may include."""
        return frozenset((self._number, *self._kept_shares))

    def seal(self, plaintext: bytes, purpose: str, attempt: Attempt, detail: Context = 0) -> bytes:
        """Seal one message of ours to the group; one for each purpose, attempt and detail."""
        return seal_keyed(plaintext, self.seed, *self._context(purpose, attempt, self._number, detail))

    def open(self, box: bytes, purpose: str, attempt: Attempt, *, sender: int, detail: Context = 0) -> bytes:
        """Open what a member sealed to the group."""
        return open_keyed(box, self.seed, *self._context(purpose, attempt, sender, detail))

    def blind(self, attempt: Attempt, members: Iterable[int], length: int) -> NDArray[Any]:
        """Return pad + own mask, which blinds our vector in this attempt; it is uniform to everybody else."""
        pad = self._pads.pad(members, length, attempt.round, attempt.number)
        blind: NDArray[Any] = pad + expand_mask(self.own_mask_key(attempt), length, self._ring)
        return blind

    def own_mask_key(self, attempt: Attempt) -> bytes:
        """Return the key of our own mask in this attempt."""
        return self.mask_key_of(self._number, self._mask_secret, attempt)

    def mask_key_of(self, owner: int, mask_secret: bytes, attempt: Attempt) -> bytes:
        """Return the key of a party's mask from its restored secret."""
        return derive_mask_key(mask_secret, self._session, owner, attempt.round, attempt.number, attempt.members)

    def shares_of(self, owners: Iterable[int]) -> bytes:
        """Our shares of these parties' mask secrets, one after the other."""
        return b"".join(self._kept_shares[owner] for owner in owners)

    def _context(self, purpose: str, attempt: Attempt, sender: int, detail: Context) -> tuple[Context, ...]:
        return (self._session, purpose, attempt.round, attempt.number, attempt.members, sender, detail)


def cut_shares(joined: bytes) -> tuple[bytes, ...]:
    """Undo :meth:`Keyring.shares_of`."""
    return tuple(joined[at : at + SHARE_BYTES] for at in range(0, len(joined), SHARE_BYTES))


class Introduction:
    """Answers the first five steps; ``keyring`` is ``None`` until they are done."""

    def __init__(self, *, seat: Seat, terms: Terms) -> None:
        self._number = seat.number
        self._terms = terms
        self._entropy = seat.entropy
        self._session = seat.session
        self._seed_holder = SeedHolder(
            number=seat.number,
            identity=seat.identity,
            directory=terms.directory,
            agreement=terms.digest,
            session=seat.session,
            entropy=seat.entropy,
        )
        self._pair_secrets: dict[int, bytes] = {}
        self._mask_secret = b""
        self.keyring: Keyring | None = None

    def handle(self, request: Message) -> Message:
        """Answer one request; each comes once."""
        seed = self._seed_holder.seed
        if seed is not None and isinstance(request, MeetPeers) and not self._pair_secrets:
            return self._meet(request)
        if seed is not None and isinstance(request, KeepShares) and self._pair_secrets and self.keyring is None:
            return self._keep(request, seed)
        return self._seed_holder.handle(request)

    def _meet(self, request: MeetPeers) -> DealtShares:
        if len(request.keys) < self._terms.members_min:
            raise RemoteProtocolError(
                f"at least {self._terms.members_min} parties must be introduced; got {len(request.keys)} keys."
            )
        secrets = self._seed_holder.exchange_with_peers(request.keys)
        mask_secret = self._entropy.bytes(MASK_KEY_BYTES)
        shares = split_secret(
            mask_secret,
            threshold=self._terms.count_restorers(len(request.keys)),
            holders=(self._number, *secrets),
            entropy=self._entropy,
        )
        self._pair_secrets, self._mask_secret = secrets, mask_secret
        return DealtShares(
            tuple(
                PartyBox(other, seal_keyed(shares[other], secret, self._session, _PURPOSE, self._number, other))
                for other, secret in secrets.items()
            )
        )

    def _keep(self, request: KeepShares, seed: bytes) -> Ready:
        senders = [share.party for share in request.shares]
        if sorted(set(senders)) != senders or not set(senders) <= self._pair_secrets.keys():
            raise RemoteProtocolError("shares must come once each, by rising number, from parties we met; they do not.")
        kept = {
            share.party: open_keyed(
                share.box, self._pair_secrets[share.party], self._session, _PURPOSE, share.party, self._number
            )
            for share in request.shares
        }
        if any(len(share) != SHARE_BYTES for share in kept.values()):
            raise RemoteProtocolError(f"a share must have {SHARE_BYTES} bytes; some do not.")
        self.keyring = Keyring(
            number=self._number,
            session=self._session,
            ring=self._terms.ring,
            seed=seed,
            pair_secrets=self._pair_secrets,
            mask_secret=self._mask_secret,
            kept_shares=kept,
            restorers=self._terms.count_restorers(1 + len(self._pair_secrets)),
        )
        return Ready()


# --- opening a finished sum ------------------------------------------------------------------------------------------


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
    keys = [keyring.open(reveal.box, "mask key", attempt, sender=reveal.party) for reveal in total.reveals]
    missing = tuple(member for member in members if member not in revealed)
    keys += _restore_keys(total.recoveries, missing, attempt, members, terms, keyring)
    if any(len(key) != MASK_KEY_BYTES for key in keys):
        raise RemoteProtocolError(f"a mask's key must have {MASK_KEY_BYTES} bytes; some do not.")
    for key in keys:
        elements = elements - expand_mask(key, terms.length, terms.ring)
    return OpenedTotal(round=attempt.round, total=terms.ring.decode(elements), members=len(members))


def _restore_keys(
    recoveries: tuple[PartyBox, ...],
    missing: tuple[int, ...],
    attempt: Attempt,
    members: tuple[int, ...],
    terms: Terms,
    keyring: Keyring,
) -> list[bytes]:
    """Return the mask keys of members that left before revealing them, from the others' shares."""
    holders = _senders(recoveries, members)
    if len(holders) != (keyring.restorers if missing else 0):
        raise RemoteProtocolError(
            f"masks of {len(missing)} members must be restored by {keyring.restorers if missing else 0} others; "
            f"got {len(holders)}."
        )
    asked = pack_members(missing, terms.parties)
    cuts = {
        one.party: cut_shares(keyring.open(one.box, "shares", attempt, sender=one.party, detail=asked))
        for one in recoveries
    }
    if any(len(shares) != len(missing) for shares in cuts.values()):
        raise RemoteProtocolError(f"each must give {len(missing)} shares; some gave another number.")
    return [
        keyring.mask_key_of(owner, combine_shares({p: shares[at] for p, shares in cuts.items()}), attempt)
        for at, owner in enumerate(missing)
    ]


def _senders(boxes: tuple[PartyBox, ...], members: tuple[int, ...]) -> frozenset[int]:
    """Who sent these; each must be a member, once, by rising number."""
    numbers = [box.party for box in boxes]
    if sorted(set(numbers)) != numbers or not set(numbers) <= set(members):
        raise RemoteProtocolError("boxes must come from members, once each, by rising number; they do not.")
    return frozenset(numbers)
