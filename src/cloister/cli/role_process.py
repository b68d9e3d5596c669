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

from cloister.crypto import Entropy, Identity, make_entropy
from cloister.errors import ConfigError, RemoteProtocolError
from cloister.job import COORDINATOR, Job, OwnSide, Setup
from cloister.jobfile.reader import parse_job
from cloister.privacy.books import make_sampler, prepay
from cloister.privacy.samplers import Sampler
from cloister.protocol import OwnInput, PublicInput, Seat, read_public_input
from cloister.runtime.piped_role import Opening, PipedRole, serve
from cloister.runtime.resuming import Memory, guard_coordinator, guard_party
from cloister.sessions.assembly import (
    Session,
    know_alignment,
    open_session,
    seat_coordinator,
    seat_party,
    take_input,
)
from cloister.sessions.tables import OwnTable, open_own_table
from cloister.wire import Array


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
    journal, journal_key
        Where the role writes down what it needs to go on after a kill, and the key that seals it.
    """

    job: str
    folder: str
    session: bytes
    party: str | None = None
    data: str | None = None
    seed: int | None = None
    journal: str | None = None
    journal_key: bytes = b""

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
        self._memory: Memory | None = None
        if self._task.journal is not None:
            self._memory = Memory(Path(self._task.journal), key=self._task.journal_key, session=self._task.session)
        if name is not None:
            self._identity = Identity(self._make_entropy(f"identity of {name}"))
            parties = {party.name: party for party in job.parties}
            if name not in parties:
                raise ConfigError(f"a role must be one of the job's parties; {name!r} is not. Check the job's names.")
            self._table = open_own_table(self._setup, parties[name], {})
        self._public = _know_records(job, name, self._table, read_public_input(self._setup))

    def _make_entropy(self, label: str) -> Entropy:
        if self._memory is None or self._task.seed is not None:
            return make_entropy(label, seed=self._task.seed)
        return self._memory.make_entropy(label)

    def _make_sampler(self, role: str) -> Sampler:
        sampler = make_sampler(role, self._task.seed)
        return sampler if self._memory is None else self._memory.keep_noise(sampler)

    @property
    def identity(self) -> bytes:
        """Our public identity; the coordinator has none."""
        return b"" if self._identity is None else self._identity.public_bytes

    def seat(self, directory: tuple[bytes, ...]) -> PipedRole:
        """Take the seat."""
        session = open_session(self._setup.job, directory, self._public, session=self._task.session)
        if self._task.party is not None:
            return self._seat_party(session, self._task.party)
        sampler = self._make_sampler(COORDINATOR)
        role, _ = seat_coordinator(session, self._make_entropy(COORDINATOR), sampler=sampler)
        codec = session.protocol.codec(session.agreed)
        endpoint = guard_coordinator(role, codec=codec, session=session.id, memory=self._memory)
        return PipedRole(endpoint=endpoint, end=self._forget)

    def _forget(self) -> None:
        if self._memory is not None:
            self._memory.wipe()

    def _seat_party(self, session: Session, name: str) -> PipedRole:
        assert self._identity is not None
        assert self._table is not None
        job = session.job
        number = 1 + [party.name for party in job.parties].index(name)
        seat = Seat(
            number=number,
            identity=self._identity,
            entropy=self._make_entropy(f"party {number}"),
            session=session.id,
        )
        entropy = self._make_entropy(f"persons of {name}")
        own: OwnInput = take_input(job, name, self._table, None, self._public, entropy)
        sampler, seeded = self._make_sampler(name), self._task.seed is not None
        side = self._setup.own_side(name)
        seated = seat_party(session, seat, own, side, self._table, sampler=sampler, seeded=seeded)
        books, protocol = seated.books, session.protocol
        if books is not None and session.charges is not None:
            resumed = self._memory is not None and self._memory.is_resumed
            prepay([books], session.charges.prepaid, resumed=resumed)

        def find(outcome: Mapping[str, int | bool]) -> bytes:
            found = protocol.find(session.agreed, seated.role, SimpleNamespace(**outcome))
            charged = () if books is None else tuple(one.name for one in books.accountant.spent().releases)
            report = PartyReport(charged=charged)
            if found is not None:
                sizes = () if found.sizes is None else found.sizes.clusters
                report = msgspec.structs.replace(report, centres=Array.of(found.centres), cluster_records=sizes)
            return msgspec.msgpack.encode(report)

        codec = protocol.codec(session.agreed)
        return PipedRole(
            endpoint=guard_party(seated.role, number=number, codec=codec, session=session.id, memory=self._memory),
            find=find,
            end=self._forget,
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
