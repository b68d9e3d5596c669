"""One small port for metrics and health: GET and nothing else, in the event loop of the run, which it must not harm.

A request has 4 KiB and five seconds, an answer as long. Eight callers are served at once, and twenty a second; all
others are hung up on. A connection answers once and is closed. Who calls is not asked: by default only this machine
can.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from cloister.errors import ConfigError

LOOPBACK = "127.0.0.1"
_HEAD_BYTES, _PATIENCE_S = 4096, 5.0
_CALLERS_MOST, _ANSWERS_MOST, _ANSWERS_IN_S = 8, 20, 1.0
_BACKLOG = 16
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
Page = Callable[[], tuple[str, bytes]]
"""Makes a page: the type of its content, and the content."""


def read_place(text: str) -> tuple[str, int]:
    """Read ``[HOST:]PORT``; the host is this machine alone by default."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdecimal() and int(port) < 2**16) or bool(colon) != bool(host):
        raise ConfigError(f"--metrics must be [HOST:]PORT; got {text!r}. Write: --metrics 9464")
    return host or LOOPBACK, int(port)


class Pages:
    """Serves pages.

    Parameters
    ----------
    pages
        By path.
    """

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self._callers = 0
        self._answered: deque[float] = deque()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chooses if it is 0."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=_HEAD_BYTES, backlog=_BACKLOG)
        except OSError as error:
            raise ConfigError(
                f"metrics must have a free port of this machine; {host}:{port} is not: {error.strerror or error}. "
                "Choose another with --metrics [HOST:]PORT."
            ) from None
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Hang up on everyone."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._callers >= _CALLERS_MOST or not self._may_answer():
            writer.transport.abort()
            return
        self._callers += 1
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    writer.write(self._answer(await _read_head(reader)))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        finally:
            self._callers -= 1
            writer.transport.abort()

    def _may_answer(self) -> bool:
        now = asyncio.get_running_loop().time()
        while self._answered and self._answered[0] < now - _ANSWERS_IN_S:
            self._answered.popleft()
        if len(self._answered) >= _ANSWERS_MOST:
            return False
        self._answered.append(now)
        return True

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        path, _, version = rest.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            return _write(400, "text/plain", b"a request must be HTTP/1\n")
        if method != b"GET":
            return _write(405, "text/plain", b"only GET\n", b"Allow: GET\r\n")
        page = self._pages.get(path.partition(b"?")[0].decode("latin-1"))
        if page is None:
            return _write(404, "text/plain", (" ".join(self._pages) + "\n").encode())
        return _write(200, *page())


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Read a request up to the empty line; what is longer, or ends before, is no request."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
        return b""


def _write(status: int, kind: str, content: bytes, more: bytes = b"") -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
    )
    return head.encode() + more + b"\r\n" + content
