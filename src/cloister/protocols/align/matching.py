"""The coordinator's own work: find equal points in the fully blinded lists and give them places."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.errors import RemoteProtocolError
from cloister.protocols.align.blinding import POINT_BYTES
from cloister.protocols.align.terms import Mode
from cloister.records import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Matching:
    """Where every point of every list stands; -1 for those without a place."""

    places: tuple[IntArray, ...]
    count: int
    digest: bytes
    """Of the placed points in their order."""


def match_lists(lists: Sequence[bytes], mode: Mode, stream: Stream) -> Matching:
    """Give the points that all lists hold, or any does, places in a random order.

    The order must be random, and not that of the points or of their first appearance: parties see their own places, and
    the first list's points at the lowest ones would say which of them the first party holds.

    Raises
    ------
    RemoteProtocolError
        If a list holds a point twice: its owner, or someone on the way, repeated an ID.
    """
    # Text of a fixed width compares as its bytes do: nothing is lost by NumPy's padding with zeros.
    points = np.frombuffer(b"".join(lists), dtype=f"S{POINT_BYTES}")
    distinct, which, holders = np.unique(points, return_inverse=True, return_counts=True)
    ends = np.cumsum([len(points_) // POINT_BYTES for points_ in lists])
    parts = np.split(which.reshape(-1), ends[:-1])
    for owner, part in enumerate(parts, start=1):
        if np.unique(part).size != part.size:
            raise RemoteProtocolError(
                f"the IDs of a list must differ; some in the list of party {owner} repeat. Start again; if it "
                "happens again, one of the parties runs another program."
            )
    chosen = holders == len(lists) if mode is Mode.INTERSECTION else np.ones(distinct.size, dtype=np.bool_)
    count = int(np.count_nonzero(chosen))
    order = stream.permutation(count)
    place = np.full(distinct.size, -1, dtype=np.int64)
    place[chosen] = order
    placed = np.empty(count, dtype=points.dtype)
    placed[order] = distinct[chosen]
    return Matching(
        places=tuple(place[part] for part in parts), count=count, digest=hashlib.sha256(placed.tobytes()).digest()
    )
