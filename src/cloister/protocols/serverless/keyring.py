"""What a party holds once it has met the others: every key, and one place for what each key is used on.

All of it is bound to (session, round, attempt, members): a box, pad or mask of one attempt is of no use in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from cloister.aggregation.pairwise_pads import PairwisePads, derive_mask_key, expand_mask
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.secret_sharing import SHARE_BYTES
from cloister.crypto.stream import Context
from cloister.numeric import Ring
from cloister.protocols.serverless.messages import Attempt


class Keyring:
    """One party's secrets of one session.

    Parameters
    ----------
    number, session, ring
        Who we are, which session, where vectors live.
    seed
        Known to all parties and not to the relay.
    pair_secrets
        With each other party, known to the two of us.
    mask_secret, kept_shares
        What our own masks come from, and our share of each other party's.
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
        """Ourselves and the parties whose shares we keep: the only ones a sum may be over."""
        return frozenset((self._number, *self._kept_shares))

    def seal(self, plaintext: bytes, purpose: str, attempt: Attempt, detail: Context = 0) -> bytes:
        """Seal one message of ours to the group; one for each purpose, attempt and detail."""
        return seal_keyed(plaintext, self.seed, *self._context(purpose, attempt, self._number, detail))

    def open(self, box: bytes, purpose: str, attempt: Attempt, *, sender: int, detail: Context = 0) -> bytes:
        """Open what a member sealed to the group."""
        return open_keyed(box, self.seed, *self._context(purpose, attempt, sender, detail))

    def blind(self, attempt: Attempt, members: Iterable[int], length: int) -> NDArray[Any]:
        """Return pad + own mask: what is added to our vector in this attempt, uniform to everybody else."""
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
