"""Messages over one stream of chunks: what a transport must offer, and one end of a connection over it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from cloister.runtime.remote.chunks import Assembler, split
from cloister.runtime.remote.connection import Connection, State
from cloister.runtime.remote.messages import LinkMessage


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
    """

    def __init__(self, stream: Stream, *, is_coordinator: bool) -> None:
        self.stream = stream
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
            for chunk in split(*self.connection.send(message)):
                await self.stream.write(chunk)

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
            message = self._assembler.feed(chunk, self.connection.limit_bytes)
            if message is not None:
                return self.connection.receive(message)

    async def close(self) -> None:
        """End the stream."""
        await self.stream.close()
