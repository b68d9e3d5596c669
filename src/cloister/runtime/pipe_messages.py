"""Messages between the hub and the processes of a session: MessagePack by length, over standard input and output.

::

    hub                                     process of a party              process of the coordinator
    Task, then Directory          ->        Hello, then Seated              Hello, then Seated
    Frame (a request)             ->        Frame (its reply) or Refused
                                                                            Opened and its Frames (requests)
    Frame (a reply)               ->                                        Taken or Refused
    Close (nobody else answers)   ->                                        the next Opened, or Ended
    Finish                        ->        Found
    Abandon                       ->        Failed

A role that cannot go on says Failed and waits for the next Task. Why it cannot, and why a party refuses a frame, is for
its owner alone: that stands in the process's log. The hub reads what is in no frame, and nothing of what is in one:
frames are the endpoints' (:mod:`cloister.wire`).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cloister.errors import TOLD_TO_ALL, AbsentError, CloisterError, LocalProtocolError, RemoteProtocolError
from cloister.wire.codec import DEFAULT_LIMIT_BYTES

HEADER_BYTES = 4
LIMIT_BYTES = DEFAULT_LIMIT_BYTES + 2**10
"""Of one message: the longest frame of the default codec, and what stands around it."""
Number = Annotated[int, Meta(ge=0, lt=2**16)]


class Task(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=0):
    """Open a session: what to do in it is the module's business that runs in the process."""

    body: bytes


class Hello(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """A role has read its task; this is its public identity, empty for a coordinator."""

    identity: bytes


class Directory(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """Everyone's public identity, in the order of their numbers."""

    identities: tuple[bytes, ...]


class Seated(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """A role has its seat."""


class Frame(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """A frame to or from a party."""

    party: Number
    data: bytes


class Opened(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """The coordinator has opened a step; the requests to these parties follow, in this order."""

    step: int
    label: str
    parties: tuple[Number, ...]


class Close(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """Nobody else answers in this step."""


class Taken(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """The coordinator has taken a reply."""


class Refused(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=8):
    """An endpoint has refused a frame, and is as it was; a party does not say why."""

    reason: str = ""


class Ended(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=9):
    """The coordinator has finished: counts and answers of its outcome that the parties' result may name."""

    outcome: dict[str, int | bool]


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=10):
    """The session is over: say what you have found."""

    outcome: dict[str, int | bool]


class Found(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=11):
    """What a party has found; empty if it did not stay to the end."""

    body: bytes


class Abandon(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=12):
    """The session will not go on."""

    reason: str


class Failed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=13):
    """A role cannot go on. Only an error that concerns all is told, by its class and its text; else both are empty."""

    kind: str = ""
    reason: str = ""

    @classmethod
    def of(cls, error: CloisterError) -> Failed:
        """Tell of an error, as far as it concerns all."""
        kind = type(error).__name__
        return cls(kind, str(error)) if kind in _TOLD_TO_ALL else cls()

    def to_error(self, role: str) -> CloisterError:
        """Return the error, as everybody but the role's owner knows it."""
        return _TOLD_TO_ALL[self.kind](self.reason) if self.kind in _TOLD_TO_ALL else AbsentError(role)


PipeMessage = (
    Task
    | Hello
    | Directory
    | Seated
    | Frame
    | Opened
    | Close
    | Taken
    | Refused
    | Ended
    | Finish
    | Found
    | Abandon
    | Failed
)
_TOLD_TO_ALL = {kind.__name__: kind for kind in TOLD_TO_ALL}
_DECODER = msgspec.msgpack.Decoder(PipeMessage)


def encode(message: PipeMessage, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return a message with its length before it."""
    body = msgspec.msgpack.encode(message)
    if len(body) > limit_bytes:
        raise LocalProtocolError(f"a message over a pipe must have at most {limit_bytes} bytes; it has {len(body)}.")
    return len(body).to_bytes(HEADER_BYTES, "little") + body


def read_length(header: bytes, limit_bytes: int = LIMIT_BYTES) -> int:
    """Return how long the message after this header is; a longer one is refused before it is read."""
    length = int.from_bytes(header, "little")
    if length > limit_bytes:
        raise RemoteProtocolError(
            f"a message over a pipe must have at most {limit_bytes} bytes; {length} were announced."
        )
    return length


def decode(body: bytes) -> PipeMessage:
    """Read a message."""
    try:
        message: PipeMessage = _DECODER.decode(body)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError):
        raise RemoteProtocolError("a message over a pipe must be one of its types; it is not.") from None
    return message
