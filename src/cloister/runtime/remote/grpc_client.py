"""A party's call: gRPC over mutual TLS, through a CONNECT proxy where the environment names one."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from cloister.runtime.remote.channel import LostError, Stream
from cloister.runtime.remote.tls import METHOD, METHOD_SERVICE, TlsFiles, common_options

_REASONS = {  # what gRPC says, and what we make of it
    "CERTIFICATE_VERIFY_FAILED": "Somebody answers there, but without the coordinator's certificate: compare the "
    "address and its public key file.",
    "Socket closed": "Somebody answers there and ends the connection at once: it may not have our public key file.",
    "Connection reset": "Somebody answers there and ends the connection at once: it may not have our public key file.",
    "Connection refused": "Nobody listens there.",
    "lookup": "The host's name cannot be looked up.",
}


class _ClientStream:
    def __init__(self, channel: Any, call: Any, peer: bytes) -> None:
        self._channel, self._call = channel, call
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
        await self._channel.close(grace=1.0)


async def connect(address: str, tls: TlsFiles) -> Stream:
    """Open a stream to the coordinator.

    The proxy, if any, is that of ``https_proxy`` or ``grpc_proxy``, with a password too; ``no_proxy`` is honoured.

    Raises
    ------
    LostError
        If nobody answers there, or somebody who does not hold the key of the coordinator's certificate.
    """
    import grpc  # noqa: PLC0415 (an extra)

    credentials = grpc.ssl_channel_credentials(
        root_certificates=tls.trusted_pem, private_key=tls.key_pem, certificate_chain=tls.certificates_pem
    )
    channel = grpc.aio.secure_channel(
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
    try:
        call = channel.stream_stream(f"/{METHOD_SERVICE}/{METHOD}")()
        await _guard(_wait(call))
    except BaseException:
        await channel.close()
        raise
    return _ClientStream(channel, call, tls.peer)


async def _wait(call: Any) -> None:
    """Wait for the connection; where TLS fails, say so."""
    import grpc  # noqa: PLC0415 (an extra)

    try:
        await call.wait_for_connection()
    except grpc.RpcError as error:
        details = str(getattr(error, "details", lambda: "")())
        raise LostError(next((text for sign, text in _REASONS.items() if sign in details), "")) from None


async def _guard(call: Awaitable[Any]) -> Any:
    import asyncio  # noqa: PLC0415

    import grpc  # noqa: PLC0415 (an extra)

    try:
        return await call
    except (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError):
        raise LostError from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # we are told to stop; otherwise it was the call
        raise LostError from None
