"""What TLS is given at either end, and what both ends of gRPC are set to."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from cloister.errors import MissingExtraError
from cloister.runtime.remote.chunks import CHUNK_BYTES

TRANSPORT = "gRPC over TLS"
METHOD_SERVICE, METHOD = "cloister.Run", "TakePart"
_KEEPALIVE_MS, _KEEPALIVE_TIMEOUT_MS = 10_000, 5_000


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """One end's key and certificates, and whom it trusts.

    Attributes
    ----------
    key_pem, certificates_pem
        Its own.
    trusted_pem
        The certificates of the other ends, and nothing else: whoever issued them has no say here.
    server_name
        At a party: the DNS name in that certificate; it proves nothing, but TLS asks for one.
    """

    key_pem: bytes = field(repr=False)
    certificates_pem: bytes
    trusted_pem: bytes
    server_name: str = "cloister.invalid"

    @property
    def own(self) -> bytes:
        """Our own certificate (DER)."""
        return read_certificate(self.certificates_pem)

    @property
    def peer(self) -> bytes:
        """At a party: the coordinator's certificate."""
        return read_certificate(self.trusted_pem)


def read_certificate(pem: bytes) -> bytes:
    """Return the first certificate in PEM as DER."""
    end = b"-----END CERTIFICATE-----"
    start = pem.index(b"-----BEGIN CERTIFICATE-----")
    first = pem[start : pem.index(end, start) + len(end)]
    return ssl.PEM_cert_to_DER_cert(first.decode("ascii"))


def require_grpc() -> None:
    """Raise `MissingExtraError` where grpcio is not installed."""
    try:
        import grpc.aio  # noqa: F401, PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError("a session between organisations", "grpcio", "net") from None


def common_options() -> list[tuple[str, int]]:
    """Return what both ends set: lengths, and pings that notice a dead link, also where a middlebox acknowledges."""
    return [
        ("grpc.max_receive_message_length", CHUNK_BYTES + 1),
        ("grpc.max_send_message_length", CHUNK_BYTES + 1),
        ("grpc.max_metadata_size", 8192),
        ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        ("grpc.http2.ping_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
