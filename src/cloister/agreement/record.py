"""``session.json``: what a party can prove of a session between organisations, signed by its identity.

::

    version, record, signature                 may be shown to whoever may see the result
    ledger                                     for the owner's eyes: opens the record's commitment to its ledger

*Privacy.* What the record says is one of these, and each is safe for whoever may see the result
(docs/network-trust.md): public (the job, who took part, versions, the day); drawn at random (the run's ID); a signature
over such values; a hash of the result's files, which stand beside it; the votes on the result, over a chain of sealed
boxes and never over what is in them; a commitment to the ledger under 32 fresh bytes, which says nothing until its
owner opens it. No value in it comes from records without their noise, and none from the messages of single parties.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from cloister.agreement.consent import DIGEST, RUN
from cloister.credentials.statements import record_statement
from cloister.crypto import Entropy, Identity
from cloister.crypto.stream import encode_context
from cloister.errors import ConfigError
from cloister.privacy.ledger import LedgerSession
from cloister.protocol import Votes

VERSION = 1
SALT_BYTES = 32
Id = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
Hash = Annotated[str, Meta(pattern=DIGEST)]


class Consented(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One party's consent to the run, as all got it: its name, its version of Cloister, its signature."""

    party: str
    program: str
    signature: bytes


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One session of the run: ``alignment``, ``clustering`` or ``labels``, and its ID."""

    kind: str
    session: Id


class FileHash(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of the result, and its SHA-256."""

    name: str
    sha256: Hash


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one party says of a run.

    Attributes
    ----------
    party
        Who says it.
    job, digest
        The contract's text as this party had it, and its digest.
    run, sessions
        The run's ID, and those of its sessions.
    connection_version, program, transport
        How the parties talked, this party's version of Cloister, and over what.
    consents
        Of all parties, to this run.
    outcome
        Whether there is a result.
    left
        Who had left by the end.
    date
        The day on which it ended, by this party's clock. How long it took depends on records, so it is not said.
    files
        Of the result, as they were written.
    votes
        On the result, where its protocol has signatures that may be shown.
    ledger
        A commitment to this party's ledger, whether it keeps one or not.
    """

    party: str
    job: str
    digest: Hash
    run: Id
    sessions: tuple[Part, ...]
    connection_version: int
    program: str
    transport: str
    consents: tuple[Consented, ...]
    outcome: Literal["finished", "withdrew", "failed"]
    left: tuple[str, ...] = ()
    date: str
    files: tuple[FileHash, ...] = ()
    votes: Votes | None = None
    ledger: Hash


class LedgerOpening(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What this party's ledger said, and the salt of the commitment to it.

    Attributes
    ----------
    salt
        32 fresh bytes.
    session
        The session that was charged; empty where no ledger was.
    dataset, before, after, charges
        What the ledger calls the records, its head before the first charge and after the last, and how many there were.
    """

    salt: Hash
    session: Annotated[str, Meta(pattern=RUN)] = ""
    dataset: str = ""
    before: str = ""
    after: str = ""
    charges: int = 0


class SessionFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in ``session.json``."""

    cloister_session: int = VERSION
    record: Record
    signature: bytes
    ledger: LedgerOpening | None = None


def open_ledger(ledger: LedgerSession | None, entropy: Entropy) -> LedgerOpening:
    """Take down what a session left in a ledger; without a ledger, or a charge, that there is nothing."""
    salt = entropy.bytes(SALT_BYTES).hex()
    trace = None if ledger is None else ledger.ledger.trace(ledger.session.hex())
    if ledger is None or trace is None:
        return LedgerOpening(salt=salt)
    return LedgerOpening(
        salt=salt,
        session=ledger.session.hex(),
        dataset=trace.dataset,
        before=trace.before.chain,
        after=trace.after.chain,
        charges=trace.charges,
    )


def commit(opening: LedgerOpening) -> str:
    """Return the commitment to what a ledger said.

    Privacy
    -------
    SHA-256 over 32 bytes from the operating system and the rest: to whoever does not know them it is a random number,
    the same whether there is a ledger or not (in the random oracle model; docs/network-trust.md).
    """
    said = (opening.session, opening.dataset, opening.before, opening.after, opening.charges)
    return hashlib.sha256(encode_context("cloister ledger heads", bytes.fromhex(opening.salt), *said)).hexdigest()


def sign_record(record: Record, identity: Identity, ledger: LedgerOpening) -> SessionFile:
    """Sign a record; its commitment must be to ``ledger``."""
    assert record.ledger == commit(ledger)
    return SessionFile(record=record, signature=identity.sign(*record_statement(write_record(record))), ledger=ledger)


def write_record(record: Record) -> bytes:
    """Return the bytes that are signed: the same for the same record."""
    return msgspec.msgpack.encode(record)


def encode_session(session: SessionFile) -> bytes:
    """Return the content of ``session.json``."""
    return msgspec.json.format(msgspec.json.encode(session), indent=2) + b"\n"


def decode_session(raw: bytes, source: str) -> SessionFile:
    """Read ``session.json``; ``source`` is what messages call it.

    Raises
    ------
    ConfigError
        If it is damaged or of another version.
    """
    try:
        head = msgspec.json.decode(raw, type=_Head)
        if head.cloister_session == VERSION:
            return msgspec.json.decode(raw, type=SessionFile)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{source} must be a whole record of a session; it is not ({type(error).__name__}). Use an unchanged copy."
        ) from None
    what_to_do = "Update Cloister." if head.cloister_session > VERSION else "It was not written by Cloister."
    raise ConfigError(f"{source} must have version {VERSION}; got {head.cloister_session}. {what_to_do}")


class _Head(Struct):
    cloister_session: int
