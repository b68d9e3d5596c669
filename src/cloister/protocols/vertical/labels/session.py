"""The session for labels: its roles, and what a job, a finding and the number of records make of it."""

from __future__ import annotations

import numpy as np

from cloister.crypto import Entropy
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.privacy.release import NoiseDuty
from cloister.protocol import Finding, LabelSession, OwnInput, PublicInput, Roles
from cloister.protocols.vertical.coordinator import RelayOutcome, coordinate_vertical
from cloister.protocols.vertical.labels.agreement import LabelsAgreement
from cloister.protocols.vertical.labels.party import LabelsComputing, LabelsHolder, LabelsParty
from cloister.protocols.vertical.messages import CODEC
from cloister.protocols.vertical.options import PartyRoles, assign_roles, describe_context
from cloister.protocols.vertical.relayed import gather_columns
from cloister.protocols.vertical.settings import Settings
from cloister.records import FloatArray, IntArray
from cloister.report.result import CellBook
from cloister.roles import Coordinator, Party, Seat
from cloister.wire import Codec


class LabelRoles(Roles[LabelsAgreement]):
    """The roles of a session for labels."""

    def codec(self, agreed: LabelsAgreement) -> Codec:
        """The messages of a vertical session."""
        return CODEC

    def seat(self, agreed: LabelsAgreement, seat: Seat, own: OwnInput, *, duty: NoiseDuty | None = None) -> LabelsParty:
        """Seat one party."""
        kind = LabelsComputing if seat.number == agreed.computing else LabelsHolder
        return kind(seat, agreed, gather_columns(own.records))

    def coordinate(
        self, agreed: LabelsAgreement, *, session: bytes, entropy: Entropy, duty: NoiseDuty | None = None
    ) -> Coordinator[RelayOutcome]:
        """Seat the relay."""
        return coordinate_vertical(agreed, session=session)

    def close(self, party: Party) -> None:
        """Overwrite the key holder's key."""
        if isinstance(party, LabelsHolder):
            party.close()


def open_label_session(
    job: Job, directory: tuple[bytes, ...], public: PublicInput, finding: Finding, *, records: int
) -> LabelSession:
    """Agree on a session for the labels of aligned records.

    Raises
    ------
    ConfigError
        If the job's columns are not split as those of the finding's cells are.
    """
    roles = assign_roles(job)
    agreed = LabelsAgreement(
        settings=Settings(
            clusters=job.k,
            columns_alice=roles.columns[roles.computing],
            columns_encrypted=tuple(roles.columns[party] for party in roles.encrypted),
            records=records,
            residuals=False,
        ),
        model=roles.model,
        computing=roles.computing + 1,
        encrypted=tuple(party + 1 for party in roles.encrypted),
        key_holders=tuple(party + 1 for party in roles.key_holders),
        directory=directory,
        context=describe_context(job, public.alignment),
        reps=_match_cells(job, roles, finding.codebooks),
        centres=finding.centres,
        granted=tuple(party + 1 for party in roles.labels),
    )
    return LabelSession(roles=LabelRoles(), agreed=agreed, granted=agreed.granted, read=_read_labels)


def _read_labels(party: Party) -> IntArray:
    assert isinstance(party, LabelsParty)
    return party.exact_labels


def _match_cells(job: Job, roles: PartyRoles, codebooks: tuple[CellBook, ...]) -> tuple[FloatArray, ...]:
    """Return the cells of each encrypted party, in its own order of columns."""
    books = {frozenset(book.columns): book for book in codebooks}
    reps = []
    for party in roles.encrypted:
        names = [job.coordinates[column].name for column in roles.columns[party]]
        book = books.pop(frozenset(names), None)
        if book is None:
            raise _describe_split(codebooks)
        order = [book.columns.index(name) for name in names]
        reps.append(np.ascontiguousarray(np.array(book.cells)[:, order]))
    if books:
        raise _describe_split(codebooks)
    return tuple(reps)


def _describe_split(codebooks: tuple[CellBook, ...]) -> ConfigError:
    held = "; ".join(", ".join(book.columns) for book in codebooks)
    return ConfigError(
        f"the encrypted columns must be split as in the result ({held}), the others at the computing party; they are "
        "not. Correct columns in [[parties]], or computing in [protocol]."
    )
