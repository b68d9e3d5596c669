"""Assembly: from a job to roles that are ready to run, for ONE party, for the coordinator, or for everybody.

Every participant computes the public side (`open_session`) itself, from the job and from what everyone knows. A party
then takes its seat with its own table and its own books; the coordinator has neither. A simulation seats everybody in
one process; a deployment seats one participant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloister.crypto import Entropy
from cloister.data.common_order import AlignedTable
from cloister.data.persons import PERSON_KEY_BYTES, choose_records
from cloister.errors import ConfigError, DataError, told_to_owner
from cloister.job import Job, OwnSide
from cloister.privacy.books import Books, Charges, open_books, open_coordinator_duty
from cloister.privacy.ledger import UNDECLARED, Ledger, LedgerSession, fingerprint_records
from cloister.privacy.ledger.schema import make_folder
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import Sampler
from cloister.privacy.units import PersonBudget
from cloister.protocol import Clustering, Coordinator, OwnInput, Party, PublicInput, Seat, resolve_protocol
from cloister.sessions.alignment import Aligned
from cloister.sessions.tables import OwnTable


@dataclass(frozen=True, kw_only=True, eq=False)
class Session:
    """The public side of one clustering session, the same for everyone who takes part.

    Attributes
    ----------
    job
        The job that runs: the one that was agreed, or its stand-in.
    protocol, agreed, charges
        Its protocol, the parameters agreed on, and what is charged.
    id
        The session's ID.
    notes
        What the reader of the result must know about how the job was chosen.
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
        What else everyone knows.
    session
        The session's ID.
    """
    job, protocol, why = resolve_protocol(job, public)
    agreed = protocol.agree(job, directory, public)
    return Session(job=job, protocol=protocol, agreed=agreed, charges=protocol.charges(agreed), id=session, notes=why)


def seat_party(
    session: Session, seat: Seat, own: OwnInput, side: OwnSide, table: OwnTable, *, sampler: Sampler, seeded: bool
) -> SeatedParty:
    """Seat ONE party. Its books are open and nothing has been paid yet (`cloister.privacy.books.prepay`).

    Parameters
    ----------
    session, seat
        What was agreed, and the party's place in it.
    own, side, table
        Its input, where its ledger is and what data set it charges there, and the whole table, for warnings.
    sampler
        Draws its noise.
    seeded
        Whether that comes from a seed: then a ledger is never charged as for a private run.

    Raises
    ------
    BudgetError
        If all rounds together exceed the budget.
    AbsentError
        If the party's ledger or records keep it out; its owner alone is told why.
    """
    books, duty = None, None
    name = session.job.parties[seat.number - 1].name
    if session.charges is not None and session.charges.parties_pay:
        with told_to_owner(name):
            ledger = _open_ledger(session, session.charges, side, table, seeded=seeded)
        books = open_books(name, charges=session.charges, ledger=ledger)
        duty = NoiseDuty(charger=books, sampler=sampler)
    with told_to_owner(name, but=(ConfigError,)):
        role = session.protocol.seat(session.agreed, seat, own, duty=duty)
    return SeatedParty(role=role, books=books)


def _open_ledger(
    session: Session, charges: Charges, side: OwnSide, table: OwnTable, *, seeded: bool
) -> LedgerSession | None:
    """Open one party's ledger; None for a party that holds no records."""
    if side.ledger is None or table.table is None:
        return None
    make_folder(side.ledger.parent)
    ledger = Ledger(side.ledger)
    rows = table.table.raw_batches()
    return LedgerSession(
        ledger,
        dataset=side.dataset or UNDECLARED,
        job=session.job.name,
        session=session.id,
        budget=charges.budget,
        fingerprint=fingerprint_records(rows, columns=len(table.table.columns), salt=ledger.salt),
        seeded=seeded,
    )


def seat_coordinator(
    session: Session, entropy: Entropy, *, sampler: Sampler
) -> tuple[Coordinator[Any], NoiseDuty | None]:
    """Seat the coordinator; return its role, and its books if it adds the noise."""
    duty = None
    if session.charges is not None:
        duty = open_coordinator_duty(session.charges, sampler)
    return session.protocol.coordinate(session.agreed, session=session.id, entropy=entropy, duty=duty), duty


def take_input(
    job: Job, party: str, table: OwnTable, aligned: Aligned | None, public: PublicInput, entropy: Entropy
) -> OwnInput:
    """Return ONE party's input: its table, or the part of it that has a place in the common order, or that counts.

    Where the unit is a person, ``entropy`` is the source of the key that decides which records count, one for each
    session.

    Raises
    ------
    AbsentError
        If its table does not have as many rows as all know, or has changed; its owner alone is told.
    """
    if job.protocol.facts.split == "rows":
        assert table.table is not None
        if isinstance(job.budget, PersonBudget):
            with told_to_owner(party):
                key = entropy.bytes(PERSON_KEY_BYTES)
                return OwnInput(records=choose_records(table.table, most=job.budget.records, key=key))
        places = None if aligned is None else aligned.alignments[party].places
        return OwnInput(records=table.table, places=places)
    records = public.records
    assert records is not None
    if table.table is None or aligned is None:
        if table.table is not None and table.table.check().records != records:
            with told_to_owner(party):
                raise DataError(f"{table.label}: the table must have {records} rows, like all others; it does not.")
        return OwnInput(records=AlignedTable(table.table, np.arange(records, dtype=np.int64)))
    return OwnInput(records=AlignedTable(table.table, aligned.alignments[party].rows))


def know_alignment(
    job: Job, tables: Mapping[str, OwnTable], aligned: Aligned | None, public: PublicInput
) -> PublicInput:
    """Add what everyone knows once records are aligned: their number and their order."""
    if aligned is not None:
        return replace(public, records=aligned.count, alignment=aligned.digest)
    if job.protocol.facts.split == "rows":
        return public
    counts = {name: table.table.check().records for name, table in tables.items() if table.table is not None}
    if len(set(counts.values())) != 1:
        raise DataError(
            "tables with data.aligned = true must have the same number of rows, in the same order; they do not. "
            'Agree on it as data.records, or remove aligned and name the column of IDs: [data] id = "COLUMN".'
        )
    return replace(public, records=next(iter(counts.values())))


def list_books(parties: Sequence[SeatedParty]) -> tuple[Books, ...]:
    """Return the books of the parties that keep any."""
    return tuple(party.books for party in parties if party.books is not None)
