"""What an identity signs outside of protocols: each statement with its purpose in front; none stands for another.

Nothing here depends on a record: statements are over public values, fresh random numbers, and hashes of what their
signer holds anyway.
"""

from __future__ import annotations

import hashlib

from cloister.crypto import Context, Identity, derive_key, is_signed

Statement = tuple[Context, ...]
CONSENTS_MOST = 1000
"""In a job of more parties than this, each is shown its own consent only."""


def certificate_statement(certificate_sha256: bytes) -> Statement:
    """Whoever shows this certificate and holds its key acts for the identity."""
    return ("cloister certificate", certificate_sha256)


def consent_statement(connection_version: int, job: bytes, run: bytes) -> Statement:
    """The party takes part in this run of the job with this digest."""
    return ("cloister consent", connection_version, job, run)


def derive_session(run: bytes, kind: str) -> bytes:
    """Return the ID of one of a run's sessions: who consents to a run consents to them."""
    return derive_key(run, "session of a run", kind)[: len(run)]


def job_consent_statement(job: bytes, party: str, program: str, given: str, run: bytes) -> Statement:
    """The party's owner has seen what the job asks for, and agrees to it once; ``run`` is empty until it is used."""
    return ("cloister consent to a job", job, party, program, given, run)


def record_statement(record: bytes) -> Statement:
    """The party says that a session went as its record says."""
    return ("cloister session record", hashlib.sha256(record).digest())


def certify(identity: Identity, certificate_der: bytes) -> bytes:
    """Sign a certificate."""
    return identity.sign(*certificate_statement(hashlib.sha256(certificate_der).digest()))


def is_certified(signature: bytes, identity: bytes, certificate_der: bytes) -> bool:
    """Return whether an identity signed a certificate."""
    return is_signed(signature, identity, *certificate_statement(hashlib.sha256(certificate_der).digest()))
