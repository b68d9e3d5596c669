"""A party's call: gRPC over mutual TLS, through a CONNECT proxy where the environment names one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from cloister.runtime.remote.channel import LostError, Stream
from cloister.runtime.remote.memory import keep_memory
from cloister.runtime.remote.tls import METHOD, METHOD_SERVICE, TlsFiles, common_options

_LEAVE_S = 1.0
_REASONS = {  # what gRPC says, and what we make of it
    "CERTIFICATE_VERIFY_FAILED": "Somebody answers there, but without the coordinator's certificate: compare the "
    "address and its public key file.",
    "Socket closed": "Somebody answers there and ends the connection at once: it may not have our public key file.",
    "Connection reset": "Somebody answers there and ends the connection at once: it may not have our public key file.",
    "Connection refused": "Nobody listens there.",
    "lookup": "The host's name cannot be looked up.",
    "response code 407": "The proxy wants a user and a password, and does not take ours.",
    "response code": "The proxy does not let us through to that address.",
}
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")  # of the environment, as gRPC looks them up


class _ClientStream:
    def __init__(self, call: Any, peer: bytes, end: Callable[[], Awaitable[None]]) -> None:
        self._call, self._end = call, end
        self.peer = peer

    async def read(self) -> bytes:
        import grpc  # noqa: PLC0415 (an extra)

        chunk = await _guard(self._call.read())
        if chunk is grpc.aio.EOF:
            raise LostError
        return bytes(chunk)

    async def write(self, chunk: bytes) -> None:
        await _guard(self._call.write(chunk))

    async def close(self) -> None:
        with suppress(LostError):
            await _guard(self._call.done_writing())
        await self._end()


async def connect(address: str, tls: TlsFiles) -> Stream:
    """Open a stream to the coordinator, on a connection of its own.

    The proxy, if any, is that of ``https_proxy`` or ``grpc_proxy``, with a password too; ``no_proxy`` is honoured.

    Raises
    ------
    LostError
        If nobody answers there, or somebody who does not hold the key of the coordinator's certificate.
    """
    line = SharedConnection(address, tls)
    return await line.open(end=line.close)


class SharedConnection:
    """One connection to the coordinator for the streams of several parties, whose certificate is the same.

    HTTP/2 carries each stream with its own flow control: a party that reads slowly does not hold up the others.

    Parameters
    ----------
    address, tls
        As for `connect`.
    """

    def __init__(self, address: str, tls: TlsFiles) -> None:
        self._address, self._tls = address, tls
        self._channel: Any = None
        keep_memory()

    async def open(self, *, end: Callable[[], Awaitable[None]] | None = None) -> Stream:
        """Open a stream; ``end`` is called when it is closed. Errors as of `connect`."""
        if self._channel is None:
            self._channel = _make_channel(self._address, self._tls)
        call = self._channel.stream_stream(f"/{METHOD_SERVICE}/{METHOD}")()
        try:
            await _guard(_wait(call))
        except BaseException:
            call.cancel()
            if end is not None:
                await end()
            raise

        async def cancel() -> None:
            """End this stream, and nothing else: what was sent is given a moment to leave."""
            with suppress(LostError, TimeoutError):
                async with asyncio.timeout(_LEAVE_S):
                    await _guard(call.code())
            call.cancel()

        return _ClientStream(call, self._tls.peer, end or cancel)

    async def close(self) -> None:
        """End all streams; what was sent has left."""
        if self._channel is not None:
            await self._channel.close(grace=_LEAVE_S)


def _make_channel(address: str, tls: TlsFiles) -> Any:
    import grpc  # noqa: PLC0415 (an extra)

    credentials = grpc.ssl_channel_credentials(
        root_certificates=tls.trusted_pem, private_key=tls.key_pem, certificate_chain=tls.certificates_pem
    )
    return grpc.aio.secure_channel(
        address,
        credentials,
        options=[
            *common_options(),
            ("grpc.ssl_target_name_override", tls.server_name),
            ("grpc.default_authority", tls.server_name),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_retries", 0),
            ("grpc.service_config_disable_resolution", 1),
        ],
    )


async def _wait(call: Any) -> None:
    """Wait for the connection; where TLS fails, say so."""
    import grpc  # noqa: PLC0415 (an extra)

    try:
        await call.wait_for_connection()
    except grpc.RpcError as error:
        details = str(getattr(error, "details", lambda: "")())
        why = next((text for sign, text in _REASONS.items() if sign in details), "")
        proxy = next((name for name in _PROXIES if os.environ.get(name)), None)
        through = f"The way there may be through the proxy of {proxy}." if proxy else ""
        raise LostError(f"{why} {through}".strip()) from None


async def _guard(call: Awaitable[Any]) -> Any:
    import grpc  # noqa: PLC0415 (an extra)

    try:
        return await call
    except (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError):
        raise LostError from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # we are told to stop; otherwise it was the call
        raise LostError from None
