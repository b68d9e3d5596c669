"""The first message of each end of a connection, and whether the other end is who and what the job says.

Both ends say the same: who they are, which job and version they have, and why the certificate that TLS has shown
belongs to their identity. What counts as the certificate is what TLS reports, never what a peer writes.

*Claim.* Whoever passes `check_peer` holds the identity's key, or the TLS key that the identity certified, and says that
its job has our digest. *Why.* TLS proves the possession of the certificate's key on this connection, so a certificate
that was copied from a public file is worth nothing. The identity in the job signed the certificate's SHA-256; a
certificate of someone else is not signed by it. The proof covers everything that is said, and the nonce of the other
end: the coordinator's cannot be replayed. A party's first message can, by whoever holds its TLS key, and gains nothing:
every later step (its consent, its session keys) is signed by the identity anew, for a session ID that the coordinator
draws.

A refusal is told to both ends. Someone who is not known to be in the job learns nothing of it: neither names nor
digest.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from importlib.metadata import version as version_of
from typing import Annotated

from msgspec import Meta, Struct

from cloister.credentials import OwnKeys, is_certified, write_certificate_fingerprint
from cloister.credentials.certificates import read_dates
from cloister.credentials.keys import check_dates
from cloister.crypto import PUBLIC_KEY_BYTES, Entropy, is_signed, write_fingerprint
from cloister.crypto.identity import SIGNATURE_BYTES
from cloister.crypto.stream import Context
from cloister.errors import CredentialsError, RefusedError
from cloister.job import COORDINATOR, Job

NONCE_BYTES = 16
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.[0-9A-Za-z.+]{1,60})?", re.ASCII)

_Key = Annotated[bytes, Meta(min_length=PUBLIC_KEY_BYTES, max_length=PUBLIC_KEY_BYTES)]
_Signature = Annotated[bytes, Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]


class Hello(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What one end says first.

    Attributes
    ----------
    version
        Of Cloister.
    job
        The digest of its job.
    name
        Its name in the job, or ``"coordinator"``.
    identity
        Its public key.
    certificate_signature
        The identity's, over the certificate that TLS shows.
    nonce
        Fresh bytes, to which the other end's proof is bound.
    session
        The session that it takes up again; empty: none.
    proof
        The identity's signature over all of this and the other end's nonce.
    """

    version: Annotated[str, Meta(max_length=80)]
    job: Annotated[bytes, Meta(min_length=32, max_length=32)]
    name: Annotated[str, Meta(max_length=64)]
    identity: _Key
    certificate_signature: _Signature
    nonce: Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    session: Annotated[bytes, Meta(max_length=16)]
    proof: _Signature


def say_hello(
    keys: OwnKeys, *, job: Job, name: str, entropy: Entropy, answers: bytes = b"", session: bytes = b""
) -> Hello:
    """Make our own first message.

    Parameters
    ----------
    keys
        Ours.
    job, name
        The job, and who we are in it.
    entropy
        For the nonce.
    answers
        The nonce of the message that this one answers; empty if we speak first.
    session
        The session that we take up again, if any.
    """
    version, nonce = version_of("cloister"), entropy.bytes(NONCE_BYTES)
    public = keys.public
    signed = _signed(version, job.digest, name, public.identity, public.signature, nonce, session, answers)
    return Hello(
        version, job.digest, name, public.identity, public.signature, nonce, session, keys.identity.sign(*signed)
    )


def check_peer(
    certificate_der: bytes,
    hello: Hello,
    *,
    job: Job,
    revoked: Collection[str] = (),
    answers: bytes = b"",
    now: datetime | None = None,
) -> int:
    """Return who is at the other end of a connection: 0 for the coordinator, else the party's number in the job.

    Parameters
    ----------
    certificate_der
        What TLS has shown for this connection, after checking that the other end holds its key.
    hello
        What the other end has said.
    job
        Ours. It names everyone's identity.
    revoked
        Identities and certificates that our own policy revokes, as text (``ed25519:...``, ``sha256:...``).
    answers
        The nonce of our own message, if the other end's answers it.
    now
        The time, by default the clock's.

    Raises
    ------
    RefusedError
        If it is not who or what it must be. The reason may be told to the other end.
    """
    number = _find_number(hello, job)
    if not is_certified(hello.certificate_signature, hello.identity, certificate_der):
        raise RefusedError(
            "the certificate of the connection must be signed by the identity that uses it; it is not. Use the key "
            "file that the public file was made from."
        )
    if not is_signed(hello.proof, hello.identity, *_signed_in(hello, answers)):
        raise RefusedError(
            "what is said at first must be signed by the identity that says it; it is not. Connect again."
        )
    try:
        check_dates(*read_dates(certificate_der), now=now, source="the certificate of the connection")
    except CredentialsError as error:
        raise RefusedError(str(error)) from None
    for what in (write_fingerprint(hello.identity), write_certificate_fingerprint(certificate_der)):
        if what in revoked:
            raise RefusedError(
                f"identities and certificates must not have been revoked; {what} is, by the other end's policy. "
                "Ask its owner; a new certificate: cloister keys renew NAME"
            )
    _check_version(hello.version)
    if hello.job != job.digest:
        raise RefusedError(
            f"both ends must have the same job; the digests differ ({job.digest.hex()[:16]} here, "
            f"{hello.job.hex()[:16]} there). Compare the job files: cloister join JOB.TOML shows what each says."
        )
    return number


def _find_number(hello: Hello, job: Job) -> int:
    """Find who it is by name and identity; whoever is unknown is told nothing of the job."""
    listed = {COORDINATOR: job.coordinator.public_key} | {party.name: party.public_key for party in job.parties}
    if listed.get(hello.name) != hello.identity:
        raise RefusedError(
            "whoever connects must be named in the job, with the identity that it has; it is not. Compare the "
            "identity in the job with: cloister keys show NAME"
        )
    return list(listed).index(hello.name)


def _check_version(theirs: str) -> None:
    ours = version_of("cloister")
    if _major(theirs) is None or _major(theirs) != _major(ours):
        shown = theirs if _VERSION.fullmatch(theirs) else "something else"
        raise RefusedError(
            f"both ends must have the same major version of Cloister (0.x counts as one); got {ours} here and {shown} "
            "there. Update one of them."
        )


def _major(version: str) -> tuple[int, ...] | None:
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2])
    return (major,) if major else (major, minor)


def _signed_in(hello: Hello, answers: bytes) -> tuple[Context, ...]:
    return _signed(
        hello.version,
        hello.job,
        hello.name,
        hello.identity,
        hello.certificate_signature,
        hello.nonce,
        hello.session,
        answers,
    )


def _signed(
    version: str,
    job: bytes,
    name: str,
    identity: bytes,
    certificate: bytes,
    nonce: bytes,
    session: bytes,
    answers: bytes,
) -> tuple[Context, ...]:
    return ("cloister hello", version, job, name, identity, certificate, nonce, session, answers)
