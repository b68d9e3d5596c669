"""What all parties of a secure sum agree on: who takes part, which masks, and how many must be in every sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloister.aggregation.statements import CHECK_BITS, DIGEST_BYTES, count_check_words
from cloister.crypto.identity import SIGNATURE_BYTES
from cloister.crypto.sealing import TAG_BYTES
from cloister.crypto.secret_sharing import SECRET_BYTES, SHARE_BYTES
from cloister.errors import ConfigError
from cloister.numeric import Ring

MaskKind = Literal["double", "common"]
_BOX_BYTES = 8  # party number and MessagePack around a box
OPENING_BYTES = SECRET_BYTES + TAG_BYTES
VOTE_BYTES = SIGNATURE_BYTES + TAG_BYTES


def least_quorum(parties: int, colluding_max: int) -> int:
    """Return the least q with 2q > n + t: any two quorums have an honest party in common."""
    return (parties + colluding_max) // 2 + 1


@dataclass(frozen=True, kw_only=True)
class SumTerms:
    """The public side of the sums of one session.

    Parameters
    ----------
    digest
        Of everything that was agreed, these terms among it; parties with another digest refuse.
    directory
        The identity of each party, in order.
    ring
        Where the sums live; wide enough for them, noise included.
    members_min
        q: a sum is over at least so many parties, and a result is one that so many have voted for.
    masks
        Double masks, or masks from the common seed, which the coordinator and any one party together can remove.
    colluding_max
        t: so many parties may collude with an active coordinator. Double masks only, where 2q > n + t must hold.
    restores
        Whether the mask of a member that answered and vanished can be restored, where fewer than all must take part.
    """

    digest: bytes
    directory: tuple[bytes, ...]
    ring: Ring
    members_min: int
    masks: MaskKind = "double"
    colluding_max: int = 0
    restores: bool = True

    def __post_init__(self) -> None:
        least = least_quorum(self.parties, self.colluding_max)
        if self.masks == "double" and not least <= self.members_min <= self.parties:
            raise ConfigError(
                f"a sum with double masks among {self.parties} parties, {self.colluding_max} of them colluding, must "
                f"be over at least {least} of them, so that no two sums of a round are opened; got members_min = "
                f"{self.members_min}. Raise min_parties, or let fewer parties collude."
            )

    @property
    def parties(self) -> int:
        """n: how many there are."""
        return len(self.directory)

    @property
    def double(self) -> bool:
        """Whether masks are double."""
        return self.masks == "double"

    @property
    def shares_masks(self) -> bool:
        """Whether members give out shares of their masks: not where everybody must stay anyway."""
        return self.double and self.restores and self.members_min < self.parties

    @property
    def restorers(self) -> int:
        """How many shares restore a mask: more than may collude."""
        return self.colluding_max + 1

    @property
    def check_words(self) -> int:
        """How many words stand behind a vector."""
        return count_check_words(self.ring)

    def body_bytes(self, length: int) -> int:
        """The bytes of a vector with its check words."""
        return (length * self.ring.bits + CHECK_BITS) // 8

    @property
    def opening_bytes(self) -> int:
        """The most bytes that travel with a total besides its body."""
        if not self.double:
            return self.parties // 8 + 64
        openings = self.parties * (OPENING_BYTES + _BOX_BYTES)
        shares = self.restorers * (self.parties * SHARE_BYTES + TAG_BYTES + _BOX_BYTES) if self.shares_masks else 0
        return openings + shares + self.parties // 8 + DIGEST_BYTES + 64

    @property
    def vote_bytes(self) -> int:
        """The bytes of everybody's votes."""
        return self.parties * (VOTE_BYTES + _BOX_BYTES)
