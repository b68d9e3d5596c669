"""What happens on the connections of a run, told to one observer: logs, metrics and the live view are made of it.

An event has names and versions of parties, kinds and lengths of messages, numbers of steps, reasons, and the labels of
steps, which at a party are the coordinator's words, and printable; never a frame, a fact or a party's words. So whoever
is shown events is shown what this end of the connections sees anyway, and nothing of what messages hold; when events
come is what somebody with a clock sees (docs/proofs/views.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cloister.runtime.local import Progress


@dataclass(frozen=True)
class Listening:
    """The coordinator can be called, on this port."""

    port: int


@dataclass(frozen=True)
class Connected:
    """The other end has proved who it is: a party at the coordinator, the coordinator at a party."""

    peer: str
    program: str


@dataclass(frozen=True)
class Disconnected:
    """A connection of it has ended."""

    peer: str


@dataclass(frozen=True)
class Refused:
    """A connection was refused.

    Attributes
    ----------
    peer
        Who, as the caller said; empty if it is nobody of the job, or said nothing.
    reason
        Why: the name of a `Refusal`, or one of those below.
    by_peer
        Whether the other end refused us.
    """

    peer: str
    reason: str
    by_peer: bool = False


COORDINATOR = "coordinator"
"""The other end of a party's connections."""
BROKEN, CROWDED, SILENT = "BROKEN", "CROWDED", "SILENT"
"""It broke the rules of a connection; too many others had not said who they are; it did not say so in time."""
CERTIFICATE, NO_CERTIFICATE, HANDSHAKE = "CERTIFICATE", "NO_CERTIFICATE", "HANDSHAKE"
"""TLS did not let it in: its certificate is not trusted or has expired; it has none; or what came was not TLS."""


@dataclass(frozen=True)
class Unreachable:
    """The other end cannot be reached now; why, as far as our own transport knows."""

    peer: str
    why: str


@dataclass(frozen=True)
class Passed:
    """A message has passed: its kind, and its bytes without TLS."""

    peer: str
    kind: str
    size_bytes: int
    is_sent: bool


@dataclass(frozen=True)
class Opened:
    """A session has begun, of this kind."""

    kind: str


@dataclass(frozen=True)
class Left:
    """A party has withdrawn."""

    peer: str


Event = Listening | Connected | Disconnected | Refused | Unreachable | Passed | Opened | Left | Progress
Observe = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Observe nothing."""
