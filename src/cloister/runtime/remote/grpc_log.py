"""Whom TLS does not let in: gRPC tells its own log on standard error, and nobody else.

So both ends read that log: file descriptor 2 becomes a pipe, Python's own messages go where they went before, and so
does every line that is not about a handshake, with a proxy or in TLS. At the coordinator those about TLS become events:
strangers who knock cannot fill a screen or a disk with them, and the operator learns why a party does not get in. A
party's own error says why it does not get in.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cloister.runtime.remote.events import CERTIFICATE, HANDSHAKE, NO_CERTIFICATE, Observe, Refused, ignore

_SIGN = b"Handshake failed"
_OF_PROXIES = (b"HTTP proxy handshake", b"=== Source Location Trace", b"src/core/")
_REASONS = {
    b"CERTIFICATE_VERIFY_FAILED": CERTIFICATE,
    b"DID_NOT_RETURN_A_CERTIFICATE": NO_CERTIFICATE,
}
_LINE_MOST_BYTES = 4096


@contextmanager
def hear_handshakes(observe: Observe = ignore) -> Iterator[None]:
    """Tell of each handshake that fails, from another thread, until the block ends."""
    try:
        earlier, own = os.dup(2), sys.stderr
    except OSError:  # nobody has standard error
        yield
        return
    read_end, write_end = os.pipe()
    is_ours = _find_descriptor(own) == 2
    if is_ours:
        own.flush()
        sys.stderr = os.fdopen(os.dup(earlier), "w", buffering=1, encoding=own.encoding, errors=own.errors)
    os.dup2(write_end, 2)
    os.close(write_end)
    reader = threading.Thread(target=_read, args=(read_end, earlier, observe), name="gRPC's log", daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.dup2(earlier, 2)  # the pipe's last writer: the reader ends
        reader.join()
        os.close(earlier)
        if is_ours:
            sys.stderr.close()
            sys.stderr = own


def _read(read_end: int, earlier: int, observe: Observe) -> None:
    is_of_proxy = False
    with os.fdopen(read_end, "rb") as lines:
        for line in iter(lambda: lines.readline(_LINE_MOST_BYTES), b""):
            with suppress(Exception):  # whatever happens, the pipe must not fill: gRPC would wait for us
                if _SIGN in line:
                    reason = next((reason for sign, reason in _REASONS.items() if sign in line), HANDSHAKE)
                    observe(Refused("", reason))
                    continue
                is_of_proxy = any(sign in line for sign in _OF_PROXIES) or (is_of_proxy and not line.strip())
                if not is_of_proxy:
                    os.write(earlier, line)


def _find_descriptor(stream: object) -> int:
    try:
        return int(stream.fileno())  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return -1
