"""Messages and bytes of a session in which nobody drops out, counted on a hollow session.

A hollow session has the protocol's own coordinator, messages and codec, and parties that answer with zeros of the right
lengths. All lengths follow from public values, so the bytes are those that a run counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cloister.planning.model import PartyBytes, Traffic
from cloister.roles import Coordinator, Party
from cloister.runtime import run_local
from cloister.wire import Codec

HOLLOW_SESSION = bytes(16)


@dataclass(frozen=True, kw_only=True, eq=False)
class HollowSession:
    """A session whose messages have the right lengths and nothing in them; its ID is `HOLLOW_SESSION`."""

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


def extend(first: Sequence[PartyBytes], second: Sequence[PartyBytes], times: int) -> tuple[PartyBytes, ...]:
    """From sessions of one and of two units (rounds, say) to ``times`` units, each of which adds as much."""
    return tuple(
        PartyBytes(
            **{
                name: getattr(one, name) + (times - 1) * (getattr(two, name) - getattr(one, name))
                for name in ("bytes_up", "bytes_down", "messages_up", "messages_down")
            }
        )
        for one, two in zip(first, second, strict=True)
    )


def sum_up(links: Sequence[PartyBytes], *, steps: int, at_most: bool = False, leader: int = 1) -> Traffic:
    """Return the traffic of a session from every party's link; ``leader`` is the number of the one told apart."""
    others = [link for number, link in enumerate(links, start=1) if number != leader]
    busiest = max(others, key=lambda link: link.bytes_up + link.bytes_down)
    return Traffic(
        steps=steps,
        leader=links[leader - 1],
        other=busiest,
        total_bytes=sum(link.bytes_up + link.bytes_down for link in links),
        at_most=at_most,
        uneven=any(link != busiest for link in others),
    )
