"""ONE party's part in a run between organisations: its table, its books, its role in each session, its own result.

All of it runs in one thread, driven by `cloister.runtime.remote.participant`. Whatever is wrong with the table, the
ledger or the files stays here: the coordinator hears that the party leaves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from cloister.deployment.course import ALIGNMENT, is_kind, make_session_id
from cloister.deployment.own_roles import OwnRoles, OwnSession, PartyPlace
from cloister.deployment.proof import Proof
from cloister.deployment.run_files import Begun, Finished, Started
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.protocol import Finding
from cloister.report.folder import Sign
from cloister.report.labels import PartyLabels
from cloister.report.result import Between, Result, TakingPart
from cloister.runtime import Traffic
from cloister.runtime.remote import greeting, messages
from cloister.runtime.remote.tls import TRANSPORT
from cloister.sessions.results import make_result

Keep = Callable[[Result, PartyLabels | None, Sign | None], None]
"""Keeps a party's result for good, with what makes its record; called before the journals are wiped."""


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
        self._own = OwnRoles(place)
        self._run = b""
        self._is_begun = False
        self._sessions: dict[str, OwnSession] = {}
        self._consents: tuple[messages.Consented, ...] = ()
        self._left: tuple[str, ...] = ()
        self.is_complete = False
        self.result: Result | None = None

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
        self._own.open_table()
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
        if self._own.table is None:
            self._own.open_table()
        statement = greeting.consent_statement(self._place.agreed, run)
        return messages.Consent(self._place.identity.sign(*statement), self._own.know())

    def start(self, start: messages.Start) -> int:
        """Take our seat in a session, once."""
        seed = self._place.setup.seed
        if not is_kind(start.kind) or start.session != make_session_id(start.kind, run=self._run, seed=seed):
            raise RemoteProtocolError("a session must be one of the run's, with its ID; this one is not.")
        known = self._sessions.get(start.kind)
        if known is not None:
            return known.limit_bytes
        greeting.check_consents(start.consents, self._place.agreed, self._run, party=self._place.name)
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
        if not session.endpoint.answered:
            session.endpoint.read(frame)  # what is refused here costs nothing
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

    # --- sessions -----------------------------------------------------------------------------------------------------

    def _begin(self, start: messages.Start, *, resumed: bool) -> OwnSession:
        self._consents = start.consents
        session = self._own.open(start, resumed=resumed)
        self._sessions[start.kind] = session
        return session

    def _end(self, finish: messages.Finish) -> None:
        session = self._find(finish.session)
        session.missed, self._left = finish.missed, finish.left
        facts = session.end(finish.outcome)
        if self._own.is_last:
            self._complete()
        digest = hashlib.sha256(finish.outcome).digest()
        statement = greeting.done_statement(self._place.agreed, self._run, finish.session, digest)
        session.done = messages.Done(finish.session, self._place.identity.sign(*statement), facts)

    def _find(self, session: bytes) -> OwnSession:
        for one in self._sessions.values():
            if one.start.session == session:
                return one
        raise RemoteProtocolError("a session that ends must be one that began; it is not.")

    # --- the result ---------------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        """Make our own result, and keep it."""
        if self._own.clustered is None:
            raise LocalProtocolError("a result must come from a clustering; there was none: this is a bug.")
        finding, explanation = self._own.clustered
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
        self._keep(self.result, self._own.labels, self._make_proof(finding).sign if self._place.contract else None)
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
            ledger=self._own.ledger,
        )
