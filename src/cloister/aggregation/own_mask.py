"""Own masks: what keeps a sum closed until its members agree that it is the one of the round.

Pairwise pads cancel as soon as all members' vectors are added up. If an attempt fails because a reply came late,
whoever reads that reply has the sum over all, and after the next attempt the sum without the late party: the difference
is that party's vector. So every party also adds a mask of its own, drawn for the attempt from a secret of the session,
and reveals the mask's key only for the one attempt that all members answered. The secrets are shared among the parties
(:mod:`cloister.crypto.secret_sharing`): the mask of a party that leaves before it reveals its key can be restored.

This is the double masking of Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning"
(CCS 2017), with sums that are all or nothing, so that pads never need restoring.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from cloister.crypto import Stream, derive_key
from cloister.crypto.stream import Context
from cloister.numeric import Ring

MASK_KEY_BYTES = 32


def derive_mask_key(secret: bytes, session: bytes, *context: Context) -> bytes:
    """Return the key of one attempt's mask; it tells nothing of the secret or of another attempt's key."""
    return derive_key(secret, "own mask", session, *context)


def expand_mask(mask_key: bytes, length: int, ring: Ring) -> NDArray[Any]:
    """Return the mask itself, uniform over the ring."""
    return Stream(mask_key).words(length, ring.dtype)
