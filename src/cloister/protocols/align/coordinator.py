"""The coordinator: it passes the lists around the ring, matches them fully blinded, and sends each party its places.

::

    steps 1-3   the common seed and signed session keys (aggregation.seed_agreement)
    step 4      coordinator → all       MeetRing(all signed keys)      ← RingMet(length of its list, ratios of its keys)
    each part of the lists, each hop h = 0 .. n-1:
                coordinator → carriers  BlindPart(h, part, box)        ← Passed(box for the successor); Delivered at n-1
    each part:  coordinator → owners    TakePlaces(part, places)       ← Ready
    last step   coordinator → all       Finish(count, digest)          ← Ready

At hop h the list of party i is with party i + h, so all parties work in every step. The parts of a list go around one
by one: the coordinator holds the delivered points, 32 bytes per ID, and one part of each list in transit. Matching
needs every party's keys, so a party that does not answer ends the session. The coordinator itself only finds equal
points in the fully blinded lists and gives them places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.aggregation.seed_agreement import Ready, agree_on_seed_and_keys
from cloister.crypto import TAG_BYTES, Entropy, Stream, encode_context
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.protocols.align.group import ORDER, POINT_BYTES, BlindingKey, check_points, decode_exponent
from cloister.protocols.align.terms import (
    BlindPart,
    Delivered,
    Finish,
    MeetRing,
    Mode,
    Passed,
    RingMet,
    TakePlaces,
    Terms,
)
from cloister.records import IntArray
from cloister.roles import Ask, Check, Coordinator, Message, Replies, expect
from cloister.wire import Array

_Reply = TypeVar("_Reply", bound=Message)


@dataclass(frozen=True, kw_only=True)
class AlignmentOutcome:
    """What the coordinator holds at the end."""

    mode: Mode
    sizes: tuple[int, ...]
    """The number of IDs of each party."""
    count: int
    """The number of IDs that have a place."""


def coordinate(terms: Terms, *, entropy: Entropy, session: bytes) -> Coordinator[AlignmentOutcome]:
    """Run one alignment.

    Parameters
    ----------
    terms
        What was agreed.
    entropy
        Determines the order of the places.
    session
        The session's ID.

    Raises
    ------
    TooFewPartiesError
        If a party does not answer validly in some step.
    RemoteProtocolError
        If a list holds an ID twice.
    """
    parties = range(1, terms.parties + 1)
    steps = SEED_STEPS + 1 + terms.parties + 2  # until the lists' lengths are known: as if each were one part
    keys = yield from agree_on_seed_and_keys(
        agreement=terms.digest, directory=terms.directory, session=session, members_min=terms.parties, steps=steps
    )
    answers = yield Ask(
        label="meeting the ring", requests=dict.fromkeys(parties, MeetRing(keys)), check=_met_by(terms), steps=steps
    )
    met = _require_all(answers, RingMet, "meeting the ring")
    sizes = tuple(met[party].elements for party in parties)
    parts_most = max(terms.count_parts(size) for size in sizes)
    steps = SEED_STEPS + 2 + (terms.parties + 1) * parts_most
    unifiers = _invert_ratios([met[party].ratios for party in parties])
    lists = [bytearray() for _ in parties]
    for part in range(parts_most):
        delivered = yield from _send_around(terms, part, parts_most, sizes, steps)
        for owner, points in delivered.items():
            lists[owner - 1] += points if owner == 1 else unifiers[owner - 1].blind(points)
    matching = match_lists([bytes(points) for points in lists], terms.mode, Stream(entropy.bytes(32)))
    del lists
    yield from _send_places(terms, matching, parts_most, sizes, steps)
    salt = entropy.bytes(32)  # whoever delivered the first list knows its points, and could try orders of a few
    digest = hashlib.sha256(encode_context("cloister align order", session, salt, matching.digest)).digest()
    answers = yield Ask(
        label="finishing",
        requests=dict.fromkeys(parties, Finish(matching.count, digest)),
        check=expect(Ready),
        steps=steps,
    )
    _require_all(answers, Ready, "finishing")
    return AlignmentOutcome(mode=terms.mode, sizes=sizes, count=matching.count)


def _send_around(
    terms: Terms, part: int, parts_most: int, sizes: Sequence[int], steps: int
) -> Coordinator[dict[int, bytes]]:
    """Pass one part of every list that has it through all hops; return the fully blinded points by owner."""
    owners = [owner for owner, size in enumerate(sizes, start=1) if part < terms.count_parts(size)]
    boxes: dict[int, bytes | None] = dict.fromkeys(owners)
    for hop in range(terms.parties):
        carriers = {terms.carrier_at(owner, hop): owner for owner in owners}
        label = f"blinding part {part + 1} of {parts_most}, hop {hop + 1} of {terms.parties}"
        requests = {carrier: BlindPart(hop, part, boxes[owner]) for carrier, owner in carriers.items()}
        due = {carrier: terms.count_part_bytes(part, sizes[owner - 1]) for carrier, owner in carriers.items()}
        if hop + 1 == terms.parties:
            break
        answers = yield Ask(label=label, requests=requests, check=_passed(due), steps=steps)
        passed = _require_all(answers, Passed, label)
        boxes = {owner: passed[carrier].box for carrier, owner in carriers.items()}
    answers = yield Ask(label=label, requests=requests, check=_delivered(due), steps=steps)
    delivered = _require_all(answers, Delivered, label)
    return {owner: delivered[carrier].points for carrier, owner in carriers.items()}


def _send_places(
    terms: Terms, matching: Matching, parts_most: int, sizes: Sequence[int], steps: int
) -> Coordinator[None]:
    """Send each owner the places of its list, part by part."""
    for part in range(parts_most):
        label = f"sending places, part {part + 1} of {parts_most}"
        requests = {
            owner: TakePlaces(part, Array.of(matching.places[owner - 1][terms.slice_part(part, size)]))
            for owner, size in enumerate(sizes, start=1)
            if part < terms.count_parts(size)
        }
        answers = yield Ask(label=label, requests=requests, check=expect(Ready), steps=steps)
        _require_all(answers, Ready, label)


def _invert_ratios(ratios: Sequence[Sequence[bytes]]) -> list[BlindingKey]:
    """Return the key that maps each list from its own keys to those of the first list.

    Party h blinded list i with k_hi. Its ratios are k_hi / k_h1, so list i needs the factor prod_h k_h1 / k_hi.
    """
    keys = []
    for at in range(len(ratios)):
        product = 1
        for of_party in ratios:
            product = product * decode_exponent(of_party[at]) % ORDER
        keys.append(BlindingKey.from_exponent(pow(product, -1, ORDER)))
    return keys


def _require_all(answers: Replies, kind: type[_Reply], label: str) -> dict[int, _Reply]:
    """Abort unless everybody who was asked has answered."""
    replies = {party: reply for party, reply in answers.items() if isinstance(reply, kind)}
    silent = [party for party in answers if party not in replies]
    if silent:
        raise TooFewPartiesError(
            f"every party must answer every step of an alignment, since all keys are needed; in the step {label!r} "
            f"party {silent[0]} did not answer validly. Wait until it is reachable and run the alignment again."
        )
    return replies


# --- matching ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Matching:
    """The place of every point of every list; -1 for those without a place."""

    places: tuple[IntArray, ...]
    count: int
    digest: bytes
    """The digest of the placed points in their order."""


def match_lists(lists: Sequence[bytes], mode: Mode, stream: Stream) -> Matching:
    """Give places in a random order to the points that all lists hold, or that any does.

    The order must be random, and not that of the points or of their first appearance: parties see their own places, and
    the first list's points at the lowest ones would say which of them the first party holds.

    Raises
    ------
    RemoteProtocolError
        If a list holds a point twice: its owner, or someone on the way, repeated an ID.
    """
    # Fixed-width text compares as its bytes do: NumPy's padding with zeros loses nothing.
    points = np.frombuffer(b"".join(lists), dtype=f"S{POINT_BYTES}")
    distinct, which, holders = np.unique(points, return_inverse=True, return_counts=True)
    ends = np.cumsum([len(points_) // POINT_BYTES for points_ in lists])
    parts = np.split(which.reshape(-1), ends[:-1])
    for owner, part in enumerate(parts, start=1):
        if np.unique(part).size != part.size:
            raise RemoteProtocolError(
                f"the IDs of a list must differ; some in the list of party {owner} repeat. Start again; if it "
                "happens again, one of the parties runs a different program."
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


# --- checks of replies ------------------------------------------------------------------------------------------------


def _met_by(terms: Terms) -> Check:
    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, RingMet) or len(reply.ratios) != terms.parties:
            raise RemoteProtocolError(f"party {party} must give a ratio for each of {terms.parties} lists; it did not.")
        first, *_ = (decode_exponent(ratio) for ratio in reply.ratios)
        if first != 1:
            raise RemoteProtocolError(f"the ratio of party {party} for the first list must be 1; it is not.")

    return check


def _passed(bytes_due: Mapping[int, int]) -> Callable[[int, Message], None]:
    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, Passed) or len(reply.box) != bytes_due[party] + TAG_BYTES:
            raise RemoteProtocolError(f"party {party} must seal as many points as were announced; it did not.")

    return check


def _delivered(bytes_due: Mapping[int, int]) -> Callable[[int, Message], None]:
    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, Delivered) or len(reply.points) != bytes_due[party]:
            raise RemoteProtocolError(f"party {party} must deliver as many points as were announced; it did not.")
        check_points(reply.points)

    return check
