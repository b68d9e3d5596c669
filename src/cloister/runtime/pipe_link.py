"""The hub's end of one process's pipes: messages by length, waits that can be given up, and how a process ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from cloister.errors import RemoteProtocolError
from cloister.runtime import pipe_messages as messages

_CHUNK_BYTES = 1 << 16
_END_S = 10.0  # a process that was told to end and does not is killed


class Link:
    """A process, and the messages to and from it."""

    def __init__(self, process: asyncio.subprocess.Process, limit_bytes: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._limit_bytes = process, limit_bytes
        self._sink, self._source = process.stdin, process.stdout
        self._listening: asyncio.Task[messages.PipeMessage | None] | None = None

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.returncode is None

    def send(self, message: messages.PipeMessage) -> None:
        """Send a message; to a process that is gone it goes nowhere."""
        if self.alive and not self._sink.is_closing():
            self._sink.write(messages.encode(message, self._limit_bytes))

    def listen(self) -> asyncio.Task[messages.PipeMessage | None]:
        """Return the wait for the next message: the same one until it is taken."""
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._read())
        return self._listening

    def take(self) -> messages.PipeMessage | None:
        """Take a message that has come; None: the process is gone."""
        assert self._listening is not None
        message, self._listening = self._listening.result(), None
        return message

    async def receive(self, deadline_s: float | None = None) -> messages.PipeMessage | None:
        """Wait for the next message; None: the process is gone, or has not said anything in time."""
        await asyncio.wait([self.listen()], timeout=deadline_s)
        return self.take() if self.listen().done() else None

    async def _read(self) -> messages.PipeMessage | None:
        try:
            length = messages.read_length(await self._source.readexactly(messages.HEADER_BYTES), self._limit_bytes)
            return messages.decode(await self._source.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError, RemoteProtocolError):
            await self._reap()  # what has closed its end, or broken the rules, is not heard again
            return None

    async def _reap(self) -> None:
        """Wait until the process is gone, and read what it left: a pipe that is never read to its end stays open."""
        if self.alive:
            self.process.kill()
        await self.process.wait()
        self._sink.close()
        while await self._source.read(_CHUNK_BYTES):
            pass

    async def kill(self) -> None:
        """Kill the process, as a machine that stops would."""
        if self.alive:
            self.process.kill()
        if self._listening is not None:
            await asyncio.wait([self._listening])  # it comes to the end of what there is to read
        await self._reap()

    async def end(self) -> None:
        """Let the process end; kill it if it does not."""
        self._sink.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _END_S)
        await self.kill()
