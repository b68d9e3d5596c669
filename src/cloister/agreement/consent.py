"""A party's consent to a job: a file that its owner signs after seeing what the job asks for. It is good for one run.

Each run of a job spends its budget again. So a consent is used up by the first run that starts under it: whoever calls
the coordinator again, a service that restarts, say, needs another one. The file stays with the party; what the others
get is a signature over the run (`cloister.credentials.consent_statement`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from cloister.credentials.files import read_public, replace_file
from cloister.credentials.statements import job_consent_statement
from cloister.crypto import Identity, is_signed, read_fingerprint, write_fingerprint
from cloister.errors import CredentialsError, PolicyError
from cloister.job import Job
from cloister.runtime.remote.greeting import read_major

VERSION = 1
DIGEST, RUN = r"\A[0-9a-f]{64}\Z", r"\A(?:[0-9a-f]{32})?\Z"
_MODE = 0o600
_AGAIN = "See what the job asks for, and agree to it: cloister join JOB.TOML --keys NAME"


class Consent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in ``NAME.consent``.

    Attributes
    ----------
    party, identity
        Who agrees.
    job, digest
        To which job: its name, and its digest in hexadecimal digits.
    program
        The version of Cloister that showed what the job asks for.
    given
        When, ISO 8601.
    run
        The run that used it up, in hexadecimal digits; empty before.
    signature
        The identity's, over all of it but the job's name.
    """

    cloister_consent: int = VERSION
    party: str
    identity: str
    job: str
    digest: Annotated[str, Meta(pattern=DIGEST)]
    program: str
    given: str
    run: Annotated[str, Meta(pattern=RUN)] = ""
    signature: bytes = b""


@dataclass(frozen=True, kw_only=True)
class OwnConsent:
    """A party's consent to a job, in its file.

    Attributes
    ----------
    path
        Where it is.
    identity, job, party
        Whose it must be, and to what.
    """

    path: Path
    identity: Identity
    job: Job
    party: str

    def check(self, run: bytes) -> None:
        """Raise :class:`PolicyError` unless it is good for a run; empty: for one that has not begun."""
        consent = read_consent(self.path)
        check_consent(consent, self.identity.public_bytes, self.job, self.party, run=run, source=str(self.path))

    def use(self, run: bytes) -> None:
        """Use it up for a run (`use_consent`)."""
        use_consent(self.path, self.identity, self.job, self.party, run=run)


def give_consent(identity: Identity, job: Job, party: str, *, now: datetime | None = None) -> Consent:
    """Agree to a job."""
    given = (datetime.now(UTC) if now is None else now).isoformat(timespec="seconds")
    consent = Consent(
        party=party,
        identity=write_fingerprint(identity.public_bytes),
        job=job.name,
        digest=job.digest.hex(),
        program=version_of("cloister"),
        given=given,
    )
    return _sign(consent, identity)


def use_consent(path: Path, identity: Identity, job: Job, party: str, *, run: bytes) -> None:
    """Use a consent up for a run, on the disk, before anything of the run is answered.

    The same run may use it again: it goes on after a kill.

    Raises
    ------
    PolicyError
        If there is no consent of this party to this job, or another run has used it up.
    """
    consent = read_consent(path)
    check_consent(consent, identity.public_bytes, job, party, run=run, source=str(path))
    if not consent.run:
        replace_file(path, encode_consent(_sign(replace(consent, run=run.hex()), identity)), mode=_MODE)


def check_consent(
    consent: Consent, identity: bytes, job: Job, party: str, *, run: bytes = b"", source: str = "the consent"
) -> None:
    """Refuse a consent that is not this party's, for this job, and free for this run.

    Parameters
    ----------
    consent
        As read.
    identity, job, party
        Ours.
    run
        The run; empty: any that has not begun.
    source
        What messages call it.

    Raises
    ------
    PolicyError
        If it is anything else.
    """
    if (consent.identity, consent.party) != (write_fingerprint(identity), party):
        raise PolicyError(f"{source}: a consent must be this party's own; it is that of another. {_AGAIN}")
    if not is_signed(consent.signature, read_fingerprint(consent.identity), *_statement(consent)):
        raise PolicyError(f"{source}: a consent must be signed by the identity that gave it; it is not. {_AGAIN}")
    if consent.digest != job.digest.hex():
        raise PolicyError(
            f"{source}: a consent must be to this job, with the digest {job.digest.hex()[:16]}; it is to "
            f"{consent.digest[:16]}. The job has been changed since. {_AGAIN}"
        )
    if read_major(consent.program) != read_major(version_of("cloister")):
        raise PolicyError(
            f"{source}: a consent must be given with this major version, {version_of('cloister')}; it was given with "
            f"{consent.program}. {_AGAIN}"
        )
    if consent.run and consent.run != run.hex():
        raise PolicyError(
            f"{source}: a consent is for one run; run {consent.run[:8]} has used it up. Running again spends the "
            f"budget again. {_AGAIN}"
        )


def write_consent(consent: Consent, path: Path) -> None:
    """Write a consent to a file, in place of an earlier one."""
    replace_file(path, encode_consent(consent), mode=_MODE)


def read_consent(path: Path) -> Consent:
    """Read a consent from a file.

    Raises
    ------
    PolicyError
        If there is none, or it cannot be read.
    """
    try:
        consent = msgspec.json.decode(read_public(path), type=Consent)
    except CredentialsError:
        raise PolicyError(f"a party must have agreed to the job; there is no consent at {path}. {_AGAIN}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise PolicyError(f"{path} must be a whole consent; it is not ({type(error).__name__}). {_AGAIN}") from None
    if consent.cloister_consent != VERSION:
        raise PolicyError(f"{path} must have version {VERSION}; got {consent.cloister_consent}. {_AGAIN}")
    return consent


def encode_consent(consent: Consent) -> bytes:
    """Return the content of ``NAME.consent``."""
    return msgspec.json.format(msgspec.json.encode(consent), indent=2) + b"\n"


def _sign(consent: Consent, identity: Identity) -> Consent:
    return replace(consent, signature=identity.sign(*_statement(consent)))


def _statement(consent: Consent) -> tuple[str | int | bytes, ...]:
    return job_consent_statement(
        bytes.fromhex(consent.digest), consent.party, consent.program, consent.given, bytes.fromhex(consent.run)
    )
