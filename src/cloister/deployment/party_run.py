"""ONE party's part in a run between organisations: its table, its books, its role in each session, its own result.

All of it runs in one thread, driven by `cloister.runtime.remote.participant`. Whatever is wrong with the table, the
ledger or the files stays here: the coordinator hears that the party leaves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cloister.agreement import OwnConsent
from cloister.crypto import Entropy, Identity, make_entropy
from cloister.deployment.course import ALIGNMENT, CLUSTERING, LABELS, add_facts, list_members, make_terms
from cloister.deployment.proof import Proof
from cloister.deployment.run_files import Begun, Finished, RunFiles, Started
from cloister.errors import LedgerError, LocalProtocolError, RemoteProtocolError, TooFewPartiesError
from cloister.job import Setup
from cloister.jobfile import check_own_policy
from cloister.privacy.accounting import Accountant
from cloister.privacy.books import Books, JobBooks, make_sampler, prepay
from cloister.privacy.ledger import LedgerSession
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import Sampler
from cloister.protocol import SERVER, Explanation, Finding, PublicInput, Seat, find_protocol, read_public_input
from cloister.protocols.align import CODEC, Alignment, AlignParty, check_alignments, check_ids
from cloister.report.folder import Sign
from cloister.report.labels import PartyLabels
from cloister.report.result import Between, Result, TakingPart
from cloister.runtime import Traffic
from cloister.runtime.remote import greeting, messages
from cloister.runtime.remote.greeting import Agreed
from cloister.runtime.remote.messages import Facts
from cloister.runtime.remote.tls import TRANSPORT
from cloister.runtime.resuming import Memory, guard_party
from cloister.sessions.alignment import Aligned, load_alignment
from cloister.sessions.assembly import SeatedParty, Session, open_session, seat_party, take_input
from cloister.sessions.results import describe_alignment, make_result, name_labels
from cloister.sessions.tables import OnTable, OwnTable, open_own_table
from cloister.wire import PartyEndpoint

Keep = Callable[[Result, PartyLabels | None, Sign | None], None]
"""Keeps a party's result for good, with what makes its record; called before the journals are wiped."""


@dataclass(kw_only=True, eq=False)
class _OwnSession:
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


class PartyRun:
    """What ONE party does in a run (`cloister.runtime.remote.participant.Script`).

    Parameters
    ----------
    place
        Who and what.
    keep
        Keeps the result.
    """

    def __init__(self, place: PartyPlace, keep: Keep) -> None:
        self._place, self._keep = place, keep
        self._job = place.setup.job
        self._number = 1 + [party.name for party in self._job.parties].index(place.name)
        self._party = self._job.parties[self._number - 1]
        self._run = b""
        self._is_begun = False
        self._table: OwnTable | None = None
        self._server = PublicInput()
        self._alignment: Alignment | None = None
        self._aligned_here = False
        self._sessions: dict[str, _OwnSession] = {}
        self._clustered: tuple[Finding, Explanation] | None = None
        self._consents: tuple[messages.Consented, ...] = ()
        self._left: tuple[str, ...] = ()
        self._ledger: LedgerSession | None = None
        self.is_complete = False
        self.result: Result | None = None
        self.labels: PartyLabels | None = None

    # --- going on after a kill ----------------------------------------------------------------------------------------

    @property
    def run(self) -> bytes:
        """The run that we are in; empty before the first session."""
        return self._run if self._is_begun else b""

    def resume(self) -> None:
        """Go on from the journals, if there are any: the same sessions, the same answers."""
        files = self._place.files
        if files is None or files.run is None:
            return
        self._run, self._is_begun = files.run.run, True
        self._use_consent()
        self._open_table()
        for entry in files.recovered:
            if isinstance(entry, Started):
                self._begin(entry.start, resumed=True)
            elif isinstance(entry, Finished):
                self._end(entry.finish)

    # --- what the coordinator asks for --------------------------------------------------------------------------------

    def consent(self, run: bytes) -> messages.Consent:
        """Open our table, and agree to this run."""
        self._run = run
        if self._place.consent is not None:
            self._place.consent.check(run)
        if self._table is None:
            self._open_table()
        statement = greeting.consent_statement(self._place.agreed, run)
        return messages.Consent(self._place.identity.sign(*statement), self._know())

    def start(self, start: messages.Start) -> int:
        """Take our seat in a session, once."""
        known = self._sessions.get(start.kind)
        if known is not None:
            if known.start.session != start.session:
                raise RemoteProtocolError("a session must keep its ID; the coordinator has named another.")
            return known.limit_bytes
        greeting.check_consents(start.consents, self._place.agreed, self._run)
        files = self._place.files
        if not self._is_begun:
            if files is not None:
                files.write(Begun(1, self._run, ""))
            self._use_consent()
        if files is not None:
            files.write(Started(start))
        self._is_begun = True
        return self._begin(start, resumed=False).limit_bytes

    def answer(self, frame: bytes) -> bytes:
        """Answer a request of the session that is open."""
        session = next(reversed(self._sessions.values()))
        session.before_first()
        return session.endpoint.receive(frame)

    def finish(self, finish: messages.Finish) -> messages.Done:
        """Take note of a session's end."""
        session = self._find(finish.session)
        if session.done is None:
            if self._place.files is not None:
                self._place.files.write(Finished(finish))
            self._end(finish)
        assert session.done is not None
        return session.done

    def close(self, *, wipe: bool) -> None:
        """Wipe the roles' keys and close the ledger; with ``wipe``, the journals too."""
        for session in self._sessions.values():
            session.close()
        if self._place.files is not None:
            (self._place.files.wipe if wipe else self._place.files.close)()

    def _use_consent(self) -> None:
        if self._place.consent is not None:
            self._place.consent.use(self._run)

    # --- our own side -------------------------------------------------------------------------------------------------

    def _open_table(self) -> None:
        setup, sources = self._place.setup, self._place.sources
        self._table = open_own_table(setup, self._party, sources, self._place.on_table)
        self._server = read_public_input(setup, sources.get(SERVER))
        path = setup.own_side(self._place.name).alignment
        if path is not None and self._table.ids is not None:
            alignment, name = load_alignment(path), self._place.name
            mode = make_terms(self._job, tuple(self._place.agreed.parties.values())).mode
            check_alignments({name: alignment}, {name: len(self._table.ids)}, mode=mode)
            check_ids(alignment, self._table.ids, label=self._table.label)
            self._alignment = alignment

    def _know(self) -> Facts:
        """Say what everyone must know of our records: nothing, where rows are split and need no common order."""
        if self._alignment is not None:
            return Facts(records=self._alignment.count, alignment=self._alignment.digest)
        in_order = self._job.protocol.facts.split == "columns" and self._job.data.id is None
        if in_order and self._table is not None and self._table.table is not None:
            return Facts(records=self._table.table.check().records)
        return Facts()

    def _make_entropy(self, label: str, memory: Memory | None) -> Entropy:
        if memory is None or self._place.setup.seed is not None:
            return make_entropy(label, seed=self._place.setup.seed)
        return memory.make_entropy(label)

    def _make_sampler(self, memory: Memory | None) -> Sampler:
        sampler = make_sampler(self._place.name, self._place.setup.seed)
        return sampler if memory is None else memory.keep_noise(sampler)

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _begin(self, start: messages.Start, *, resumed: bool) -> _OwnSession:
        makers = {ALIGNMENT: self._open_alignment, CLUSTERING: self._open_clustering, LABELS: self._open_labels}
        if start.kind not in makers:
            raise RemoteProtocolError("a session must align, cluster or label; the coordinator has named another.")
        self._consents = start.consents
        files = self._place.files
        memory = None if files is None else files.open_memory(start.kind, start.session)
        session = makers[start.kind](start, memory, resumed)
        self._sessions[start.kind] = session
        return session

    def _end(self, finish: messages.Finish) -> None:
        session = self._find(finish.session)
        session.missed, self._left = finish.missed, finish.left
        facts = session.end(finish.outcome)
        digest = hashlib.sha256(finish.outcome).digest()
        statement = greeting.done_statement(self._place.agreed, self._run, finish.session, digest)
        session.done = messages.Done(finish.session, self._place.identity.sign(*statement), facts)

    def _find(self, session: bytes) -> _OwnSession:
        for one in self._sessions.values():
            if one.start.session == session:
                return one
        raise RemoteProtocolError("a session that ends must be one that began; it is not.")

    def _open_alignment(self, start: messages.Start, memory: Memory | None, resumed: bool) -> _OwnSession:
        place, names = self._place, list_members(self._job, ALIGNMENT)
        if self._table is None or self._table.ids is None or self._alignment is not None:
            raise RemoteProtocolError("a session must align records that have IDs and no alignment; ours do not.")
        role = AlignParty(
            number=1 + names.index(place.name),
            terms=make_terms(self._job, [place.agreed.parties[name] for name in names]),
            ids=self._table.ids,
            identity=place.identity,
            entropy=self._make_entropy(f"align party {place.name}", memory),
            session=start.session,
        )
        endpoint = guard_party(
            role, number=1 + names.index(place.name), codec=CODEC, session=start.session, memory=memory
        )

        def end(outcome: bytes) -> Facts:
            self._alignment, self._aligned_here = role.alignment, True
            return self._know()

        return _OwnSession(start=start, endpoint=endpoint, limit_bytes=CODEC.limit_bytes, end=end)

    def _check_facts(self, facts: Facts) -> None:
        """Refuse other records or another order than ours."""
        known = self._know()
        if known != Facts() and known != facts:
            raise RemoteProtocolError(
                "a session must be over the records and the alignment that this party has; it is over others. Compare "
                "the tables, or align them again."
            )

    def _open_clustering(self, start: messages.Start, memory: Memory | None, resumed: bool) -> _OwnSession:
        place, job = self._place, self._job
        assert self._table is not None
        self._check_facts(start.facts)
        public = add_facts(self._server, start.facts)
        session = open_session(job, tuple(place.agreed.parties.values()), public, session=start.session)
        if session.job is not job:
            check_own_policy(place.setup, place.name, session.job)
        name = place.name
        aligned = None if self._alignment is None else Aligned(alignments={name: self._alignment})
        own = take_input(session.job, name, self._table, aligned, public)
        seated = seat_party(
            session,
            self._make_seat(start.session, "", memory),
            own,
            place.setup.own_side(name),
            self._table,
            sampler=self._make_sampler(memory),
            seeded=place.setup.seed is not None,
        )
        payment = _Payment(session, seated.books, resumed=resumed, memory=memory)
        if seated.books is not None and seated.books.ledger is not None:
            self._ledger = seated.books.ledger
            if place.on_ledger is not None:
                place.on_ledger(name, seated.books.ledger)
        codec = session.protocol.codec(session.agreed)
        endpoint = guard_party(seated.role, number=self._number, codec=codec, session=start.session, memory=memory)

        def end(outcome: bytes) -> Facts:
            self._find_centres(session, seated, public, outcome)
            return self._know()

        def close() -> None:
            session.protocol.close(seated.role)
            if self._ledger is not None:
                self._ledger.ledger.close()

        return _OwnSession(
            start=start,
            endpoint=endpoint,
            limit_bytes=codec.limit_bytes,
            end=end,
            before_first=payment.make,
            close=close,
        )

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
        about_order = describe_alignment(
            self._job, is_aligned=self._alignment is not None, by_session=self._aligned_here
        )
        notes = (*session.notes, *explanation.notes, *about_books, *about_order)
        self._clustered = finding, replace(explanation, notes=notes)
        labelling = find_protocol(self._job).label_session(
            self._job, tuple(self._place.agreed.parties.values()), public, finding
        )
        if labelling is None:
            self._complete()

    def _open_labels(self, start: messages.Start, memory: Memory | None, resumed: bool) -> _OwnSession:
        place, job = self._place, self._job
        if self._clustered is None or self._table is None:
            raise RemoteProtocolError("labels must come after a clustering; they do not.")
        self._check_facts(start.facts)
        public = add_facts(self._server, start.facts)
        labelling = find_protocol(job).label_session(
            job, tuple(place.agreed.parties.values()), public, self._clustered[0]
        )
        if labelling is None:
            raise RemoteProtocolError("labels must be granted by the job; they are not.")
        aligned = None if self._alignment is None else Aligned(alignments={place.name: self._alignment})
        own = take_input(job, place.name, self._table, aligned, public)
        role = labelling.roles.seat(labelling.agreed, self._make_seat(start.session, "labels: ", memory), own)
        codec = labelling.roles.codec(labelling.agreed)
        endpoint = guard_party(role, number=self._number, codec=codec, session=start.session, memory=memory)

        def end(outcome: bytes) -> Facts:
            assert self._table is not None
            if self._number in labelling.granted:
                labels = labelling.read(role)
                self.labels = name_labels(job, place.name, self._table, self._alignment, labels)
            self._complete()
            return self._know()

        return _OwnSession(
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

    # --- the result ---------------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        """Make our own result, and keep it."""
        if self._clustered is None:
            raise LocalProtocolError("a result must come from a clustering; there was none: this is a bug.")
        finding, explanation = self._clustered
        own = Traffic()
        for kind, session in self._sessions.items():
            if kind == ALIGNMENT:
                continue
            passed = session.endpoint
            own = Traffic(
                bytes_sent=own.bytes_sent + passed.bytes_answered,
                bytes_received=own.bytes_received + passed.bytes_taken,
                messages_sent=own.messages_sent + passed.answered,
                messages_received=own.messages_received + passed.answered,
                steps_missed=own.steps_missed + session.missed,
            )
        self.result = make_result(
            self._job,
            explanation,
            finding,
            {self._place.name: own},
            ran="between organisations",
            between=Between(
                run=self._run.hex(),
                transport=TRANSPORT,
                parties=tuple(TakingPart(name=one.party, cloister_version=one.program) for one in self._consents),
                left=self._left,
            ),
            notes=explanation.notes,
            seeded=self._place.setup.seed is not None,
        )
        self._keep(self.result, self.labels, self._make_proof(finding).sign if self._place.contract else None)
        self.is_complete = True

    def _make_proof(self, finding: Finding) -> Proof:
        return Proof(
            party=self._place.name,
            identity=self._place.identity,
            contract=self._place.contract,
            digest=self._job.digest,
            run=self._run,
            sessions={kind: session.start.session for kind, session in self._sessions.items()},
            consents=self._consents,
            left=self._left,
            votes=finding.votes,
            ledger=self._ledger,
        )


class _Payment:
    """A party's ledger pays for the whole clustering, once: at the first request, when all have their seats.

    A session that goes on after a kill has paid, or had released nothing.
    """

    def __init__(self, session: Session, books: Books | None, *, resumed: bool, memory: Memory | None) -> None:
        self._books = books if session.charges is not None else None
        self._releases: Any = () if session.charges is None else session.charges.prepaid
        self._is_made = self._books is None or self._books.ledger is None
        if self._is_made:
            return
        assert self._books is not None
        ledger = self._books.ledger
        assert ledger is not None
        has_journal = resumed and memory is not None and memory.was_there
        self._is_made = ledger.resume(self._releases, has_journal=has_journal)
        if not self._is_made and memory is not None and memory.recovered and not ledger.seeded:
            raise LedgerError(
                f"{ledger.ledger.path}: a ledger must hold what this run was charged before its first release; it does "
                "not. It may have been set back to an earlier copy: restore the newest one."
            )
        if not self._is_made:
            ledger.check_all(self._releases)

    def make(self) -> None:
        """Pay, if that has not been done."""
        if not self._is_made:
            assert self._books is not None
            prepay([self._books], self._releases)
            self._is_made = True
