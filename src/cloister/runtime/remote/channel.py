"""Messages over one stream of chunks: what a transport must offer, and one end of a connection over it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from cloister.runtime.remote.chunks import Assembler, split
from cloister.runtime.remote.connection import Connection, State
from cloister.runtime.remote.events import Observe, Passed, ignore
from cloister.runtime.remote.messages import LinkMessage, Packed


class LostError(Exception):
    """The stream has ended, or is too slow: the other end may come back on another one; the text says why, if known."""


class Stream(Protocol):
    """A stream of chunks in both directions. Whatever ends it is a `LostError`; the end never means more."""

    peer: bytes
    """The other end's certificate (DER), as TLS has shown it."""

    async def read(self) -> bytes:
        """Return the next chunk."""

    async def write(self, chunk: bytes) -> None:
        """Send a chunk; returns when there is room for more."""

    async def close(self) -> None:
        """End the stream; what was sent has left."""


class Channel:
    """One end of one connection.

    Parameters
    ----------
    stream
        What carries it.
    is_coordinator
        Which end.
    observe
        Told of each message that passes once it is known who is at the other end.

    Attributes
    ----------
    peer
        Who is at the other end; empty until that is proved.
    """

    def __init__(self, stream: Stream, *, is_coordinator: bool, observe: Observe = ignore) -> None:
        self.stream, self.peer, self._observe = stream, "", observe
        self.connection = Connection(is_coordinator=is_coordinator)
        self.replaced = asyncio.Event()
        """Set when the same party has another connection."""
        self._assembler = Assembler()
        self._sending = asyncio.Lock()

    @property
    def state(self) -> State:
        """Where the connection is."""
        return self.connection.state

    async def send(self, message: LinkMessage) -> None:
        """Send a message.

        Raises
        ------
        LostError
            If it cannot arrive: the stream has ended, or the other end has closed the connection.
        """
        async with self._sending:
            if self.state is State.CLOSED:
                raise LostError
            packed = self.connection.send(message)
            for chunk in split(*packed):
                await self.stream.write(chunk)
        self._note(message, packed, is_sent=True)

    async def receive(self) -> LinkMessage:
        """Return the next message.

        Raises
        ------
        LostError
            If the stream has ended.
        RemoteProtocolError
            If the other end broke the rules; the connection is closed.
        """
        while True:
            if self.state is State.CLOSED:
                raise LostError
            chunk = await self.stream.read()
            packed = self._assembler.feed(chunk, self.connection.limit_bytes)
            if packed is not None:
                message = self.connection.receive(packed)
                self._note(message, packed, is_sent=False)
                return message

    async def close(self) -> None:
        """End the stream."""
        await self.stream.close()

    def _note(self, message: LinkMessage, packed: Packed, *, is_sent: bool) -> None:
        if self.peer:
            self._observe(Passed(self.peer, type(message).__name__, sum(map(len, packed)), is_sent))
