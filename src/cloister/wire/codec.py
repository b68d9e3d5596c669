"""Messages to bytes: MessagePack with strict types, in an envelope that says where each message belongs.

An envelope is the array ``[version, protocol, session, step, sender, body]``; a body is the array ``[tag, field,
...]``. With a six-letter protocol name it costs about 30 bytes. A numpy array travels as a dtype from an allow-list, a
shape, and little-endian bytes; nothing is ever unpickled. Decoding checks every type, every bound and the absence of
anything extra, so that whatever comes out has the declared type; everything else is a
:class:`~cloister.errors.RemoteProtocolError`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct
from numpy.typing import NDArray

from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.roles import Message

# The position is the code on the wire: append only.
DTYPES: tuple[np.dtype[Any], ...] = tuple(np.dtype(code) for code in ("<u1", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8"))
MAX_DIMENSIONS = 4

_Extent = Annotated[int, Meta(ge=0, le=2**40)]


class Array(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A numpy array as it travels; :meth:`of` and :meth:`to_numpy` convert."""

    code: Annotated[int, Meta(ge=0, lt=len(DTYPES))]
    shape: Annotated[tuple[_Extent, ...], Meta(max_length=MAX_DIMENSIONS)]
    data: bytes

    @classmethod
    def of(cls, array: NDArray[Any]) -> Array:
        """Pack an array; its dtype must be on the allow-list."""
        dtype = array.dtype.newbyteorder("<")
        if dtype not in DTYPES:
            raise TypeError(f"arrays on the wire must be one of {[d.str for d in DTYPES]}; got {array.dtype.str}")
        return cls(DTYPES.index(dtype), array.shape, array.astype(dtype, copy=False).tobytes())

    def to_numpy(self, dtype: type[np.generic], *shape: int) -> NDArray[Any]:
        """Unpack into an array that must have this dtype and shape; floats must be finite.

        Raises
        ------
        RemoteProtocolError
            If the bytes are anything else. Expected and got are public: they never show a value.
        """
        expected = np.dtype(dtype).newbyteorder("<")
        got = DTYPES[self.code]
        if got != expected or self.shape != shape:
            raise RemoteProtocolError(
                f"an array must be {expected.name} of shape {shape}; got {got.name} of shape {self.shape}."
            )
        wanted_bytes = math.prod(shape) * expected.itemsize
        if len(self.data) != wanted_bytes:
            raise RemoteProtocolError(
                f"an array of shape {shape} must have {wanted_bytes} bytes; got {len(self.data)}."
            )
        array = np.frombuffer(self.data, dtype=expected).reshape(shape).astype(dtype, copy=False)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise RemoteProtocolError("numbers in a message must be finite; some are not.")
        return array


WIRE_VERSION = 1
SESSION_BYTES = 16
DEFAULT_LIMIT_BYTES = 64 * 2**20


class Envelope(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The envelope around every message."""

    version: Annotated[int, Meta(ge=0, le=255)]
    protocol: Annotated[str, Meta(max_length=32)]
    session: Annotated[bytes, Meta(min_length=SESSION_BYTES, max_length=SESSION_BYTES)]
    step: Annotated[int, Meta(ge=0, lt=2**31)]
    sender: Annotated[int, Meta(ge=0, lt=2**16)]
    body: Raw


class Codec:
    """Encodes and decodes the messages of one protocol.

    Parameters
    ----------
    protocol
        Name on the wire; a frame of another protocol is refused.
    requests, replies
        The unions of message structs, tagged with integers, that a party and a coordinator may receive.
    limit_bytes
        Longer frames are refused before they are parsed.
    """

    def __init__(self, protocol: str, *, requests: Any, replies: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.protocol = protocol
        self.limit_bytes = limit_bytes
        self._encoder = msgspec.msgpack.Encoder()
        self._envelope = msgspec.msgpack.Decoder(Envelope)
        self._requests = msgspec.msgpack.Decoder(requests)
        self._replies = msgspec.msgpack.Decoder(replies)

    def encode(self, message: Message, *, session: bytes, step: int, sender: int) -> bytes:
        """Wrap a message in an envelope and encode it."""
        body = Raw(self._encoder.encode(message))
        frame = self._encoder.encode(Envelope(WIRE_VERSION, self.protocol, session, step, sender, body))
        if len(frame) > self.limit_bytes:
            raise LocalProtocolError(
                f"a message must have at most {self.limit_bytes} bytes; {type(message).__name__} has "
                f"{len(frame)}. Raise the limit on every side, or use fewer clusters or columns."
            )
        return frame

    def open(self, frame: bytes, *, session: bytes, sender: int) -> Envelope:
        """Check a frame's size and envelope: our version, our protocol, our session, the sender it came from."""
        if len(frame) > self.limit_bytes:
            raise RemoteProtocolError(f"a message must have at most {self.limit_bytes} bytes; got {len(frame)}.")
        envelope: Envelope = _decode(self._envelope, frame, "envelope")
        for what, must, got in (
            ("wire version", WIRE_VERSION, envelope.version),
            ("protocol", self.protocol, envelope.protocol),
            ("sender", sender, envelope.sender),
        ):
            if must != got:
                raise RemoteProtocolError(f"the message's {what} must be {must!r}; got {got!r}.")
        if envelope.session != session:
            raise RemoteProtocolError(
                f"the message must belong to session {session.hex()[:8]}; it names {envelope.session.hex()[:8]}."
            )
        return envelope

    def request(self, body: Raw) -> Message:
        """Decode a message from a coordinator."""
        message: Message = _decode(self._requests, body, "request")
        return message

    def reply(self, body: Raw) -> Message:
        """Decode a message from a party."""
        message: Message = _decode(self._replies, body, "reply")
        return message


def _decode(decoder: msgspec.msgpack.Decoder[Any], data: bytes | Raw, what: str) -> Any:
    """Decode; whatever a hostile sender can cause becomes one kind of error, which never quotes what was sent."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise RemoteProtocolError(
            f"a {what} must decode to one of the protocol's types; it does not ({type(error).__name__})."
        ) from None
