"""Which parties a round asks, where it does not ask all: a public sample, the same for whoever computes it.

The sample follows from what was agreed and from the session's number alone: no party can choose it, and it tells
nothing of any record. Since everyone knows it, nothing is gained for privacy ("amplification by sampling" needs a
sample that is secret): a party in every round's sample is charged as without sampling, another for fewer rounds.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cloister.crypto import Stream, derive_key


def sample_key(digest: bytes, session: bytes) -> bytes:
    """The public key of a session's samples."""
    return derive_key(digest, "public sample", session)


@lru_cache(maxsize=64)
def sample_parties(key: bytes, round_: int, *, parties: int, size: int) -> tuple[int, ...]:
    """Return ``size`` of the numbers 1..parties, every set equally likely, in order."""
    ranks = Stream(key).child(round_).uniform(parties)
    chosen = np.argsort(ranks, kind="stable")[:size] + 1
    return tuple(np.sort(chosen).tolist())
