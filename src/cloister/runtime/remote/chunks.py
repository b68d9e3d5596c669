"""Messages in chunks: a sender never holds the line with a long message, a receiver never believes a length.

A chunk is one byte, 1 if the message goes on and 0 if it ends, and at most 1 MiB of the message. Every chunk but the
last is full, so a message within its limit has a bounded number of them; nothing is put aside before it has come.
"""

from __future__ import annotations

from collections.abc import Iterator

from cloister.errors import RemoteProtocolError

CHUNK_BYTES = 2**20
_MORE, _LAST = b"\1", b"\0"


def split(message: bytes) -> Iterator[bytes]:
    """Yield the chunks of a message, each made when it is asked for."""
    whole = memoryview(message)
    last = max(0, len(message) - 1) // CHUNK_BYTES * CHUNK_BYTES
    for start in range(0, last, CHUNK_BYTES):
        yield b"".join((_MORE, whole[start : start + CHUNK_BYTES]))
    yield b"".join((_LAST, whole[last:]))


class Assembler:
    """Puts chunks together again."""

    def __init__(self) -> None:
        self._parts: list[memoryview] = []
        self._length = 0

    def feed(self, chunk: bytes, limit_bytes: int) -> bytes | None:
        """Take a chunk; return the message if it is the last one of it.

        Raises
        ------
        RemoteProtocolError
            If it is no chunk, or makes the message longer than the limit; the connection cannot go on.
        """
        head, part = chunk[:1], memoryview(chunk)[1:]
        if head not in (_MORE, _LAST) or len(part) > CHUNK_BYTES or (head == _MORE and len(part) < CHUNK_BYTES):
            raise RemoteProtocolError("a message must come in full chunks and a last one; this one does not.")
        self._length += len(part)
        if self._length > limit_bytes:
            raise RemoteProtocolError(f"a message must have at most {limit_bytes} bytes here; this one has more.")
        self._parts.append(part)
        if head == _MORE:
            return None
        message = b"".join(self._parts)
        self._parts, self._length = [], 0
        return message
