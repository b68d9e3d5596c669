"""A process for ONE role of a session: ``python -m cloister.cli.role_process``, driven over pipes (runtime.pipes).

A party's process reads its own table and nobody else's, computes the public side for itself, and keeps its own books;
the coordinator's has no table. What a party has found comes back at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
from msgspec import Struct

from cloister.crypto import Identity, make_entropy
from cloister.errors import ConfigError, RemoteProtocolError
from cloister.job import COORDINATOR, Job, OwnSide, Setup
from cloister.jobfile.reader import parse_job
from cloister.privacy.books import prepay
from cloister.protocol import OwnInput, PublicInput, Seat, read_public_input
from cloister.runtime.piped_role import Opening, PipedRole, serve
from cloister.sessions.assembly import (
    Session,
    know_alignment,
    open_session,
    seat_coordinator,
    seat_party,
    take_input,
)
from cloister.sessions.tables import OwnTable, open_own_table
from cloister.wire import Array, CoordinatorEndpoint, PartyEndpoint


class RoleTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one process is told.

    Attributes
    ----------
    job
        The text of the contract.
    folder
        Where relative paths in it start from.
    session
        Which session this is.
    party
        Whose seat to take; None: the coordinator's.
    data
        Its table; None for the coordinator, and for a party without columns.
    seed
        Makes keys and noise reproducible, and no longer secret.
    """

    job: str
    folder: str
    session: bytes
    party: str | None = None
    data: str | None = None
    seed: int | None = None

    def encode(self) -> bytes:
        """Return it as bytes."""
        return msgspec.msgpack.encode(self)


class PartyReport(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one party has at the end.

    Attributes
    ----------
    centres
        (k, d) in [-1, 1]^d; None if it did not stay to the end.
    cluster_records
        About how many records each holds, where that was released.
    charged
        The names of the releases that its books were charged for.
    """

    centres: Array | None = None
    cluster_records: tuple[float, ...] = ()
    charged: tuple[str, ...] = ()


def read_report(raw: bytes) -> PartyReport:
    """Read what a party's process wrote."""
    return msgspec.msgpack.decode(raw, type=PartyReport)


class _WaitingRole:
    """One role, before everyone's identities are known."""

    def __init__(self, body: bytes) -> None:
        try:
            self._task = msgspec.msgpack.decode(body, type=RoleTask)
        except msgspec.MsgspecError:
            raise RemoteProtocolError("a task must be that of one role; it is not.") from None
        job = parse_job(self._task.job)
        name = self._task.party
        own = {} if name is None or self._task.data is None else {name: OwnSide(data=Path(self._task.data))}
        self._setup = Setup(job=job, own=own, folder=Path(self._task.folder), seed=self._task.seed)
        self._identity: Identity | None = None
        self._table: OwnTable | None = None
        if name is not None:
            self._identity = Identity(make_entropy(f"identity of {name}", seed=self._task.seed))
            parties = {party.name: party for party in job.parties}
            if name not in parties:
                raise ConfigError(f"a role must be one of the job's parties; {name!r} is not. Check the job's names.")
            self._table = open_own_table(self._setup, parties[name], {})
        self._public = _know_records(job, name, self._table, read_public_input(self._setup))

    @property
    def identity(self) -> bytes:
        """Our public identity; the coordinator has none."""
        return b"" if self._identity is None else self._identity.public_bytes

    def seat(self, directory: tuple[bytes, ...]) -> PipedRole:
        """Take the seat."""
        session = open_session(self._setup.job, directory, self._public, session=self._task.session)
        codec = session.protocol.codec(session.agreed)
        if self._task.party is None:
            entropy = make_entropy(COORDINATOR, seed=self._task.seed)
            coordinator, _ = seat_coordinator(session, entropy, seed=self._task.seed)
            return PipedRole(endpoint=CoordinatorEndpoint(coordinator, codec=codec, session=session.id))
        return self._seat_party(session, self._task.party)

    def _seat_party(self, session: Session, name: str) -> PipedRole:
        assert self._identity is not None
        assert self._table is not None
        job, seed = session.job, self._task.seed
        number = 1 + [party.name for party in job.parties].index(name)
        seat = Seat(
            number=number,
            identity=self._identity,
            entropy=make_entropy(f"party {number}", seed=seed),
            session=session.id,
        )
        own: OwnInput = take_input(job, name, self._table, None, self._public)
        seated = seat_party(session, seat, own, self._setup.own_side(name), self._table, seed=seed)
        books, protocol = seated.books, session.protocol
        if books is not None and session.charges is not None:
            prepay([books], session.charges.prepaid)

        def find(outcome: Mapping[str, int | bool]) -> bytes:
            found = protocol.find(session.agreed, seated.role, SimpleNamespace(**outcome))
            charged = () if books is None else tuple(one.name for one in books.accountant.spent().releases)
            report = PartyReport(charged=charged)
            if found is not None:
                report = msgspec.structs.replace(
                    report, centres=Array.of(found.centres), cluster_records=found.cluster_records
                )
            return msgspec.msgpack.encode(report)

        codec = protocol.codec(session.agreed)
        return PipedRole(
            endpoint=PartyEndpoint(seated.role, number=number, codec=codec, session=session.id),
            find=find,
            close=lambda: protocol.close(seated.role),
        )


def _know_records(job: Job, name: str | None, table: OwnTable | None, public: PublicInput) -> PublicInput:
    """Add how many records there are where columns are split: from our own table, else from the job."""
    if job.data.id is not None:
        raise ConfigError("records must be in the same order at all parties of a session over pipes; data.id is set.")
    if job.protocol.facts.split == "rows":
        return public
    if name is not None and table is not None and table.table is not None:
        return know_alignment(job, {name: table}, None, public)
    if job.data.records is None:
        raise ConfigError("data.records must be given where a role has no table, over pipes; it is left out.")
    return replace(public, records=job.data.records)


def open_role(body: bytes) -> Opening:
    """Read a role's task, and its own table.

    Raises
    ------
    CloisterError
        If the task, the job or the table does not hold what it must.
    """
    return _WaitingRole(body)


if __name__ == "__main__":
    serve(open_role)
