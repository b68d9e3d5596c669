"""Whether the other end of a connection is who and what the job says, by what it claims and what TLS has shown.

*Claim.* Whoever passes `check_peer` holds a key that the identity in the job has certified, says that its job has our
digest, and has a version that understands ours. *Why.* TLS proves the possession of the certificate's key on this
connection, so a certificate that was copied from a public file is worth nothing; the identity signed the certificate's
SHA-256, so a certificate of someone else does not fit. The certificate is what TLS reports, never what a peer writes.
That the identity's key is there, too, a greeting must prove by signing the other end's nonce.

A refusal may be told to both ends. Someone who is not known to be in the job learns nothing of it: neither names nor
digest.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from importlib.metadata import version as version_of

from cloister.credentials import is_certified, write_certificate_fingerprint
from cloister.credentials.certificates import read_dates
from cloister.credentials.keys import check_dates
from cloister.crypto import write_fingerprint
from cloister.errors import ConfigError, CredentialsError, RefusedError
from cloister.job import COORDINATOR, Job

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.[0-9A-Za-z.+]{1,60})?", re.ASCII)


def check_peer(
    certificate_der: bytes,
    *,
    name: str,
    identity: bytes,
    certificate_signature: bytes,
    digest: bytes,
    version: str,
    job: Job,
    revoked: Collection[str] = (),
    now: datetime | None = None,
) -> int:
    """Return who is at the other end of a connection: 0 for the coordinator, else the party's number in the job.

    Parameters
    ----------
    certificate_der
        What TLS has shown for this connection, after checking that the other end holds its key.
    name, identity, certificate_signature, digest, version
        What the other end says: its name in the job, its public key, that key's signature over the certificate, the
        digest of its job, its version of Cloister.
    job
        Ours. It names everyone's identity.
    revoked
        Identities and certificates that our own policy revokes, as text (``ed25519:...``, ``sha256:...``).
    now
        The time, by default the clock's.

    Raises
    ------
    RefusedError
        If it is not who or what it must be. The reason may be told to the other end.
    """
    number = _find_number(name, identity, job)
    if not is_certified(certificate_signature, identity, certificate_der):
        raise RefusedError(
            "the certificate of the connection must be signed by the identity that uses it; it is not. Use the key "
            "file that the public file was made from."
        )
    try:
        check_dates(*read_dates(certificate_der), now=now, source="the certificate of the connection")
    except CredentialsError as error:
        raise RefusedError(str(error)) from None
    for what in (write_fingerprint(identity), write_certificate_fingerprint(certificate_der)):
        if what in revoked:
            raise RefusedError(
                f"identities and certificates must not have been revoked; {what} is, by the other end's policy. "
                "Ask its owner; a new certificate: cloister keys renew NAME"
            )
    _check_version(version)
    if digest != job.digest:
        raise RefusedError(
            f"both ends must have the same job; the digests differ ({job.digest.hex()[:16]} here, "
            f"{digest.hex()[:16]} there). Compare the job files: cloister join JOB.TOML shows what each says."
        )
    return number


def find_role(job: Job, identity: bytes) -> str:
    """Return the name in the job of whoever holds an identity: a party's, or the coordinator's.

    Raises
    ------
    ConfigError
        If the job does not name this identity.
    """
    names = {party.public_key: party.name for party in job.parties} | {job.coordinator.public_key: COORDINATOR}
    if identity not in names:
        raise ConfigError(
            f"the job must name the identity that takes part; {write_fingerprint(identity)} is not in it. Use other "
            "keys, or have the job name these."
        )
    return names[identity]


def _find_number(name: str, identity: bytes, job: Job) -> int:
    """Find who it is by name and identity; whoever is unknown is told nothing of the job."""
    listed = {COORDINATOR: job.coordinator.public_key} | {party.name: party.public_key for party in job.parties}
    if listed.get(name) != identity:
        raise RefusedError(
            "whoever connects must be named in the job, with the identity that it has; it is not. Compare the "
            "identity in the job with: cloister keys show NAME"
        )
    return list(listed).index(name)


def _check_version(theirs: str) -> None:
    ours = version_of("cloister")
    if read_major(theirs) is None or read_major(theirs) != read_major(ours):
        shown = theirs if _VERSION.fullmatch(theirs) else "something else"
        raise RefusedError(
            f"both ends must have the same major version of Cloister (0.x counts as one); got {ours} here and {shown} "
            "there. Update one of them."
        )


def read_major(version: str) -> tuple[int, ...] | None:
    """Return what must be equal of two versions that work together; None if it is no version."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2])
    return (major,) if major else (major, minor)
