"""The messages of a connection between a party and the coordinator: MessagePack with strict types and limits.

::

    coordinator                                              party
    Challenge(version, nonce)                          ->
                                                       <-    Hello(version, job, name, identity, proof)
    Welcome(run, identity, proof), or Refused          ->
                                                       <-    Consent(signature, what it knows), or Rejected
    Start(session), when all are there                 ->
                                                       <-    Seated
    Request(number, frame)                             ->
                                                       <-    Reply(number, frame), or Declined(number)
    Finish(outcome)                                    ->
                                                       <-    Done(signature), and the next Start
    Over                                               ->

    Status at any time after Welcome; Abandon from the coordinator and Withdraw from a party end it at any time.

Frames are those of the endpoints (:mod:`cloister.wire`), which nobody here reads. No message carries text that was
written from what a role knows: reasons are numbers, and who receives one looks up its text here.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from cloister.errors import RemoteProtocolError

MAJOR, MINOR = 1, 0
"""Connections of one major version understand each other; a higher minor version may say more."""
RUN_BYTES = 16
FRAME_OVERHEAD_BYTES = 2**10
"""What stands around a frame is shorter."""
GREETING_BYTES = 2**14
"""The longest message from someone who has not been recognised."""
CONTROL_BYTES = 2**20
"""The longest message between sessions: all consents of a thousand parties."""

Nonce = Annotated[bytes, Meta(min_length=32, max_length=32)]
Digest = Annotated[bytes, Meta(min_length=32, max_length=32)]
Key = Annotated[bytes, Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]
RunId = Annotated[bytes, Meta(min_length=RUN_BYTES, max_length=RUN_BYTES)]
Count = Annotated[int, Meta(ge=0, lt=2**53)]
Version = Annotated[int, Meta(ge=0, lt=2**16)]
Text = Annotated[str, Meta(max_length=200)]


class Refusal(Enum):
    """Why the coordinator does not let someone in, and what each side is told."""

    VERSION = 1
    PARTY = 2
    IDENTITY = 3
    JOB = 4
    RUN = 5
    LEFT = 6
    RATE = 7
    OVER = 8
    REVOKED = 9

    @property
    def text(self) -> str:
        """The fixed text."""
        return _REFUSALS[self]


_REFUSALS = {
    Refusal.VERSION: "both ends must have versions of Cloister with the same first number (below 1.0, the same first "
    "two); they do not. Update one of them.",
    Refusal.PARTY: "a party must be one of the job's; the coordinator's job names no such party. "
    "Compare the two job files.",
    Refusal.IDENTITY: "a party must prove that it is the identity which the job names; it did not. Compare the "
    "fingerprint in the job with that of the key, and send the public key file again.",
    Refusal.JOB: "all must hold the same job, with one digest; the coordinator's is another. Compare the job files.",
    Refusal.RUN: "a party must go on with the run that it began; the coordinator is in another run of this job. What "
    "was charged stays charged. To take part in the new run, give the earlier one up with --anew.",
    Refusal.LEFT: "a party that has left a run cannot come back into it; this one withdrew, or was away for too long. "
    "What was charged stays charged.",
    Refusal.RATE: "a party must not connect more often than the coordinator's limit; it did. Try again in a minute.",
    Refusal.REVOKED: "neither end's policy may revoke the other's identity or certificate; one does. Ask whoever keeps "
    "it. A new certificate for the same identity: cloister keys renew NAME",
    Refusal.OVER: "a party must connect while the run lasts; it is over. What was charged stays charged.",
}


class Ending(Enum):
    """Why a run ends without a result, and what the parties are told."""

    MISSING = 1
    TOO_FEW = 2
    DISAGREE = 3
    REPEATED = 4
    STOPPED = 5
    FAILED = 6

    @property
    def text(self) -> str:
        """The fixed text."""
        return _ENDINGS[self]


_ENDINGS = {
    Ending.MISSING: "all parties must join before the coordinator's deadline, and enough of them take their seats; "
    "some did not. Nothing was charged.",
    Ending.TOO_FEW: "enough parties must stay in a run; too few did. What was charged stays charged. Run the job "
    "again.",
    Ending.DISAGREE: "all parties must hold the same records in the same order, from one alignment; they do not. "
    "Compare the tables, or align them again.",
    Ending.REPEATED: "every ID must be held by exactly one party; some are held by several, so their records would be "
    "counted repeatedly. Decide who contributes them.",
    Ending.STOPPED: "the coordinator must stay to the end of a run; it withdrew. What was charged stays charged.",
    Ending.FAILED: "the coordinator must be able to go on; it could not, and says why where it runs. What was charged "
    "stays charged.",
}


class Facts(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a party knows of the records that everyone must know before a session.

    Where rows are split and records need no common order, it says nothing.

    Attributes
    ----------
    records
        How many records are in the common order.
    alignment
        Which alignment that order is from.
    """

    records: Count | None = None
    alignment: Annotated[str, Meta(max_length=64)] | None = None


class Challenge(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=0):
    """The first word: the coordinator's version, and what a Hello must sign to be fresh."""

    major: Version
    minor: Version
    nonce: Nonce


class Hello(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """Who calls, for which job, and the proof; ``run`` is empty, or the run to go on with."""

    major: Version
    minor: Version
    program: Text
    job: Digest
    party: Text
    identity: Key
    certificate_signature: Signature
    nonce: Nonce
    run: Annotated[bytes, Meta(max_length=RUN_BYTES)]
    signature: Signature


class Refused(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """The coordinator does not let the caller in."""

    reason: Refusal


class Welcome(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """Who answers, in which run, and the proof."""

    program: Text
    run: RunId
    identity: Key
    certificate_signature: Signature
    signature: Signature


class Consent(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """A party agrees to this run of the job; its table is open and checked."""

    signature: Signature
    facts: Facts


class Status(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """What the run is doing, and for whom it waits; also a sign of life."""

    step: Count
    steps: Count
    label: Text
    waiting: tuple[Text, ...]


class Consented(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One party's consent, as all parties get it."""

    party: Text
    program: Text
    signature: Signature


class Start(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """A session begins: what kind, its ID, what everyone knows of the records, and who consented to the run.

    ``agreed`` is the digest of the public parameters of a clustering, as the coordinator has computed them.
    """

    kind: Text
    session: RunId
    facts: Facts
    consents: tuple[Consented, ...]
    agreed: Annotated[bytes, Meta(max_length=64)] = b""


class Seated(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """A party has its seat."""


class Request(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=8):
    """A frame to a party; numbers grow from step to step. The frame travels behind the message, in no encoding."""

    number: Count
    frame: bytes = b""


class Reply(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=9):
    """A party's answer to the request of this number; its frame travels as that of a request."""

    number: Count
    frame: bytes = b""


class Declined(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=10):
    """A party has refused the request of this number; why stays with it."""

    number: Count


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=11):
    """A session is over, and this is what everyone may know of it.

    Attributes
    ----------
    session
        Which one.
    outcome
        What its protocol tells the parties (`cloister.protocol.Clustering.tell`).
    missed
        How many requests to this party had no answer in time.
    left
        Who has left the run.
    """

    session: RunId
    outcome: bytes
    missed: Count
    left: tuple[Text, ...]


class Done(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=12):
    """A party has taken note of a session's end, and signs that; it says nothing of what it found but the facts."""

    session: RunId
    signature: Signature
    facts: Facts


class Over(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=13):
    """The run is over, and well."""


class Abandon(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=14):
    """The run will not go on; ``missing`` names who was waited for in vain."""

    reason: Ending
    missing: tuple[Text, ...] = ()


class Withdraw(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=15):
    """A party leaves the run for good; why stays with it."""


class Rejected(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=16):
    """A party does not accept the coordinator that has greeted it, and says why."""

    reason: Refusal


FromCoordinator = Challenge | Refused | Welcome | Status | Start | Request | Finish | Over | Abandon
FromParty = Hello | Rejected | Consent | Seated | Reply | Declined | Done | Withdraw
LinkMessage = FromCoordinator | FromParty

Packed = tuple[bytes, bytes]
"""A message, and the frame behind it."""

_ENCODER = msgspec.msgpack.Encoder()
_OF_COORDINATOR = msgspec.msgpack.Decoder(FromCoordinator)
_OF_PARTY = msgspec.msgpack.Decoder(FromParty)


def pack(message: LinkMessage) -> Packed:
    """Return a message's bytes, and the frame that it carries as it is: frames are long, and copied nowhere."""
    if isinstance(message, Request | Reply):
        return _ENCODER.encode(type(message)(message.number)), message.frame
    return _ENCODER.encode(message), b""


def unpack_from_coordinator(packed: Packed) -> FromCoordinator:
    """Read what a coordinator says."""
    message: FromCoordinator = _unpack(_OF_COORDINATOR, packed)
    return message


def unpack_from_party(packed: Packed) -> FromParty:
    """Read what a party says."""
    message: FromParty = _unpack(_OF_PARTY, packed)
    return message


def _unpack(decoder: msgspec.msgpack.Decoder[Any], packed: Packed) -> Any:
    raw, frame = packed
    try:
        message = decoder.decode(raw)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError):
        raise RemoteProtocolError("a message must be one that may come over a connection; it is not.") from None
    if isinstance(message, Request | Reply) and not message.frame:
        return type(message)(message.number, frame)
    if frame or isinstance(message, Request | Reply):
        raise RemoteProtocolError("requests and replies carry a frame behind them, others none; this one differs.")
    return message
