"""Messages and bytes of a session in which nobody drops out, counted by running a hollow session.

A hollow session has the protocol's own coordinator, messages and codec, but its parties answer with zeros of the right
length. All lengths follow from public values, so the byte counts are those of a real run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.forecast.model import PartyBytes, TrafficForecast
from cloister.privacy.mechanisms import Noise
from cloister.privacy.samplers import OnProgress
from cloister.records import IntArray
from cloister.roles import Coordinator, Party
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
