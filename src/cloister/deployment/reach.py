"""Whether the coordinator can be reached: connects, hears its first word, and hangs up. Nothing is said or spent.

It does not say who calls: a party that is in a run at the same time keeps its connection.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from cloister.credentials import OwnKeys, PublicKeyFile
from cloister.deployment.keys import make_end
from cloister.errors import RefusedError
from cloister.job import COORDINATOR, Job
from cloister.runtime.remote.channel import Channel, LostError
from cloister.runtime.remote.grpc_client import connect
from cloister.runtime.remote.grpc_log import hear_handshakes
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.messages import MAJOR, Challenge, Refusal
from cloister.runtime.remote.participant import UnreachableError
from cloister.runtime.remote.tls import TlsFiles, require_grpc

_PATIENCE_S = 20.0


def reach_coordinator(job: Job, own: OwnKeys, coordinator: PublicKeyFile, address: str) -> str:
    """Try the way to the coordinator; return what was found.

    Parameters
    ----------
    job, own
        The job, and our keys.
    coordinator
        Its public file: TLS trusts this certificate and no other.
    address
        ``host:port``.

    Raises
    ------
    UnreachableError
        If nobody answers there, or somebody else does.
    RefusedError
        If its version does not understand ours.
    """
    require_grpc()
    tls = make_end(job, own, {COORDINATOR: coordinator}, deadlines=Deadlines()).tls
    try:
        with hear_handshakes():
            challenge = asyncio.run(_hear(address, tls))
    except (LostError, TimeoutError) as error:
        raise UnreachableError(
            f"the coordinator must answer at {address}, with the certificate of {coordinator.name}.pub, and trust "
            "ours; it does not. Is it running, is the address right, does a firewall or proxy let us through, and do "
            f"both ends have each other's newest public file? {error}".rstrip()
        ) from None
    if challenge.major != MAJOR:
        raise RefusedError(Refusal.VERSION.text)
    return f"{address} answers over TLS, with its certificate, in version {challenge.major}.{challenge.minor}"


async def _hear(address: str, tls: TlsFiles) -> Challenge:
    async with asyncio.timeout(_PATIENCE_S):
        stream = await connect(address, tls)
        try:
            message = await Channel(stream, is_coordinator=False).receive()
        finally:
            with suppress(LostError):
                await stream.close()
    assert isinstance(message, Challenge)  # nothing else may come first
    return message
