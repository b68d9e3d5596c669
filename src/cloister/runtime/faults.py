"""Faults that the local runtime injects on purpose: what a network and a machine can do to a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class FaultKind(Enum):
    """What happens to one party in one step."""

    DROP_REQUEST = "the request is lost"
    DROP_REPLY = "the reply is lost"
    DELAY_REPLY = "the reply arrives after the step was closed"
    DUPLICATE_REQUEST = "the request arrives twice"
    DUPLICATE_REPLY = "the reply arrives twice"
    REORDER = "the previous request arrives again before this one"
    CORRUPT_REQUEST = "one bit of the request flips"
    CORRUPT_REPLY = "one bit of the reply flips"
    CRASH = "the party stops for good before it sees the request"
    CRASH_AFTER = "the party handles the request and stops for good before it answers"
    RESTART = "the party is started anew before it sees the request: with its memory lost, or from its journal"
    RESTART_AFTER = "the party handles the request, is started anew before it answers, and is asked again"


@dataclass(frozen=True)
class Fault:
    """One fault: what, to whom, in which step."""

    kind: FaultKind
    party: int
    step: int


class FaultPlan:
    """The faults of one run, looked up by party and step; also knows who has crashed by then."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._kinds: dict[tuple[int, int], set[FaultKind]] = {}
        self._crashed_at: dict[int, int] = {}
        self.restarts = False
        for fault in faults:
            self.restarts |= fault.kind is FaultKind.RESTART
            self._kinds.setdefault((fault.party, fault.step), set()).add(fault.kind)
            if fault.kind in (FaultKind.CRASH, FaultKind.CRASH_AFTER):
                at = fault.step + (fault.kind is FaultKind.CRASH_AFTER)
                self._crashed_at[fault.party] = min(at, self._crashed_at.get(fault.party, at))

    def hits(self, kind: FaultKind, party: int, step: int) -> bool:
        """Whether this fault is planned."""
        return kind in self._kinds.get((party, step), ())

    def crashed(self, party: int, step: int) -> bool:
        """Whether the party has stopped before this step's request."""
        return step >= self._crashed_at.get(party, step + 1)


def flip_bit(frame: bytes, salt: int) -> bytes:
    """Flip one bit, whose place depends on ``salt``."""
    place = salt * 7919 % (len(frame) * 8)
    corrupted = bytearray(frame)
    corrupted[place // 8] ^= 1 << (place % 8)
    return bytes(corrupted)
