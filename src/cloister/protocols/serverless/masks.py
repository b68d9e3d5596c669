"""Double masks in a ring: sums so far, openings and totals travel in boxes that the relay can neither read nor change.

Everything is bound to (session, round, attempt, members): a box, pad or mask of one attempt is of no use in another.
"""

from __future__ import annotations

from cloister.aggregation.double_masks import DoubleMasks
from cloister.aggregation.messages import Attempt, Total
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.stream import Context


class RingMasks(DoubleMasks):
    """One party's masks and boxes of one session."""

    def seal(self, plaintext: bytes, purpose: str, attempt: Attempt, *, sender: int, detail: Context = 0) -> bytes:
        """Seal one message of ours to the group; one for each purpose, attempt and detail."""
        return seal_keyed(plaintext, self.seed, *self.context(purpose, attempt, sender, detail))

    def open(self, box: bytes, purpose: str, attempt: Attempt, *, sender: int, detail: Context = 0) -> bytes:
        """Open what a member sealed to the group."""
        return open_keyed(box, self.seed, *self.context(purpose, attempt, sender, detail))

    def open_body(self, total: Total, members: tuple[int, ...]) -> bytes:
        """Open what the last member passed on."""
        return self.open(total.body, "sum", total.attempt, sender=members[-1])
