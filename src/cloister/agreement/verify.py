"""What ``session.json`` proves: each statement in it, checked against the job that it holds and the files beside it.

Whoever checks needs nothing but the folder; with the party's ledger, also what the session was charged. What it proves
is what the signers said. A party's own record proves to others what this party says; the consents, what each other
party agreed to; the votes, that a quorum signed one sealed result, which only parties can open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from cloister.agreement.record import Consented, Record, SessionFile, commit, decode_session, write_record
from cloister.credentials.statements import CONSENTS_MOST, consent_statement, derive_session, record_statement
from cloister.crypto import is_signed
from cloister.errors import CloisterError, ConfigError, LedgerError
from cloister.job import Job
from cloister.jobfile import parse_job
from cloister.privacy.ledger import Ledger
from cloister.report import Result
from cloister.report.folder import CENTRES_FILE, MAX_FILE_BYTES, RESULT_FILE, SESSION_FILE, read_result

Outcome = Literal["proved", "refuted", "not shown"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One statement of a record, and what became of it.

    Attributes
    ----------
    what
        In words.
    outcome
        Whether it holds, does not, or cannot be told from what is here.
    why
        Where it does not hold, or cannot be told.
    """

    what: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What became of all statements of a record."""

    record: Record
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was refuted."""
        return all(check.outcome != "refuted" for check in self.checks)


def verify_result(folder: Path, *, job: Job | None = None, ledger: Path | None = None) -> Verification:
    """Check a result folder's record.

    Parameters
    ----------
    folder
        With ``session.json``, and the files that it names.
    job
        As whoever checks knows it. Without it, the identities in the record's own job are believed.
    ledger
        The party's ledger, to show what was charged.

    Raises
    ------
    ConfigError
        If there is no record, or it cannot be read.
    """
    path = folder / SESSION_FILE
    session = decode_session(_read(path), str(path))
    said = _parse(session.record)
    checks = [_check(what, holds) for what, holds in _list_statements(session, said)]
    if job is None:
        why = "compare its identities with what you know, or give the job: --job"
        checks.insert(0, Check(what="the job is the one that you know", outcome="not shown", why=why))
    else:
        checks.insert(0, _check("the job is the one that you know", lambda: job.digest.hex() == session.record.digest))
    checks += _check_files(session.record, said, folder)
    checks.append(_check_votes(session.record, said))
    checks += _check_ledger(session, ledger)
    return Verification(record=session.record, checks=tuple(checks))


def _parse(record: Record) -> Job | None:
    try:
        return parse_job(record.job)
    except CloisterError:
        return None


Statement = Callable[[], bool]


def _list_statements(session: SessionFile, job: Job | None) -> Iterator[tuple[str, Statement]]:
    """Yield what is signed, and how to check it."""
    record = session.record
    yield "the job's text has the digest that was agreed on", lambda: _digest_of(job) == record.digest
    keys = {} if job is None else {party.name: party.public_key for party in job.parties}
    yield (
        f"the record is signed by the identity of {record.party} in the job",
        lambda: is_signed(session.signature, keys[record.party], *record_statement(write_record(record))),
    )
    run = bytes.fromhex(record.run)
    yield (
        "the sessions are those of the run that was consented to",
        lambda: all(part.session == derive_session(run, part.kind).hex() for part in record.sessions),
    )
    names = [consent.party for consent in record.consents]
    if len(keys) > CONSENTS_MOST:
        yield "the party has consented; it was shown no other consents", lambda: names == [record.party]
    else:
        yield "every party of the job has consented, once", lambda: bool(keys) and names == list(keys)
    for consent in record.consents:
        yield f"{consent.party} has consented to this run of this job", partial(_has_consented, consent, record, keys)


def _has_consented(consent: Consented, record: Record, keys: Mapping[str, bytes]) -> bool:
    statement = consent_statement(record.connection_version, bytes.fromhex(record.digest), bytes.fromhex(record.run))
    return is_signed(consent.signature, keys[consent.party], *statement)


def _digest_of(job: Job | None) -> str:
    return "" if job is None else job.digest.hex()


def _check(what: str, holds: Statement) -> Check:
    try:
        return Check(what=what, outcome="proved" if holds() else "refuted")
    except (CloisterError, ValueError, KeyError):  # a party that the job does not have, or not with an identity
        return Check(what=what, outcome="refuted")


def _fits(result: Result, job: Job | None) -> bool:
    return job is not None and (result.name, result.columns) == (job.name, job.columns)


def _check_files(record: Record, job: Job | None, folder: Path) -> Iterator[Check]:
    if record.outcome != "finished":
        yield Check(what="the result", outcome="not shown", why=f"the run ended without one: {record.outcome}")
        return
    for file in record.files:
        what = f"{file.name} is the file that was signed"
        path = folder / file.name
        if Path(file.name).name != file.name or not path.is_file():
            yield Check(what=what, outcome="not shown", why="it is not in the folder")
        else:
            same = hashlib.sha256(_read(path)).hexdigest() == file.sha256
            yield Check(what=what, outcome="proved" if same else "refuted")
    named = {file.name for file in record.files}
    if not {RESULT_FILE, CENTRES_FILE} <= named:
        yield Check(what="the result's files are signed", outcome="refuted")
    elif (folder / RESULT_FILE).is_file():
        yield _check("the result is that of the job", lambda: _fits(read_result(folder), job))


def _check_votes(record: Record, job: Job | None) -> Check:
    what, votes = "a quorum has signed the same sealed result", record.votes
    if votes is None:
        return Check(what=what, outcome="not shown", why="its protocol has no signatures that may be shown")
    keys = [] if job is None else [party.public_key for party in job.parties]
    signed = 0 if job is None else votes.count(keys)
    least = len(keys) // 2 + 1 if job is None else max(len(keys) // 2 + 1, job.protocol.resolve_min_parties(len(keys)))
    enough = signed >= least and votes.session.hex() in {part.session for part in record.sessions}
    return Check(what=f"{what}: {signed} of {len(keys)} parties", outcome="proved" if enough else "refuted")


def _check_ledger(session: SessionFile, path: Path | None) -> Iterator[Check]:
    opening, what = session.ledger, "the ledger's heads are those that were signed"
    if opening is None:
        yield Check(what=what, outcome="not shown", why="their owner has not opened the commitment")
        return
    yield _check(what, lambda: commit(opening) == session.record.ledger)
    if not opening.session:
        yield Check(what="what the session was charged", outcome="not shown", why="no ledger was charged")
        return
    what = "the ledger holds what this session was charged, between these heads"
    if path is None:
        yield Check(what=what, outcome="not shown", why="no ledger was given: --ledger")
        return
    try:
        with Ledger(path, create=False) as ledger:
            ledger.verify(head=opening.after)
            trace = ledger.trace(opening.session)
    except LedgerError as error:
        yield Check(what=what, outcome="refuted", why=str(error))
        return
    in_sessions = opening.session in {part.session for part in session.record.sessions}
    same = trace is not None and (trace.before.chain, trace.after.chain, trace.charges, trace.dataset) == (
        opening.before,
        opening.after,
        opening.charges,
        opening.dataset,
    )
    yield Check(what=what, outcome="proved" if same and in_sessions else "refuted")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"a session between organisations leaves {SESSION_FILE} and its files in the result folder; got {path}: "
            f"{reason}. Simulations leave none."
        ) from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} must have at most {MAX_FILE_BYTES} bytes; it has more. Use an unchanged copy.")
    return raw
