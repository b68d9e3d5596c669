"""Messages in chunks: a sender never holds the line with a long message, a receiver never believes a length.

::

    first chunk     1 byte: 1 if more chunks follow, else 0;  3 bytes: the message's length;  the message;  of its frame
    the others      1 byte, as above;  of its frame

A chunk has at most 1 MiB behind its first byte, and every one but the last has that. A message fits the first one. So
what is within a limit has a bounded number of chunks; nothing is put aside before it has come; and a frame is put
together once, from the chunks themselves.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from cloister.errors import RemoteProtocolError

CHUNK_BYTES = 2**20
_LENGTH_BYTES = 3
_MORE, _LAST = b"\1", b"\0"


def split(message: bytes, frame: bytes) -> Iterator[bytes]:
    """Yield the chunks of a message and its frame, each made when it is asked for."""
    head, rest = len(message).to_bytes(_LENGTH_BYTES, "little") + message, memoryview(frame)
    room = CHUNK_BYTES - len(head)
    while len(rest) > room:
        yield b"".join((_MORE, head, rest[:room]))
        head, rest, room = b"", rest[room:], CHUNK_BYTES
    yield b"".join((_LAST, head, rest))


class Assembler:
    """Puts chunks together again."""

    def __init__(self) -> None:
        self._message: bytes | None = None
        self._frame = io.BytesIO()
        self._length = 0

    def feed(self, chunk: bytes, limit_bytes: int) -> tuple[bytes, bytes] | None:
        """Take a chunk; return a message and its frame if it is their last one.

        Raises
        ------
        RemoteProtocolError
            If it is no chunk, or makes both together longer than the limit; the connection cannot go on.
        """
        mark, part = chunk[:1], memoryview(chunk)[1:]
        if mark not in (_MORE, _LAST) or len(part) > CHUNK_BYTES or (mark == _MORE and len(part) < CHUNK_BYTES):
            raise RemoteProtocolError("a message must come in full chunks and a last one; this one does not.")
        if self._message is None:
            part = self._begin(part)
        self._length += len(part)
        if self._length > limit_bytes:
            raise RemoteProtocolError(f"a message must have at most {limit_bytes} bytes here; this one has more.")
        self._frame.write(part)
        if mark == _MORE:
            return None
        done = self._message or b"", self._frame.getvalue()
        self._message, self._frame, self._length = None, io.BytesIO(), 0
        return done

    def _begin(self, part: memoryview) -> memoryview:
        """Take the message off its first chunk."""
        end = _LENGTH_BYTES + int.from_bytes(part[:_LENGTH_BYTES], "little")
        if end > len(part):
            raise RemoteProtocolError("a message must be in its first chunk; this one is not.")
        self._message = bytes(part[_LENGTH_BYTES:end])
        self._length = len(self._message)
        return part[end:]
