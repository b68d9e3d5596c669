"""A party's side of the introduction: the common seed, a secret with each other party, shares of all mask secrets.

::

    steps 1-3  the common seed and signed session keys (aggregation.seed_agreement)
    step 4     relay → all   MeetPeers(all signed keys)       ← DealtShares(a share of our mask secret for each other)
    step 5     relay → all   KeepShares(the others' for us)   ← Ready

Shares travel under the secret of the two parties, which rests on keys signed by identities in the directory.
"""

from __future__ import annotations

from cloister.aggregation import SeedHolder
from cloister.aggregation.pairwise_pads import MASK_KEY_BYTES
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy, Identity
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.secret_sharing import SHARE_BYTES, split_secret
from cloister.errors import RemoteProtocolError
from cloister.protocols.serverless.keyring import Keyring
from cloister.protocols.serverless.messages import DealtShares, KeepShares, MeetPeers, Parcel
from cloister.protocols.serverless.terms import Terms
from cloister.roles import Message

_PURPOSE = "mask share"


class Introduction:
    """Answers the first five steps; ``keyring`` is ``None`` until they are done."""

    def __init__(self, *, number: int, terms: Terms, identity: Identity, entropy: Entropy, session: bytes) -> None:
        self._number = number
        self._terms = terms
        self._entropy = entropy
        self._session = session
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=terms.directory,
            agreement=terms.digest,
            session=session,
            entropy=entropy,
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
                Parcel(other, seal_keyed(shares[other], secret, self._session, _PURPOSE, self._number, other))
                for other, secret in secrets.items()
            )
        )

    def _keep(self, request: KeepShares, seed: bytes) -> Ready:
        senders = [parcel.party for parcel in request.shares]
        if sorted(set(senders)) != senders or not set(senders) <= self._pair_secrets.keys():
            raise RemoteProtocolError("shares must come once each, by rising number, from parties we met; they do not.")
        kept = {
            parcel.party: open_keyed(
                parcel.box, self._pair_secrets[parcel.party], self._session, _PURPOSE, parcel.party, self._number
            )
            for parcel in request.shares
        }
        if any(len(share) != SHARE_BYTES for share in kept.values()):
            raise RemoteProtocolError(f"a share must have {SHARE_BYTES} bytes; some have not.")
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
