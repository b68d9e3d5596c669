"""Messages and bytes of a session in which nobody drops out, counted by running a hollow session.

A hollow session has the protocol's own coordinator, messages and codec, but its parties answer with zeros of the right
length. All lengths follow from public values, so the byte counts are those of a real run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.aggregation import Introduction, SumTerms, least_quorum, unpack_members
from cloister.aggregation.messages import Answered, Attempt, Conclude, Opened, OpenTotal, PartyBox, Settle, Voted
from cloister.aggregation.seed_agreement import Ready
from cloister.aggregation.terms import OPENING_BYTES, VOTE_BYTES
from cloister.crypto import Identity, Stream
from cloister.crypto.sealing import TAG_BYTES
from cloister.crypto.secret_sharing import SHARE_BYTES
from cloister.forecast.model import PartyBytes, TrafficForecast
from cloister.privacy.mechanisms import Noise
from cloister.privacy.samplers import OnProgress
from cloister.records import IntArray
from cloister.roles import Coordinator, Message, Party, Seat
from cloister.runtime import run_local
from cloister.wire import Codec

HOLLOW_SESSION = bytes(16)
_PARTIES_MOST = 48  # measured directly; the traffic of more is extrapolated


@dataclass(frozen=True, kw_only=True, eq=False)
class HollowSession:
    """A session whose messages have the right lengths but no content; its ID is `HOLLOW_SESSION`."""

    coordinator: Coordinator[Any]
    parties: Sequence[Party]
    codec: Codec


def measure(hollow: HollowSession) -> tuple[PartyBytes, ...]:
    """Run a hollow session and return what each party's link carried."""
    run = run_local(hollow.coordinator, hollow.parties, codec=hollow.codec, session=HOLLOW_SESSION, threads=1)
    return tuple(
        PartyBytes(
            bytes_up=traffic.bytes_sent,
            bytes_down=traffic.bytes_received,
            messages_up=traffic.messages_sent,
            messages_down=traffic.messages_received,
        )
        for traffic in run.traffic.values()
    )


class NoNoise:
    """A sampler for hollow sessions: zeros are as long as noise."""

    is_simulation = True

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        """Return zeros."""
        return np.zeros(entries, dtype=np.int64)


def make_seats(parties: int, purpose: str) -> list[Seat]:
    """Make seats with keys that protect nothing, since there is nothing to protect."""
    stream = Stream.from_seed(0, purpose)
    return [
        Seat(
            number=number,
            identity=Identity(stream.child("identity", number)),
            entropy=stream.child("party", number),
            session=HOLLOW_SESSION,
        )
        for number in range(1, parties + 1)
    ]


def scale_quorum(terms: SumTerms, parties: int) -> tuple[int, int]:
    """Return quorum and colluding parties among so many: as many may be missing, and the same part may collude."""
    if not terms.double:
        return min(terms.members_min, parties), 0
    colluding = terms.colluding_max * parties // terms.parties
    missing = terms.parties - terms.members_min
    least = min(parties, least_quorum(parties, colluding))
    return max(parties - missing, least), colluding


class HollowSums:
    """A party's side of secure sums: it meets the others, and answers with zeros of the right lengths."""

    def __init__(self, seat: Seat, terms: SumTerms) -> None:
        self._number, self._terms = seat.number, terms
        self._introduction = Introduction(seat=seat, terms=terms)

    def answer(self, attempt: Attempt, length: int) -> Answered:
        """Answer a round with a vector of this many integers."""
        shares: tuple[PartyBox, ...] = ()
        if self._terms.shares_masks:
            box = bytes(SHARE_BYTES + TAG_BYTES)
            members = unpack_members(attempt.members, self._terms.parties)
            shares = tuple(PartyBox(member, box) for member in members if member != self._number)
        return Answered(bytes(self._terms.body_bytes(length)), shares)

    def handle(self, request: Message) -> Message:
        """Answer anything else."""
        match request:
            case OpenTotal():
                return Opened(bytes(OPENING_BYTES), bytes(VOTE_BYTES if self._terms.shares_masks else 0))
            case Settle():
                return Voted(bytes(VOTE_BYTES))
            case Conclude():
                return Ready()
        return self._introduction.handle(request)


def measure_star(
    make: Callable[[int], HollowSession], parties: int, *, steps: int, at_most: bool = False
) -> TrafficForecast:
    """Return the traffic of a session of this many parties, the first of which seals the common seed to the others.

    ``make`` makes a hollow session of a number of parties. Beyond some dozens, two smaller sessions show what
    each additional party adds.
    """
    if parties <= _PARTIES_MOST:
        return sum_up(measure(make(parties)), steps=steps, at_most=at_most)
    half = _PARTIES_MOST // 2
    few, many = measure(make(half)), measure(make(_PARTIES_MOST))
    leader, other = (_extrapolate(few[place], many[place], (parties - half) / half) for place in (0, -1))
    total = leader.bytes_up + leader.bytes_down + (parties - 1) * (other.bytes_up + other.bytes_down)
    return TrafficForecast(steps=steps, leader=leader, other=other, total_bytes=total, at_most=at_most)


def _extrapolate(few: PartyBytes, many: PartyBytes, times: float) -> PartyBytes:
    return PartyBytes(
        **{
            name: round(getattr(few, name) + times * (getattr(many, name) - getattr(few, name)))
            for name in ("bytes_up", "bytes_down", "messages_up", "messages_down")
        }
    )


def extend(first: Sequence[PartyBytes], second: Sequence[PartyBytes], times: float) -> tuple[PartyBytes, ...]:
    """Extrapolate from sessions of one and two units (such as rounds) to ``times`` units."""
    return tuple(_extrapolate(one, two, times - 1) for one, two in zip(first, second, strict=True))


def sum_up(links: Sequence[PartyBytes], *, steps: int, at_most: bool = False, leader: int = 1) -> TrafficForecast:
    """Summarise every party's link as the traffic of a session; ``leader`` is the party that is listed separately."""
    others = [link for number, link in enumerate(links, start=1) if number != leader]
    busiest = max(others, key=lambda link: link.bytes_up + link.bytes_down)
    return TrafficForecast(
        steps=steps,
        leader=links[leader - 1],
        other=busiest,
        total_bytes=sum(link.bytes_up + link.bytes_down for link in links),
        at_most=at_most,
        uneven=any(link != busiest for link in others),
    )
