"""Who is at the other end: what both sides prove before anything else is said, and what they check.

TLS shows that the other end holds the key of a certificate. An Ed25519 identity, which the job names, has signed that
certificate; so a stolen greeting is worth nothing on any other connection. Each greeting is also signed afresh, over
both ends' certificates and nonces, the job's digest and the run: whoever has a certificate's key but not the identity's
gets no further.

A coordinator knows the caller's certificate from TLS (``auth_context``), never from a field that the caller wrote. A
party trusts one certificate only, the coordinator's, so TLS itself has checked it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cloister.crypto import Context, Identity, is_signed
from cloister.errors import CloisterError, RemoteProtocolError
from cloister.runtime.remote.messages import MAJOR, MINOR, Challenge, Consented, Hello, Refusal, Welcome

CERTIFICATE_PURPOSE = "cloister certificate"


class RefusedError(CloisterError, RuntimeError):
    """The coordinator does not let a party in; both are told the same."""

    exit_code = 17

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.text)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class OwnEnd:
    """What one end proves who it is with.

    Attributes
    ----------
    identity
        Its signing key.
    certificate_sha256, certificate_signature
        Its certificate's digest (DER), and the identity's signature over that.
    program
        Its version of Cloister.
    """

    identity: Identity = field(repr=False)
    certificate_sha256: bytes
    certificate_signature: bytes
    program: str


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What both ends hold before they talk.

    Attributes
    ----------
    job
        The job's digest.
    parties
        Each party's identity, by name, in the job's order.
    coordinator
        The coordinator's identity.
    """

    job: bytes
    parties: Mapping[str, bytes]
    coordinator: bytes


def sign_certificate(identity: Identity, certificate_sha256: bytes) -> bytes:
    """Say that whoever holds this certificate's key acts for the identity."""
    return identity.sign(CERTIFICATE_PURPOSE, certificate_sha256)


def make_hello(
    own: OwnEnd, agreed: Agreed, challenge: Challenge, *, party: str, nonce: bytes, run: bytes, peer_sha256: bytes
) -> Hello:
    """Return a party's greeting; ``peer_sha256`` is the digest of the coordinator's certificate."""
    statement = _hello(agreed.job, challenge.nonce, party, nonce, run, own.certificate_sha256, peer_sha256)
    return Hello(
        major=MAJOR,
        minor=MINOR,
        program=own.program,
        job=agreed.job,
        party=party,
        identity=own.identity.public_bytes,
        certificate_signature=own.certificate_signature,
        nonce=nonce,
        run=run,
        signature=own.identity.sign(*statement),
    )


def check_hello(hello: Hello, own: OwnEnd, agreed: Agreed, challenge: Challenge, *, peer_sha256: bytes) -> None:
    """Check a party's greeting; ``peer_sha256`` is the digest of the certificate that TLS has shown.

    Raises
    ------
    RefusedError
        With the first reason there is.
    """
    if hello.major != MAJOR:
        raise RefusedError(Refusal.VERSION)
    if hello.party not in agreed.parties:
        raise RefusedError(Refusal.PARTY)
    identity = agreed.parties[hello.party]
    statement = _hello(
        hello.job, challenge.nonce, hello.party, hello.nonce, hello.run, peer_sha256, own.certificate_sha256
    )
    proved = (
        hello.identity == identity
        and is_signed(hello.certificate_signature, identity, CERTIFICATE_PURPOSE, peer_sha256)
        and is_signed(hello.signature, identity, *statement)
    )
    if not proved:
        raise RefusedError(Refusal.IDENTITY)
    if hello.job != agreed.job:
        raise RefusedError(Refusal.JOB)


def make_welcome(own: OwnEnd, agreed: Agreed, challenge: Challenge, hello: Hello, *, run: bytes) -> Welcome:
    """Return the coordinator's greeting."""
    return Welcome(
        program=own.program,
        run=run,
        identity=own.identity.public_bytes,
        certificate_signature=own.certificate_signature,
        signature=own.identity.sign(*_welcome(agreed, challenge, hello, run, own.certificate_sha256)),
    )


def check_welcome(welcome: Welcome, agreed: Agreed, challenge: Challenge, hello: Hello, *, peer_sha256: bytes) -> None:
    """Check the coordinator's greeting.

    Raises
    ------
    RemoteProtocolError
        If it is not the job's coordinator, or not of this connection.
    """
    identity = agreed.coordinator
    proved = (
        welcome.identity == identity
        and is_signed(welcome.certificate_signature, identity, CERTIFICATE_PURPOSE, peer_sha256)
        and is_signed(welcome.signature, identity, *_welcome(agreed, challenge, hello, welcome.run, peer_sha256))
    )
    if not proved:
        raise RemoteProtocolError(
            "the coordinator must prove that it is the identity which the job names; it did not. Compare the "
            "fingerprint in [coordinator] with that of its public key file, and the address."
        )


def consent_statement(agreed: Agreed, run: bytes) -> tuple[Context, ...]:
    """Return what a party signs when it agrees to take part in a run of a job."""
    return ("cloister consent", MAJOR, agreed.job, run)


def done_statement(agreed: Agreed, run: bytes, session: bytes, outcome_sha256: bytes) -> tuple[Context, ...]:
    """Return what a party signs when it has been told the end of a session: nothing of what it found."""
    return ("cloister done", MAJOR, agreed.job, run, session, outcome_sha256)


def check_consents(consents: tuple[Consented, ...], agreed: Agreed, run: bytes) -> None:
    """Raise `RemoteProtocolError` unless these are the consents of all the job's parties."""
    statement = consent_statement(agreed, run)
    names = [one.party for one in consents]
    if names != list(agreed.parties) or not all(
        is_signed(one.signature, agreed.parties[one.party], *statement) for one in consents
    ):
        raise RemoteProtocolError(
            "a run must start with the consent of every party of the job, signed for this run; it does not."
        )


def _hello(
    job: bytes, challenge: bytes, party: str, nonce: bytes, run: bytes, own_sha256: bytes, peer_sha256: bytes
) -> tuple[Context, ...]:
    return ("cloister hello", MAJOR, job, party, challenge, nonce, run, own_sha256, peer_sha256)


def _welcome(agreed: Agreed, challenge: Challenge, hello: Hello, run: bytes, own_sha256: bytes) -> tuple[Context, ...]:
    return ("cloister welcome", MAJOR, agreed.job, hello.party, challenge.nonce, hello.nonce, run, own_sha256)
