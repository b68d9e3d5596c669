"""A seed that every party knows and the coordinator does not (the thesis assumes one in 2.2.1).

::

    step 1  coordinator → all      OpenSession(digest of the agreement)     ← SessionOpened(signed session key)
    step 2  coordinator → leader   ShareSeed(all signed keys)               ← SealedSeeds(one box per other party)
    step 3  coordinator → others   TakeSeed(leader's key, own box)          ← Ready

The leader is the first party that answers; if it drops out in step 2 the next one leads. Keys are signed by identities
that are part of the agreement and boxes are authenticated by their sender, so a coordinator that replaces a key or
forges a box is noticed. Parties whose agreement differs (other bounds, other k, ...) refuse in step 1.
A party that misses a step is out for the session: it has no seed.
"""

from __future__ import annotations

from msgspec import Struct

from cloister.crypto import OVERHEAD_BYTES, Entropy, Identity, SessionKey, SignedSessionKey, open_box, seal_box
from cloister.errors import RemoteProtocolError
from cloister.roles import Ask, Check, Coordinator, Dropped, Message, PartyNumber, expect, require_members

SEED_BYTES = 32
_BOX_BYTES = SEED_BYTES + OVERHEAD_BYTES
STEPS = 3


class OpenSession(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """Asks whether we run the same job."""

    agreement: bytes


class ShareSeed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """To the leader: draw a seed and seal it to these."""

    keys: tuple[SignedSessionKey, ...]


class TakeSeed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """To everyone else: the seed, sealed by the leader."""

    leader_key: SignedSessionKey
    box: bytes


class SessionOpened(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """We do; here is my key for the session."""

    key: SignedSessionKey


class SealedSeed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The seed for one recipient."""

    recipient: PartyNumber
    box: bytes


class SealedSeeds(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """The seed for all others."""

    boxes: tuple[SealedSeed, ...]


class Ready(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """Done as asked; there is nothing to report."""


class SeedHolder:
    """A party's side of the agreement; ``seed`` is ``None`` until it is agreed."""

    def __init__(
        self,
        *,
        number: int,
        identity: Identity,
        directory: tuple[bytes, ...],
        agreement: bytes,
        session: bytes,
        entropy: Entropy,
    ) -> None:
        self._number = number
        self._identity = identity
        self._directory = directory
        self._agreement = agreement
        self._session = session
        self._entropy = entropy
        self._key: SessionKey | None = None
        self.seed: bytes | None = None

    def handle(self, request: Message) -> Message:
        """Answer one of the three requests; anything else is out of place."""
        if self.seed is None:
            if isinstance(request, OpenSession) and self._key is None:
                return self._open(request)
            if isinstance(request, ShareSeed) and self._key is not None:
                return self._share(request, self._key)
            if isinstance(request, TakeSeed) and self._key is not None:
                return self._take(request, self._key)
        raise RemoteProtocolError(
            f"a session opens with OpenSession, then ShareSeed or TakeSeed, each once; got {type(request).__name__} "
            "out of turn."
        )

    def exchange_with_peers(self, keys: tuple[SignedSessionKey, ...]) -> dict[int, bytes]:
        """Return the Diffie-Hellman secret with each other party whose signed key the coordinator relayed."""
        if self._key is None:
            raise RemoteProtocolError("keys of other parties must come after our own was given out; these do not.")
        self._check_keys(keys)
        return {key.owner: self._key.exchange(key.public_key) for key in keys if key.owner != self._number}

    def _open(self, request: OpenSession) -> SessionOpened:
        check_agreement(request, self._agreement)
        key = SessionKey(self._entropy)
        signed = self._identity.sign_session_key(key, self._session, self._number)
        self._key = key
        return SessionOpened(signed)

    def _share(self, request: ShareSeed, key: SessionKey) -> SealedSeeds:
        self._check_keys(request.keys)
        seed = self._entropy.bytes(SEED_BYTES)
        boxes = tuple(
            SealedSeed(
                signed.owner,
                seal_box(
                    seed,
                    sender=key,
                    recipient=signed.public_key,
                    context=_context(self._session, self._number, signed.owner),
                    entropy=self._entropy,
                ),
            )
            for signed in request.keys
            if signed.owner != self._number
        )
        self.seed = seed
        return SealedSeeds(boxes)

    def _take(self, request: TakeSeed, key: SessionKey) -> Ready:
        leader = request.leader_key
        if leader.owner == self._number:
            raise RemoteProtocolError("the leader must be another party; got our own number.")
        self._verify(leader)
        seed = open_box(
            request.box,
            recipient=key,
            sender=leader.public_key,
            context=_context(self._session, leader.owner, self._number),
        )
        if len(seed) != SEED_BYTES:
            raise RemoteProtocolError(f"a common seed must have {SEED_BYTES} bytes; got {len(seed)}.")
        self.seed = seed
        return Ready()

    def _check_keys(self, keys: tuple[SignedSessionKey, ...]) -> None:
        owners = [signed.owner for signed in keys]
        if sorted(set(owners)) != owners or self._number not in owners:
            raise RemoteProtocolError(
                "the keys must be listed once each by rising party number, ours among them; they are not."
            )
        for signed in keys:
            self._verify(signed)

    def _verify(self, signed: SignedSessionKey) -> None:
        if not 1 <= signed.owner <= len(self._directory):
            raise RemoteProtocolError(
                f"a key's owner must be a party from 1 to {len(self._directory)}; got {signed.owner}."
            )
        signed.verify(self._directory[signed.owner - 1], self._session)


def check_agreement(request: OpenSession, agreement: bytes) -> None:
    """Refuse a session whose public parameters are not the ones this party agreed to."""
    if request.agreement != agreement:
        raise RemoteProtocolError(
            "the session's agreement must have the digest of ours; it differs. "
            "Compare the job files: columns, bounds, clusters, protocol, parties."
        )


def _context(session: bytes, sender: int, recipient: int) -> tuple[bytes, str, int, int]:
    return (session, "common seed", sender, recipient)


def agree_on_seed_and_keys(
    *, agreement: bytes, directory: tuple[bytes, ...], session: bytes, members_min: int, steps: int
) -> Coordinator[tuple[SignedSessionKey, ...]]:
    """Coordinator's side: relay keys and boxes; returns the signed session keys of who holds the seed, by number.

    It checks the keys that it relays, so that a bad key drops its owner and not every leader that refuses it.
    """
    parties = len(directory)
    answers = yield Ask(
        label="opening the session",
        requests={party: OpenSession(agreement) for party in range(1, parties + 1)},
        check=_opened_by(directory, session),
        steps=steps,
    )
    keys = {p: r.key for p, r in sorted(answers.items()) if isinstance(r, SessionOpened)}
    while True:
        require_members(len(keys), members_min, parties)
        leader = next(iter(keys))
        answers = yield Ask(
            label=f"party {leader} seals the common seed to the others",
            requests={leader: ShareSeed(tuple(keys.values()))},
            check=_boxes_for(set(keys) - {leader}),
            steps=steps,
        )
        sealed = answers[leader]
        if isinstance(sealed, SealedSeeds):
            break
        del keys[leader]  # dropped out: the next one leads
    answers = yield Ask(
        label="handing out the sealed seed",
        requests={item.recipient: TakeSeed(keys[leader], item.box) for item in sealed.boxes},
        check=expect(Ready),
        steps=steps,
    )
    members = (leader, *(p for p, reply in sorted(answers.items()) if not isinstance(reply, Dropped)))
    require_members(len(members), members_min, parties)
    return tuple(keys[member] for member in sorted(members))


def _opened_by(directory: tuple[bytes, ...], session: bytes) -> Check:
    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, SessionOpened) or reply.key.owner != party:
            raise RemoteProtocolError(f"party {party} must open the session with its own key; it did not.")
        reply.key.verify(directory[party - 1], session)

    return check


def _boxes_for(recipients: set[int]) -> Check:
    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, SealedSeeds):
            raise RemoteProtocolError(f"party {party} must answer with SealedSeeds; got {type(reply).__name__}.")
        listed = [item.recipient for item in reply.boxes]
        sizes = {len(item.box) for item in reply.boxes}
        if len(listed) != len(set(listed)) or set(listed) != recipients or not sizes <= {_BOX_BYTES}:
            raise RemoteProtocolError(
                f"party {party} must seal one box to each of {len(recipients)} others; it did not."
            )

    return check
