"""Whom TLS does not let in is heard of once each, and gRPC's own lines fill no screen; all other lines stay."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
from contextlib import suppress

import pytest

from cloister.runtime.remote.events import Refused

pytest.importorskip("grpc")
SCRIPT = """
import os, sys
from cloister.runtime.remote.grpc_log import hear_handshakes
from tests.runtime.remote.test_grpc_log import knock
heard = []
print("before", file=sys.stderr)
with hear_handshakes(heard.append):
    knock()
    os.write(2, b"from C\\n")
    print("from Python", file=sys.stderr)
print("after", file=sys.stderr)
os.write(2, b"from C, after\\n")
print(sorted(event.reason for event in heard))
"""


def knock():
    """What strangers do at a port: speak HTTP, show no certificate, show one of their own."""
    from cloister.runtime.remote.grpc_server import GrpcServer
    from cloister.runtime.remote.tls import TlsFiles
    from tests.deployment.organisations import TLS_NAME, make_certificate

    async def never(stream):
        raise AssertionError("nobody gets in")

    async def main():
        key, certificate = make_certificate("coordinator")
        tls = TlsFiles(
            key_pem=key, certificates_pem=certificate, trusted_pem=make_certificate("north")[1], server_name=TLS_NAME
        )
        server = GrpcServer(tls, never, calls_most=2)
        port = await server.start("127.0.0.1:0")
        for stranger in (speak_http, show_nothing, show_a_certificate):
            with suppress(OSError):
                await asyncio.to_thread(stranger, port)
        await asyncio.sleep(0.2)
        await server.stop()

    asyncio.run(main())


def speak_http(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        line.recv(1)


def show_nothing(port, files=()):
    context = ssl._create_unverified_context()
    for certificate, key in files:
        context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=5)) as line:
        line.recv(1)


def show_a_certificate(port):
    import tempfile
    from pathlib import Path

    from tests.deployment.organisations import make_certificate

    with tempfile.TemporaryDirectory() as name:
        key, certificate = make_certificate("stranger")
        (Path(name) / "key").write_bytes(key)
        (Path(name) / "certificate").write_bytes(certificate)
        show_nothing(port, [(f"{name}/certificate", f"{name}/key")])


def test_who_is_not_let_in_is_told_and_nothing_else_is_swallowed():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["['CERTIFICATE', 'HANDSHAKE', 'NO_CERTIFICATE']"], done.stderr
    assert sorted(done.stderr.splitlines()) == ["after", "before", "from C", "from C, after", "from Python"]


def test_a_line_about_a_handshake_is_an_event_whoever_has_standard_error():
    from cloister.runtime.remote.grpc_log import hear_handshakes

    heard, before = [], os.stat(2)
    with hear_handshakes(heard.append):
        os.write(2, b"I1119 ssl_transport_security.cc:2563] Handshake failed with error SSL_ERROR_SSL: something new\n")
    assert heard == [Refused("", "HANDSHAKE")]
    assert os.stat(2) == before


def test_lines_about_a_proxy_are_not_shown_and_others_are(capfd):
    from cloister.runtime.remote.grpc_log import hear_handshakes

    with hear_handshakes():
        os.write(2, b"E1119 http_connect_client_handshaker.cc:114] HTTP proxy handshake with ipv4:127.0.0.1:1 failed\n")
        os.write(2, b"=== Source Location Trace: ===\nsrc/core/util/status_helper.cc:68\n\nothers\n\n")
    assert capfd.readouterr().err == "others\n\n"


def test_an_observer_that_fails_does_not_stop_grpc():
    """Nobody would read the pipe, and whoever writes to it would wait for ever."""
    from cloister.runtime.remote.grpc_log import hear_handshakes

    def fail(event):
        raise ValueError("a bug")

    line = b"I1119 Handshake failed with error " + b"x" * 200 + b"\n"
    with hear_handshakes(fail):
        for _ in range(1000):  # more than a pipe holds
            os.write(2, line)
