"""The coordinator's port: gRPC over mutual TLS, one call for each connection, bytes in and bytes out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from cloister.errors import ConfigError
from cloister.runtime.remote.channel import LostError, Stream
from cloister.runtime.remote.descriptors import raise_file_limit
from cloister.runtime.remote.memory import keep_memory
from cloister.runtime.remote.tls import METHOD, METHOD_SERVICE, TlsFiles, common_options, read_certificate

_HANDSHAKE_MS = 10_000
_SPARE_CALLS = 64
_STOP_S = 2.0
_OF_ONE_CERTIFICATE = 64
"""Connections: a host has one for each of its processes, and on each the streams of thousands of clients."""
_BEGIN = b"-----BEGIN CERTIFICATE-----"


class _ServerStream:
    def __init__(self, context: Any, eof: object) -> None:
        self._context, self._eof = context, eof
        certificates = context.auth_context().get("x509_pem_cert") or [b""]
        self.peer = read_certificate(certificates[0])

    async def read(self) -> bytes:
        chunk = await self._guard(self._context.read())
        if chunk is self._eof:
            raise LostError
        return bytes(chunk)

    async def write(self, chunk: bytes) -> None:
        await self._guard(self._context.write(chunk))

    async def close(self) -> None:
        """Nothing to do: the call ends when its handler returns."""

    async def _guard(self, call: Awaitable[Any]) -> Any:
        import grpc  # noqa: PLC0415 (an extra)

        try:
            return await call
        except (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError):
            raise LostError from None


class GrpcServer:
    """A port on which parties call.

    Parameters
    ----------
    tls
        Our key and certificates; every caller needs one that is trusted.
    serve
        Serves one connection.
    calls_most
        How many connections there may be at once, parties' and strangers'.
    """

    def __init__(self, tls: TlsFiles, serve: Callable[[Stream], Awaitable[None]], *, calls_most: int) -> None:
        import grpc  # noqa: PLC0415 (an extra)

        async def handle(request_iterator: object, context: Any) -> None:
            try:
                stream = _ServerStream(context, grpc.aio.EOF)
            except ValueError:  # no certificate: TLS has let nobody in without one
                return
            await serve(stream)

        raise_file_limit(min(calls_most, _OF_ONE_CERTIFICATE * tls.trusted_pem.count(_BEGIN)) + _SPARE_CALLS)
        keep_memory()
        self._server = grpc.aio.server(
            maximum_concurrent_rpcs=calls_most + _SPARE_CALLS,
            options=[
                *common_options(),
                ("grpc.so_reuseport", 0),
                ("grpc.max_concurrent_streams", calls_most),  # a process may hold many parties
                ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
                ("grpc.http2.min_ping_interval_without_data_ms", 1000),
                ("grpc.http2.max_ping_strikes", 0),
            ],
        )
        handler = grpc.stream_stream_rpc_method_handler(handle)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(METHOD_SERVICE, {METHOD: handler}),)
        )
        self._credentials = grpc.ssl_server_credentials(
            [(tls.key_pem, tls.certificates_pem)], root_certificates=tls.trusted_pem, require_client_auth=True
        )

    async def start(self, address: str) -> int:
        """Listen on ``host:port``; returns the port, which the system chooses if it is 0."""
        try:
            port: int = self._server.add_secure_port(address, self._credentials)
        except RuntimeError:
            port = 0
        if port == 0:
            raise ConfigError(
                f"the coordinator must be able to listen on its address; it cannot on {address}. Another program may "
                "use the port, or the host is not this machine's: choose another with --listen HOST:PORT."
            )
        await self._server.start()
        return port

    async def stop(self) -> None:
        """End all connections, and free the port."""
        await self._server.stop(_STOP_S)
