"""Assembly: from a job to roles that can run, for ONE party, for the coordinator, or for everybody.

Every participant computes the public side (`open_session`) for itself, from the job and from what everyone knows. Then a
party takes its seat with its own table and its own books, and the coordinator with neither. A simulation seats everybody
in one process; a deployment seats one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.crypto import Entropy
from cloister.data.aligned_table import AlignedTable
from cloister.errors import DataError
from cloister.job import Job, OwnSide
from cloister.privacy.books import Books
from cloister.privacy.release import NoiseDuty
from cloister.protocol import Charges, Clustering, OwnInput, PublicInput, find_protocol
from cloister.roles import Coordinator, Party, Seat
from cloister.sessions.alignment import Aligned
from cloister.sessions.books import make_sampler, open_books, open_coordinator_duty
from cloister.sessions.tables import OwnTable


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """The public side of one clustering session, the same at everyone who takes part.

    Attributes
    ----------
    job
        What runs: the job that was agreed, or the one that stands in for it.
    protocol, agreed, charges
        Its protocol, what that protocol agreed on, and what is paid.
    id
        Which session this is.
    notes
        What the reader of its result must know about how it came about.
    """

    job: Job
    protocol: Clustering[Any]
    agreed: Any
    charges: Charges | None
    id: bytes
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class SeatedParty:
    """ONE party that is ready to answer: its role, and its books where there is a budget."""

    role: Party
    books: Books | None


def open_session(job: Job, directory: tuple[bytes, ...], public: PublicInput, *, session: bytes) -> Session:
    """Compute the public side of a session.

    Parameters
    ----------
    job
        The contract.
    directory
        The parties' public identities, in the job's order.
    public
        What everyone knows besides.
    session
        Which session this is.
    """
    protocol, notes = find_protocol(job), ()
    stand_in = protocol.stand_in(job, public)
    if stand_in is not None:
        job, notes = stand_in.job, (stand_in.why,)
        protocol = find_protocol(job)
    agreed = protocol.agree(job, directory, public)
    return Session(
        job=job, protocol=protocol, agreed=agreed, charges=protocol.charges(agreed), id=session, notes=notes
    )


def seat_party(session: Session, seat: Seat, own: OwnInput, side: OwnSide, *, seed: int | None, cache: Any) -> SeatedParty:
    """Seat ONE party. Its books are open and nothing is paid yet (`cloister.sessions.books.prepay`).

    Parameters
    ----------
    session, seat
        What was agreed, and the party's place in it.
    own, side
        What it brings, and where its ledger is.
    seed
        Makes its noise reproducible, and no longer secret.
    cache
        What it shares with others in the same process.
    """
    books, duty = None, None
    name = session.job.parties[seat.number - 1].name
    if session.charges is not None and session.charges.parties_pay:
        books = open_books(session.job, name, side, own.records, charges=session.charges, session=session.id)
        duty = NoiseDuty(charger=books, sampler=make_sampler(name, seed))
    role = session.protocol.seat(session.agreed, seat, own, duty=duty, cache=cache)
    return SeatedParty(role=role, books=books)


def seat_coordinator(
    session: Session, entropy: Entropy, *, seed: int | None
) -> tuple[Coordinator[Any], NoiseDuty | None]:
    """Seat the coordinator; returns its role, and its books where it adds the noise."""
    duty = None if session.charges is None else open_coordinator_duty(session.charges, seed)
    return session.protocol.coordinate(session.agreed, session=session.id, entropy=entropy, duty=duty), duty


def take_input(job: Job, party: str, table: OwnTable, aligned: Aligned | None, public: PublicInput) -> OwnInput:
    """Return what ONE party brings: its table, or the part of it that has a place in the common order."""
    if job.protocol.facts.split == "rows":
        assert table.table is not None
        places = None if aligned is None else aligned.alignments[party].places
        return OwnInput(records=table.table, places=places)
    records = public.records
    assert records is not None
    if table.table is None or aligned is None:
        if table.table is not None and table.table.check().records != records:
            raise DataError(f"{table.label}: it must have as many rows as all others, {records}; it has other ones.")
        return OwnInput(records=AlignedTable(table.table, np.arange(records, dtype=np.int64)))
    return OwnInput(records=AlignedTable(table.table, aligned.alignments[party].rows))


def know_publicly(
    job: Job, tables: Mapping[str, OwnTable], aligned: Aligned | None, server: Any = None
) -> PublicInput:
    """Return what everyone knows once records are aligned: how many there are, and in which order."""
    if aligned is not None:
        return PublicInput(server=server, records=aligned.count, alignment=aligned.digest)
    if job.protocol.facts.split == "rows":
        return PublicInput(server=server)
    counts = {name: table.table.check().records for name, table in tables.items() if table.table is not None}
    if len(set(counts.values())) != 1:
        raise DataError(
            "tables with data.aligned = true must have equally many rows, in the same order; got "
            + ", ".join(f"{name} {count}" for name, count in counts.items())
            + '. Remove aligned and name the column of IDs: [data] id = "COLUMN".'
        )
    return PublicInput(server=server, records=next(iter(counts.values())))


def list_books(parties: Sequence[SeatedParty]) -> tuple[Books, ...]:
    """Return the books of those that keep some."""
    return tuple(party.books for party in parties if party.books is not None)
