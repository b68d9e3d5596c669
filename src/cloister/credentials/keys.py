"""Key files: ``NAME.key``, which never leaves its owner, and ``NAME.pub``, which the other organisations get.

::

    NAME.key   version, name, the identity and its secret, the TLS key and its certificates, signature as below, the TLS
               key that awaits a certificate from an authority (if any)                        mode 0600, never shown
    NAME.pub   version, name, identity, certificates, signature = the identity's, over
               ("cloister certificate", SHA-256 of the first certificate)

The public file follows from the private one, so that it can be written again. Nobody has to trust how it arrives: a job
names each party's identity, and the file proves that its certificate belongs to it. A file of a version that is not
known, a damaged one, and one whose parts do not belong together are refused with a `CredentialsError`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from cloister.credentials.certificates import Chain, find_public_key, read_chain
from cloister.credentials.files import read_private, read_public
from cloister.credentials.statements import is_certified
from cloister.crypto import Identity, derive_key, read_fingerprint, write_fingerprint
from cloister.errors import ConfigError, CredentialsError

VERSION = 1
PRIVATE_SUFFIX, PUBLIC_SUFFIX = ".key", ".pub"
_NAME_BYTES = 64  # of a name in a certificate


class PrivateForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in ``NAME.key``."""

    cloister_private_keys: int = VERSION
    name: str
    identity: str
    secret: bytes
    tls_key: str = ""
    certificates: str = ""
    signature: bytes = b""
    next_tls_key: str = ""

    def __repr__(self) -> str:
        return f"PrivateForm({self.name!r})"


class _PublicForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cloister_public_key: int = VERSION
    name: str
    identity: str
    certificates: str
    signature: bytes


@dataclass(frozen=True, kw_only=True)
class PublicKeyFile:
    """An identity with a certificate that it signed. All parts belong together: `load_public` and `seal` check it.

    Attributes
    ----------
    name
        What its owner calls it. A job may call the party otherwise: what counts is the identity.
    identity
        The Ed25519 public key.
    certificates_pem
        The certificate, and those that issued it.
    signature
        The identity's, over the certificate.
    """

    name: str
    identity: bytes
    certificates_pem: bytes
    signature: bytes
    source: str = field(default="the public file", compare=False)

    def __post_init__(self) -> None:
        check_name(self.name, self.source)
        if not is_certified(self.signature, self.identity, self.chain.der):
            raise CredentialsError(
                f"{self.source}: the certificate must be signed by the identity beside it; it is not. Someone may have "
                "exchanged one of them: ask its owner for the file again."
            )
        names = {*self.chain.common_names, self.chain.tls_name}
        if self.name not in names:
            raise CredentialsError(
                f"{self.source}: the certificate must be made out to {self.name!r}; it is not. Ask its owner for the "
                "file again; an authority must leave the name (CN) of a request as it is."
            )

    @cached_property
    def chain(self) -> Chain:
        """The certificates as read."""
        return read_chain(self.certificates_pem, source=self.source)

    @property
    def fingerprint(self) -> str:
        """The identity as text, as a job names it."""
        return write_fingerprint(self.identity)

    @property
    def certificate_fingerprint(self) -> str:
        """The certificate's SHA-256 as text, as a policy may revoke it."""
        return write_certificate_fingerprint(self.chain.der)

    def check_dates(self, now: datetime | None = None) -> None:
        """Raise :class:`CredentialsError` unless all certificates are valid now."""
        check_dates(self.chain.valid_from, self.chain.valid_until, now=now, source=self.source)

    def encode(self) -> bytes:
        """Return the file's content."""
        form = _PublicForm(
            name=self.name,
            identity=self.fingerprint,
            certificates=self.certificates_pem.decode(),
            signature=self.signature,
        )
        return msgspec.json.format(msgspec.json.encode(form), indent=2) + b"\n"


@dataclass(frozen=True, kw_only=True)
class OwnKeys:
    """What one organisation holds.

    Attributes
    ----------
    identity
        Signs for it.
    tls_key_pem
        The key of its certificate.
    public
        What the others get.
    journal_key
        Seals its journals on disk; follows from the identity's secret.
    """

    identity: Identity
    tls_key_pem: bytes = field(repr=False)
    public: PublicKeyFile
    journal_key: bytes = field(repr=False)


def check_name(name: str, source: str) -> None:
    """Raise :class:`CredentialsError` unless this can be the name of keys: of a file, and in a certificate."""
    if not (name.isprintable() and name == name.strip() and 1 <= len(name.encode()) <= _NAME_BYTES) or (
        name.startswith(".") or set(name) & set("/\\")
    ):
        raise CredentialsError(
            f"{source}: the name of keys must be printable, at most {_NAME_BYTES} bytes long, without / and \\, and "
            "not begin with a dot; it is not. Choose another one."
        )


def write_certificate_fingerprint(certificate_der: bytes) -> str:
    """Return a certificate's SHA-256 as text."""
    return f"sha256:{hashlib.sha256(certificate_der).hexdigest()}"


def check_dates(valid_from: datetime, valid_until: datetime, *, now: datetime | None = None, source: str) -> None:
    """Raise :class:`CredentialsError` unless a certificate is valid; ``now`` is by default the clock's time."""
    now = datetime.now(UTC) if now is None else now
    if now < valid_from:
        raise CredentialsError(
            f"{source}: a certificate must be valid already; this one is from {valid_from:%Y-%m-%d %H:%M} UTC on, and "
            f"it is {now:%Y-%m-%d %H:%M}. Check the clock."
        )
    if now > valid_until:
        raise CredentialsError(
            f"{source}: a certificate must not have expired; this one has, on {valid_until:%Y-%m-%d}. Its owner runs: "
            "cloister keys renew NAME, and sends the new NAME.pub to the others."
        )


def load_public(path: str | Path, *, now: datetime | None = None, any_date: bool = False) -> PublicKeyFile:
    """Read ``NAME.pub``.

    Parameters
    ----------
    path
        The file.
    now
        The time, by default the clock's.
    any_date
        Also return one that has expired or is not valid yet.

    Raises
    ------
    CredentialsError
        If it cannot be read, is of another version, damaged, not valid now, or its parts do not belong together.
    """
    path = Path(path)
    form = _decode(read_public(path), _PublicForm, path, "cloister_public_key")
    try:
        identity = read_fingerprint(form.identity)
    except ConfigError as error:
        raise CredentialsError(f"{path}: {error}") from None
    public = PublicKeyFile(
        name=form.name,
        identity=identity,
        certificates_pem=read_chain(form.certificates.encode(), source=str(path)).pem,
        signature=form.signature,
        source=str(path),
    )
    if not any_date:
        public.check_dates(now)
    return public


def load_keys(path: str | Path, *, now: datetime | None = None, any_date: bool = False) -> OwnKeys:
    """Read ``NAME.key``; parameters and errors as `load_public`, and refused if others can read it."""
    path = Path(path)
    return open_keys(read_private_form(path), source=str(path), now=now, any_date=any_date)


def load_identity(path: Path) -> Identity:
    """Read the identity in ``NAME.key`` alone, for one that uses the certificate of whoever hosts it."""
    form = read_private_form(path)
    try:
        identity = Identity.from_secret(form.secret)
    except ValueError as error:
        raise _damaged(str(path), error) from None
    if write_fingerprint(identity.public_bytes) != form.identity:
        raise CredentialsError(f"{path}: the secret must be that of the identity beside it; it is not. Restore a copy.")
    return identity


def read_private_form(path: Path) -> PrivateForm:
    """Read ``NAME.key`` as it stands."""
    return _decode(read_private(path), PrivateForm, path, "cloister_private_keys")


def open_keys(form: PrivateForm, *, source: str, now: datetime | None = None, any_date: bool = False) -> OwnKeys:
    """Return the keys in a private file; all parts of it must belong together."""
    if not form.certificates:
        raise CredentialsError(
            f"{source}: keys must have a certificate before they can be used; these await one. Send NAME.csr to your "
            "certificate authority, then: cloister keys new NAME --certificate CHAIN.PEM"
        )
    try:
        identity = Identity.from_secret(form.secret)
        tls_key = find_public_key(form.tls_key.encode())
    except Exception as error:  # the parsers raise a dozen types for damaged bytes
        raise _damaged(source, error) from None
    if write_fingerprint(identity.public_bytes) != form.identity:
        raise CredentialsError(
            f"{source}: the secret must be that of the identity beside it; it is not. Restore a copy."
        )
    chain = read_chain(form.certificates.encode(), source=source)
    if chain.key != tls_key:
        raise CredentialsError(
            f"{source}: the certificate must be that of the TLS key beside it; it is not. Restore a copy."
        )
    public = PublicKeyFile(
        name=form.name,
        identity=identity.public_bytes,
        certificates_pem=chain.pem,
        signature=form.signature,
        source=source,
    )
    if not any_date:
        public.check_dates(now)
    return OwnKeys(
        identity=identity,
        tls_key_pem=form.tls_key.encode(),
        public=public,
        journal_key=derive_key(form.secret, "journals of an identity"),
    )


Form = TypeVar("Form", PrivateForm, _PublicForm)


def _decode(content: bytes, kind: type[Form], path: Path, mark: str) -> Form:
    """Read a file of keys; errors quote nothing of it."""
    try:
        version = msgspec.json.decode(content, type=dict[str, object]).get(mark)
        if version == VERSION and not isinstance(version, bool):
            return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(str(path), error) from None
    if isinstance(version, int):
        what_to_do = "Update Cloister." if version > VERSION else "It was not written by Cloister."
        raise CredentialsError(f"{path} must have version {VERSION}; got {version}. {what_to_do}")
    what = "a public file (NAME.pub)" if kind is _PublicForm else "a private file (NAME.key)"
    raise CredentialsError(f"{path} must be {what} of Cloister's; it is not. Check the path.")


def _damaged(source: str, error: Exception) -> CredentialsError:
    return CredentialsError(
        f"{source} must be as Cloister wrote it; it cannot be read ({type(error).__name__}). Restore a copy, or ask "
        "its owner for it again."
    )


def encode_private(form: PrivateForm) -> bytes:
    """Return the content of ``NAME.key``."""
    return msgspec.json.format(msgspec.json.encode(form), indent=2) + b"\n"
