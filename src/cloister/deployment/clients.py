"""Many clients of one job in one process: each with its own identity, table, ledger and role; one connection for all.

Every client greets, consents and confirms for itself, and its vectors are masked like anyone's. TLS knows only whoever
hosts them: each client's identity signs the host's certificate, so that it may speak for the client on this connection.
The process holds all tables and keys: its clients must trust whoever runs it.

Clients keep no journals: one that is killed is silent from then on, as a phone that is switched off. What it was
charged stays charged, and its ledger does not let it back into a run that is paid for: it would draw noise anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cloister.crypto import Identity
from cloister.deployment.ends import End, Housemates, participate
from cloister.errors import AbsentError, CloisterError, own_error
from cloister.job import Job, Setup
from cloister.privacy.ledger import LedgerSession
from cloister.protocol import PublicInput
from cloister.report.result import Result
from cloister.runtime.remote.greeting import Agreed
from cloister.runtime.remote.grpc_client import SharedConnection
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.participant import Together
from cloister.runtime.remote.tls import TlsFiles
from cloister.sessions.assembly import Session, open_session


@dataclass(frozen=True, kw_only=True)
class Client:
    """One client: what the job calls it, and its identity."""

    name: str
    identity: Identity = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Host:
    """What one process of clients holds.

    Attributes
    ----------
    setup
        The job, with the own sides of the clients that it hosts.
    clients
        They.
    agreed, tls, deadlines
        What all hold; the host's TLS key and certificate; how long to wait.
    """

    setup: Setup
    clients: Sequence[Client]
    agreed: Agreed
    tls: TlsFiles
    deadlines: Deadlines


@dataclass(frozen=True, kw_only=True)
class ClientOutcome:
    """How one client's part ended: with a result, or with an error, which only its host sees."""

    name: str
    result: Result | None = None
    error: CloisterError | None = None


async def take_part_together(
    host: Host, *, address: str, on_end: Callable[[ClientOutcome], None] = lambda outcome: None
) -> None:
    """Take part as each of the clients of a host; ``on_end`` is told of each when its part has ended."""
    connection, sessions = SharedConnection(address, host.tls), _SharedSessions(host.agreed)
    housemates = Housemates(connection=connection, together=Together(), open_session=sessions.open)

    async def run(client: Client) -> None:
        result, error = None, None
        try:
            result = await _take_part(host, client, address, housemates)
        except AbsentError as absent:
            error = own_error(absent)
        except CloisterError as caught:
            error = caught
        on_end(ClientOutcome(name=client.name, result=result, error=error))

    try:
        async with asyncio.TaskGroup() as group:
            for client in host.clients:
                group.create_task(run(client))
    finally:
        await connection.close()
        housemates.together.worker.stop()


async def _take_part(host: Host, client: Client, address: str, housemates: Housemates) -> Result:
    end = End(
        identity=client.identity,
        tls=host.tls,
        journal_key=b"",
        agreed=host.agreed,
        deadlines=host.deadlines,
    )

    def close_ledger(name: str, ledger: LedgerSession) -> None:
        """Close its file until it is used: a process may open fewer files than it has clients."""
        ledger.ledger.close()

    return await participate(
        host.setup,
        client.name,
        end,
        address=address,
        keep=lambda result, labels, sign: None,
        on_ledger=close_ledger,
        housemates=housemates,
    )


class _SharedSessions:
    """The public side of each session, computed once: it follows from what all hold."""

    def __init__(self, agreed: Agreed) -> None:
        self._agreed = agreed
        self._made: dict[tuple[bytes, int | None], Session] = {}

    def open(self, job: Job, public: PublicInput, session: bytes) -> Session:
        """Open a session; all clients have the same public table, and rows that need no common order."""
        key = session, public.records
        if key not in self._made:
            self._made[key] = open_session(job, self._agreed.directory, public, session=session)
        return self._made[key]
