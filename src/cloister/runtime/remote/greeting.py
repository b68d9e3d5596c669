"""Who is at the other end: what both sides prove before anything else is said, and what they check.

TLS shows that the other end holds the key of a certificate. An Ed25519 identity, which the job names, has signed that
certificate; so a stolen greeting is worth nothing on any other connection. Each greeting is also signed afresh, over
both ends' certificates and nonces, the job's digest and the run: whoever has a certificate's key but not the identity's
gets no further.

A coordinator knows the caller's certificate from TLS (``auth_context``), never from a field that the caller wrote. A
party trusts one certificate only, the coordinator's, so TLS itself has checked it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from cloister import credentials, errors
from cloister.credentials import CONSENTS_MOST, certify, is_certified, write_certificate_fingerprint
from cloister.crypto import Context, Identity, is_signed, write_fingerprint
from cloister.errors import RemoteProtocolError
from cloister.runtime.remote.messages import MAJOR, MINOR, Challenge, Consented, Hello, Refusal, Welcome

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.[0-9A-Za-z.+]{1,60})?", re.ASCII)


class RefusedError(errors.RefusedError):
    """One end does not accept the other; both are told the same."""

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
    certificate
        Its certificate for TLS (DER).
    program
        Its version of Cloister.
    """

    identity: Identity = field(repr=False)
    certificate: bytes
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
    revoked
        Identities and certificates that we do not accept any more, ``ed25519:...`` or ``sha256:...``.
    """

    job: bytes
    parties: Mapping[str, bytes]
    coordinator: bytes
    revoked: frozenset[str] = frozenset()

    @cached_property
    def directory(self) -> tuple[bytes, ...]:
        """The parties' identities, in the job's order; one for all parties of a process, which may be thousands."""
        return tuple(self.parties.values())


def make_hello(
    own: OwnEnd, agreed: Agreed, challenge: Challenge, *, party: str, nonce: bytes, run: bytes, peer: bytes
) -> Hello:
    """Return a party's greeting; ``peer`` is the coordinator's certificate."""
    said = (agreed.job, party, own.program, challenge.nonce, nonce, run)
    statement = _hello(*said, own=own.certificate, peer=peer)
    return Hello(
        major=MAJOR,
        minor=MINOR,
        program=own.program,
        job=agreed.job,
        party=party,
        identity=own.identity.public_bytes,
        certificate_signature=certify(own.identity, own.certificate),
        nonce=nonce,
        run=run,
        signature=own.identity.sign(*statement),
    )


def check_hello(hello: Hello, own: OwnEnd, agreed: Agreed, challenge: Challenge, *, peer: bytes) -> None:
    """Check a party's greeting; ``peer`` is the certificate that TLS has shown.

    Raises
    ------
    RefusedError
        With the first reason there is.
    """
    if hello.major != MAJOR or read_major(hello.program) != read_major(own.program):
        raise RefusedError(Refusal.VERSION)
    if hello.party not in agreed.parties:
        raise RefusedError(Refusal.PARTY)
    identity = agreed.parties[hello.party]
    said = (hello.job, hello.party, hello.program, challenge.nonce, hello.nonce, hello.run)
    statement = _hello(*said, own=peer, peer=own.certificate)
    proved = (
        hello.identity == identity
        and is_certified(hello.certificate_signature, identity, peer)
        and is_signed(hello.signature, identity, *statement)
    )
    if not proved:
        raise RefusedError(Refusal.IDENTITY)
    _check_revoked(identity, peer, agreed)
    if hello.job != agreed.job:
        raise RefusedError(Refusal.JOB)


def make_welcome(own: OwnEnd, agreed: Agreed, challenge: Challenge, hello: Hello, *, run: bytes) -> Welcome:
    """Return the coordinator's greeting."""
    return Welcome(
        program=own.program,
        run=run,
        identity=own.identity.public_bytes,
        certificate_signature=certify(own.identity, own.certificate),
        signature=own.identity.sign(*_welcome(agreed, challenge, hello, own.program, run, own.certificate)),
    )


def check_welcome(welcome: Welcome, agreed: Agreed, challenge: Challenge, hello: Hello, *, peer: bytes) -> None:
    """Check the coordinator's greeting.

    Raises
    ------
    RefusedError
        If its version does not understand ours, or it is not accepted any more.
    RemoteProtocolError
        If it is not the job's coordinator, or not of this connection.
    """
    identity = agreed.coordinator
    proved = (
        welcome.identity == identity
        and is_certified(welcome.certificate_signature, identity, peer)
        and is_signed(
            welcome.signature, identity, *_welcome(agreed, challenge, hello, welcome.program, welcome.run, peer)
        )
    )
    if not proved:
        raise RemoteProtocolError(
            "the coordinator must prove that it is the identity which the job names; it did not. Compare the "
            "fingerprint in [coordinator] with that of its public key file, and the address."
        )
    if read_major(welcome.program) != read_major(hello.program):
        raise RefusedError(Refusal.VERSION)
    _check_revoked(identity, peer, agreed)


def read_major(version: str) -> tuple[int, ...] | None:
    """Return what must be equal of two versions of Cloister that work together; None if it is no version."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2])
    return (major,) if major else (major, minor)


def _check_revoked(identity: bytes, certificate: bytes, agreed: Agreed) -> None:
    if agreed.revoked & {write_fingerprint(identity), write_certificate_fingerprint(certificate)}:
        raise RefusedError(Refusal.REVOKED)


def consent_statement(agreed: Agreed, run: bytes) -> tuple[Context, ...]:
    """Return what a party signs when it agrees to take part in a run of a job."""
    return credentials.consent_statement(MAJOR, agreed.job, run)


def done_statement(agreed: Agreed, run: bytes, session: bytes, outcome_sha256: bytes) -> tuple[Context, ...]:
    """Return what a party signs when it has been told the end of a session: nothing of what it found."""
    return ("cloister done", MAJOR, agreed.job, run, session, outcome_sha256)


def shows_all_consents(agreed: Agreed) -> bool:
    """Whether each party is shown everybody's consent: not in a job of very many parties."""
    return len(agreed.parties) <= CONSENTS_MOST


def share_consents(consents: tuple[Consented, ...], agreed: Agreed) -> Mapping[str, tuple[Consented, ...]]:
    """Return the consents that each party is shown: all, or in a job of very many parties its own.

    All of n to each of n is n times n; at 10,000 it would be 9 GB and an hour and a half of checking signatures. The
    coordinator of such a job keeps all in its record of the run.
    """
    return {one.party: consents if shows_all_consents(agreed) else (one,) for one in consents}


def check_consents(consents: tuple[Consented, ...], agreed: Agreed, run: bytes, *, party: str) -> None:
    """Raise `RemoteProtocolError` unless these are the consents that this party must be shown."""
    statement = consent_statement(agreed, run)
    names = [one.party for one in consents]
    wanted = list(agreed.parties) if shows_all_consents(agreed) else [party]
    if names != wanted or not all(
        read_major(one.program) is not None and _is_consented(one.signature, agreed.parties[one.party], statement)
        for one in consents
    ):
        raise RemoteProtocolError(
            "a run must start with the consent of every party of the job, signed for this run, and with its version; "
            "it does not."
        )


@lru_cache(maxsize=CONSENTS_MOST)  # once for all parties of a process
def _is_consented(signature: bytes, identity: bytes, statement: tuple[Context, ...]) -> bool:
    return is_signed(signature, identity, *statement)


def _hello(
    job: bytes, party: str, program: str, challenge: bytes, nonce: bytes, run: bytes, *, own: bytes, peer: bytes
) -> tuple[Context, ...]:
    return ("cloister hello", MAJOR, job, party, program, challenge, nonce, run, own, peer)


def _welcome(
    agreed: Agreed, challenge: Challenge, hello: Hello, program: str, run: bytes, own: bytes
) -> tuple[Context, ...]:
    return ("cloister welcome", MAJOR, agreed.job, hello.party, program, challenge.nonce, hello.nonce, run, own)
