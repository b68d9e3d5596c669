"""What stands between two ends in the tests: a relay that can cut, stall and delay, and a CONNECT proxy."""

import asyncio
import base64
from contextlib import suppress


async def end(server, writers, tasks):
    """Leave nothing open."""
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0.05)


class Relay:
    """Passes bytes on from a port of its own; what it does to them can change at any time."""

    def __init__(self, port=None):
        self.to = port
        self._open, self._welcome = asyncio.Event(), asyncio.Event()
        self._open.set()
        self._welcome.set()
        self.delay_s = 0.0
        self.is_refusing = False
        self.connections = 0
        self.bytes_passed = 0
        self._mute_until = 0
        self._writers, self._tasks = set(), set()

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def stall(self):
        """Nothing passes any more, and nobody is told."""
        self._open.clear()

    def go_on(self):
        self._open.set()

    def hold(self):
        """Let new connections wait."""
        self._welcome.clear()

    def release(self):
        self._welcome.set()

    def mute(self):
        """Swallow what comes on the connections that there are, and tell nobody; new ones work."""
        self._mute_until = self.connections

    def cut(self):
        """Reset all connections that there are."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def stop(self):
        await end(self._server, self._writers, self._tasks)

    async def _serve(self, reader, writer):
        if self.is_refusing or self.to is None:
            writer.transport.abort()
            return
        self.connections += 1
        number = self.connections
        self._tasks.add(asyncio.current_task())
        self._writers.add(writer)
        with suppress(OSError, asyncio.CancelledError):
            await self._welcome.wait()
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.to)
            self._writers.add(there_writer)
            await asyncio.gather(self._pass(reader, there_writer, number), self._pass(there_reader, writer, number))
        writer.transport.abort()

    async def _pass(self, reader, writer, number):
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._open.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                self.bytes_passed += len(data)
                if number > self._mute_until:
                    writer.write(data)
                    await writer.drain()
        if number > self._mute_until:
            writer.close()


class ConnectProxy:
    """An HTTP proxy that knows CONNECT only, and wants a password."""

    def __init__(self, user="", password=""):
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._wanted = f"proxy-authorization: basic {token}".lower() if user else ""
        self.asked = []
        self.refused = 0
        self._writers, self._tasks = set(), set()

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self):
        await end(self._server, self._writers, self._tasks)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self._writers.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split("\r\n", 1)[0].split()
            if self._wanted and self._wanted not in head.lower():
                self.refused += 1
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                writer.close()
                return
            assert method == "CONNECT"
            self.asked.append(target)
            host, _, port = target.rpartition(":")
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1" if host else host, int(port))
            self._writers.add(there_writer)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer))

    async def _pass(self, reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()
