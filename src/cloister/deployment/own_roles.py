"""The roles that ONE party takes in a run between organisations, made from its own table, books and alignment.

Each session leaves something for the next: an alignment, then a finding, then labels. All of it stays here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from cloister.agreement import OwnConsent
from cloister.crypto import Entropy, Identity, make_entropy
from cloister.deployment.course import ALIGNMENT, CLUSTERING, LABELS, add_facts, list_members, make_terms
from cloister.deployment.payment import Payment
from cloister.deployment.run_files import RunFiles
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.job import Job, Setup
from cloister.jobfile import check_own_policy
from cloister.privacy.accounting import Accountant
from cloister.privacy.books import JobBooks, make_sampler
from cloister.privacy.ledger import LedgerSession
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import Sampler
from cloister.protocol import SERVER, Explanation, Finding, PublicInput, Seat, find_protocol, read_public_input
from cloister.protocols.align.alignment import Alignment, check_alignments, check_ids
from cloister.protocols.align.party import AlignParty
from cloister.protocols.align.terms import CODEC
from cloister.report.labels import PartyLabels
from cloister.runtime.remote import messages
from cloister.runtime.remote.greeting import Agreed
from cloister.runtime.remote.messages import Facts
from cloister.runtime.resuming import Memory, guard_party
from cloister.sessions.alignment import Aligned, load_alignment
from cloister.sessions.assembly import SeatedParty, Session, open_session, seat_party, take_input
from cloister.sessions.results import describe_alignment, name_labels
from cloister.sessions.tables import OnTable, OwnTable, open_own_table
from cloister.wire import PartyEndpoint


@dataclass(kw_only=True, eq=False)
class OwnSession:
    """One session that this party is in."""

    start: messages.Start
    endpoint: PartyEndpoint
    limit_bytes: int
    end: Callable[[bytes], Facts]
    before_first: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None
    missed: int = 0
    done: messages.Done | None = None


@dataclass(frozen=True, kw_only=True)
class PartyPlace:
    """Who this party is, and what is its own.

    Attributes
    ----------
    setup
        The job, with this party's own side and nobody else's.
    name
        In the job.
    identity, agreed
        Its key, and what all hold.
    files
        Its journals; None to do without.
    consent
        Its consent to the job, which a run uses up; None if its owner agrees to every run.
    contract
        The job's text as this party read it, for its record; empty to write none.
    sources
        Its table, and the server's, in place of files.
    on_table, on_ledger
        Told what was found in its table, and what it holds of its ledger before anything is charged.
    open_session
        Computes the public side of a session; parties of one process may share what they compute.
    """

    setup: Setup
    name: str
    identity: Identity = field(repr=False)
    agreed: Agreed
    files: RunFiles | None
    consent: OwnConsent | None = None
    contract: str = ""
    sources: Mapping[str, object] = field(default_factory=dict, repr=False)
    on_table: OnTable | None = None
    on_ledger: Callable[[str, LedgerSession], None] | None = None
    open_session: Callable[[Job, PublicInput, bytes], Session] | None = None


class OwnRoles:
    """What ONE party holds, and the roles that it takes.

    Attributes
    ----------
    table, alignment
        Its own, once they are open.
    was_aligned
        Whether the alignment was made in this run.
    clustered
        What it found, and what the reader must know.
    labels
        Its labels, if it is granted any.
    ledger
        What it holds of its ledger.
    is_last
        Whether the session that has just ended was the last one.
    """

    def __init__(self, place: PartyPlace) -> None:
        self._place, self._job = place, place.setup.job
        self._number = 1 + list(place.agreed.parties).index(place.name)
        self._party = self._job.parties[self._number - 1]
        self._directory = place.agreed.directory
        self._server = PublicInput()
        self.table: OwnTable | None = None
        self.alignment: Alignment | None = None
        self.was_aligned = False
        self.clustered: tuple[Finding, Explanation] | None = None
        self.labels: PartyLabels | None = None
        self.ledger: LedgerSession | None = None
        self.is_last = False

    def open(self, start: messages.Start, *, resumed: bool) -> OwnSession:
        """Take the seat in a session."""
        makers = {ALIGNMENT: self._open_alignment, CLUSTERING: self._open_clustering, LABELS: self._open_labels}
        files = self._place.files
        memory = None if files is None else files.open_memory(start.kind, start.session)
        return makers[start.kind](start, memory, resumed)

    def open_table(self) -> None:
        """Open and check our own table, and the alignment that our own side names."""
        setup, sources = self._place.setup, self._place.sources
        self.table = open_own_table(setup, self._party, sources, self._place.on_table)
        self._server = read_public_input(setup, sources.get(SERVER))
        path = setup.own_side(self._place.name).alignment
        if path is not None and self.table.ids is not None:
            alignment, name = load_alignment(path), self._place.name
            mode = make_terms(self._job, self._directory).mode
            check_alignments({name: alignment}, {name: len(self.table.ids)}, mode=mode)
            check_ids(alignment, self.table.ids, label=self.table.label)
            self.alignment = alignment

    def know(self) -> Facts:
        """Say what everyone must know of our records: nothing, where rows are split and need no common order."""
        if self.alignment is not None:
            return Facts(records=self.alignment.count, alignment=self.alignment.digest)
        in_order = self._job.protocol.facts.split == "columns" and self._job.data.id is None
        if in_order and self.table is not None and self.table.table is not None:
            return Facts(records=self.table.table.check().records)
        return Facts()

    def _make_entropy(self, label: str, memory: Memory | None) -> Entropy:
        if memory is None or self._place.setup.seed is not None:
            return make_entropy(label, seed=self._place.setup.seed)
        return memory.make_entropy(label)

    def _make_sampler(self, memory: Memory | None) -> Sampler:
        sampler = make_sampler(self._place.name, self._place.setup.seed)
        return sampler if memory is None else memory.keep_noise(sampler)

    def _open_alignment(self, start: messages.Start, memory: Memory | None, resumed: bool) -> OwnSession:
        place, names = self._place, list_members(self._job, ALIGNMENT)
        if self.table is None or self.table.ids is None or self.alignment is not None:
            raise RemoteProtocolError("a session must align records that have IDs and no alignment; ours do not.")
        role = AlignParty(
            number=1 + names.index(place.name),
            terms=make_terms(self._job, [place.agreed.parties[name] for name in names]),
            ids=self.table.ids,
            identity=place.identity,
            entropy=self._make_entropy(f"align party {place.name}", memory),
            session=start.session,
        )
        endpoint = guard_party(
            role, number=1 + names.index(place.name), codec=CODEC, session=start.session, memory=memory
        )

        def end(outcome: bytes) -> Facts:
            self.alignment, self.was_aligned = role.alignment, True
            return self.know()

        return OwnSession(start=start, endpoint=endpoint, limit_bytes=CODEC.limit_bytes, end=end)

    def _check_facts(self, facts: Facts) -> None:
        """Refuse other records or another order than ours."""
        known = self.know()
        if known != Facts() and known != facts:
            raise RemoteProtocolError(
                "a session must be over the records and the alignment that this party has; it is over others. Compare "
                "the tables, or align them again."
            )

    def _open_clustering(self, start: messages.Start, memory: Memory | None, resumed: bool) -> OwnSession:
        place, job = self._place, self._job
        assert self.table is not None
        self._check_facts(start.facts)
        if self.table.ids is not None and self.alignment is None:
            raise RemoteProtocolError("records that have IDs must be aligned before they are clustered; ours are not.")
        public = add_facts(self._server, start.facts)
        session = self._open_session(public, start.session)
        if start.agreed != session.protocol.digest(session.agreed):  # before anything is paid
            raise RemoteProtocolError(
                "a session must have the public parameters that this party computes from the job; the "
                "coordinator's differ, although the job is the same. Nothing was charged. Compare versions of "
                "Cloister, and processors."
            )
        if session.job is not job:
            check_own_policy(place.setup, place.name, session.job)
        name = place.name
        aligned = None if self.alignment is None else Aligned(alignments={name: self.alignment})
        entropy = self._make_entropy(f"persons of {name}", memory)
        own = take_input(session.job, name, self.table, aligned, public, entropy)
        seated = seat_party(
            session,
            self._make_seat(start.session, "", memory),
            own,
            place.setup.own_side(name),
            self.table,
            sampler=self._make_sampler(memory),
            seeded=place.setup.seed is not None,
        )
        payment = Payment(session, seated.books, resumed=resumed, memory=memory)
        if seated.books is not None and seated.books.ledger is not None:
            self.ledger = seated.books.ledger
            if place.on_ledger is not None:
                place.on_ledger(name, seated.books.ledger)
        codec = session.protocol.codec(session.agreed)
        endpoint = guard_party(seated.role, number=self._number, codec=codec, session=start.session, memory=memory)

        def end(outcome: bytes) -> Facts:
            self._find_centres(session, seated, public, outcome)
            return self.know()

        def close() -> None:
            session.protocol.close(seated.role)
            if self.ledger is not None:
                self.ledger.ledger.close()

        return OwnSession(
            start=start,
            endpoint=endpoint,
            limit_bytes=codec.limit_bytes,
            end=end,
            before_first=payment.make,
            close=close,
        )

    def _open_session(self, public: PublicInput, session: bytes) -> Session:
        if self._place.open_session is not None:
            return self._place.open_session(self._job, public, session)
        return open_session(self._job, self._directory, public, session=session)

    def _find_centres(self, session: Session, seated: SeatedParty, public: PublicInput, outcome: bytes) -> None:
        """Take what we hold at the end of the clustering, and explain it from our own books."""
        protocol, agreed, seeded = session.protocol, session.agreed, self._place.setup.seed is not None
        heard = protocol.hear(agreed, outcome)
        finding = protocol.find(agreed, seated.role, heard)
        if finding is None:
            raise TooFewPartiesError(
                "a party must be there at the end of a session to have its result; this one was not. What was charged "
                "stays charged."
            )
        books = None
        if session.charges is not None:
            coordinator = None
            if not session.charges.parties_pay:
                accountant = Accountant(session.charges.budget)
                for release in protocol.list_coordinator_charges(agreed, heard):
                    accountant.charge(release)
                coordinator = NoiseDuty(charger=accountant, sampler=make_sampler("nobody", 0))
            books = JobBooks(
                charges=session.charges,
                leakage=protocol.leakage(agreed),
                parties=() if seated.books is None else (seated.books,),
                coordinator=coordinator,
                seeded=seeded,
            )
        make_card = None if books is None else books.make_card
        explanation = protocol.explain(session.job, agreed, finding, heard, make_card)
        about_books = () if books is None or explanation.card is None else books.describe_ledgers(explanation.card)
        about_order = describe_alignment(self._job, is_aligned=self.alignment is not None, by_session=self.was_aligned)
        notes = (*session.notes, *explanation.notes, *about_books, *about_order)
        self.clustered = finding, replace(explanation, notes=notes)
        labelling = find_protocol(self._job).label_session(self._job, self._directory, public, finding)
        if labelling is None:
            self.is_last = True

    def _open_labels(self, start: messages.Start, memory: Memory | None, resumed: bool) -> OwnSession:
        place, job = self._place, self._job
        if self.clustered is None or self.table is None:
            raise RemoteProtocolError("labels must come after a clustering; they do not.")
        self._check_facts(start.facts)
        public = add_facts(self._server, start.facts)
        labelling = find_protocol(job).label_session(job, self._directory, public, self.clustered[0])
        if labelling is None:
            raise RemoteProtocolError("labels must be granted by the job; they are not.")
        aligned = None if self.alignment is None else Aligned(alignments={place.name: self.alignment})
        entropy = self._make_entropy(f"labels: persons of {place.name}", memory)
        own = take_input(job, place.name, self.table, aligned, public, entropy)
        role = labelling.roles.seat(labelling.agreed, self._make_seat(start.session, "labels: ", memory), own)
        codec = labelling.roles.codec(labelling.agreed)
        endpoint = guard_party(role, number=self._number, codec=codec, session=start.session, memory=memory)

        def end(outcome: bytes) -> Facts:
            assert self.table is not None
            if self._number in labelling.granted:
                labels = labelling.read(role)
                self.labels = name_labels(job, place.name, self.table, self.alignment, labels)
            self.is_last = True
            return self.know()

        return OwnSession(
            start=start,
            endpoint=endpoint,
            limit_bytes=codec.limit_bytes,
            end=end,
            close=lambda: labelling.roles.close(role),
        )

    def _make_seat(self, session: bytes, prefix: str, memory: Memory | None) -> Seat:
        return Seat(
            number=self._number,
            identity=self._place.identity,
            entropy=self._make_entropy(f"{prefix}party {self._number}", memory),
            session=session,
        )
