"""New keys, and new certificates for old ones: self-signed, or from a certificate authority of the user's own.

An identity is made once and kept. A certificate is renewed with a new TLS key, so that a stolen one is worth nothing
after its certificate was revoked. ``NAME.key`` is replaced in one step and holds the certificate, too: whoever is
killed while renewing has the old keys or the new ones, and can write ``NAME.pub`` again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from cloister.credentials.certificates import find_public_key, make_certificate, make_request, make_tls_key, read_chain
from cloister.credentials.files import read_public, replace_file, write_new
from cloister.credentials.keys import (
    PRIVATE_SUFFIX,
    PUBLIC_SUFFIX,
    OwnKeys,
    PrivateForm,
    check_dates,
    check_name,
    encode_private,
    open_keys,
    read_private_form,
)
from cloister.credentials.statements import certify
from cloister.crypto import Entropy, Identity, SystemEntropy, write_fingerprint
from cloister.crypto.identity import SECRET_BYTES
from cloister.errors import CredentialsError
from cloister.privacy.ledger.places import find_data_folder
from cloister.privacy.ledger.schema import make_folder

REQUEST_SUFFIX = ".csr"
DAYS = 730
_PRIVATE_MODE, _PUBLIC_MODE = 0o600, 0o644


def default_folder() -> Path:
    """Return ``$XDG_DATA_HOME/cloister/keys``, or the same below ``~/.local/share``. Nothing is created."""
    return find_data_folder() / "keys"


def find_keys(name: str) -> Path:
    """Return the private file that a name on the command line means: the file itself, or keys in the default folder."""
    path = Path(name)
    is_file = path.exists() or len(path.parts) > 1 or path.suffix == PRIVATE_SUFFIX
    return path if is_file else default_folder() / f"{name}{PRIVATE_SUFFIX}"


def make_keys(
    name: str, folder: Path, *, days: int = DAYS, now: datetime | None = None, entropy: Entropy | None = None
) -> OwnKeys:
    """Make an identity with a self-signed certificate; writes ``NAME.key`` and ``NAME.pub``, never over others.

    Parameters
    ----------
    name
        What the owner calls it; usually the party's name in jobs.
    folder
        Where the files go; made if it is not there.
    days
        How long the certificate is valid.
    now, entropy
        By default, the clock and the operating system.
    """
    entropy = SystemEntropy() if entropy is None else entropy
    form = _certify_self(_start(name, folder, entropy), entropy, days=days, now=now)
    return _store(form, folder, now=now, new=True)


def make_identity(name: str, folder: Path, *, entropy: Entropy | None = None) -> Identity:
    """Make an identity without a certificate, for a client that somebody hosts; writes ``NAME.key``."""
    form = _start(name, folder, SystemEntropy() if entropy is None else entropy)
    write_new(folder / f"{name}{PRIVATE_SUFFIX}", encode_private(form), mode=_PRIVATE_MODE)
    return Identity.from_secret(form.secret)


def renew_keys(path: Path, *, days: int = DAYS, now: datetime | None = None, entropy: Entropy | None = None) -> OwnKeys:
    """Give an identity a new TLS key and a new self-signed certificate; parameters as `make_keys`.

    The others need the new ``NAME.pub``; jobs stay as they are, for they name the identity.
    """
    entropy = SystemEntropy() if entropy is None else entropy
    form = _certify_self(read_private_form(path), entropy, days=days, now=now)
    return _store(form, path.parent, now=now, new=False)


def request_certificate(name: str, folder: Path, *, entropy: Entropy | None = None) -> Path:
    """Write ``NAME.csr`` for a certificate authority; makes the identity if there is none yet.

    A certificate that is in use stays in use until `take_certificate` replaces it.
    """
    entropy = SystemEntropy() if entropy is None else entropy
    private, request = folder / f"{name}{PRIVATE_SUFFIX}", folder / f"{name}{REQUEST_SUFFIX}"
    tls_key = make_tls_key(entropy)
    if private.exists():
        form = replace(read_private_form(private), next_tls_key=tls_key.decode())
        replace_file(private, encode_private(form), mode=_PRIVATE_MODE)
    else:
        form = replace(_start(name, folder, entropy), next_tls_key=tls_key.decode())
        write_new(private, encode_private(form), mode=_PRIVATE_MODE)
    replace_file(request, make_request(form.name, tls_key), mode=_PUBLIC_MODE)
    return request


def take_certificate(path: Path, chain_file: Path, *, now: datetime | None = None) -> OwnKeys:
    """Take the certificate that an authority issued for the last request, with the chain up to the authority's own."""
    form, chain = read_private_form(path), read_chain(read_public(chain_file), source=str(chain_file))
    check_dates(chain.valid_from, chain.valid_until, now=now, source=str(chain_file))
    for tls_key in (form.next_tls_key, form.tls_key):
        if tls_key and find_public_key(tls_key.encode()) == chain.key:
            awaited = "" if tls_key == form.next_tls_key else form.next_tls_key
            form = replace(_certify(form, tls_key, chain.pem), next_tls_key=awaited)
            return _store(form, path.parent, now=now, new=False)
    raise CredentialsError(
        f"{chain_file} must begin with the certificate of the last request; it is for another key. Have it issued from "
        f"{form.name}{REQUEST_SUFFIX}, or make a new request."
    )


def write_public(path: Path, *, now: datetime | None = None) -> Path:
    """Write ``NAME.pub`` again from ``NAME.key``."""
    own = open_keys(read_private_form(path), source=str(path), now=now, any_date=True)
    return _write_public(own, path.parent)


def _start(name: str, folder: Path, entropy: Entropy) -> PrivateForm:
    check_name(name, str(folder))
    make_folder(folder)
    for suffix in (PRIVATE_SUFFIX, PUBLIC_SUFFIX):
        if (folder / f"{name}{suffix}").exists():
            raise CredentialsError(
                f"new keys must have a new name; {folder / name}{suffix} exists. Choose another name, or renew the "
                "certificate: cloister keys renew NAME"
            )
    secret = entropy.bytes(SECRET_BYTES)
    return PrivateForm(name=name, identity=write_fingerprint(Identity.from_secret(secret).public_bytes), secret=secret)


def _certify_self(form: PrivateForm, entropy: Entropy, *, days: int, now: datetime | None) -> PrivateForm:
    tls_key = make_tls_key(entropy)
    now = datetime.now(UTC) if now is None else now
    certificate = make_certificate(form.name, tls_key, entropy, now=now, days=days)
    return replace(_certify(form, tls_key.decode(), certificate), next_tls_key="")


def _certify(form: PrivateForm, tls_key: str, certificates: bytes) -> PrivateForm:
    """Put a TLS key and its certificates in place, with the identity's signature."""
    chain = read_chain(certificates, source=form.name)
    signature = certify(Identity.from_secret(form.secret), chain.der)
    return replace(form, tls_key=tls_key, certificates=certificates.decode(), signature=signature)


def _store(form: PrivateForm, folder: Path, *, now: datetime | None, new: bool) -> OwnKeys:
    path = folder / f"{form.name}{PRIVATE_SUFFIX}"
    own = open_keys(form, source=str(path), now=now)  # whatever is written can be read
    write = write_new if new else replace_file
    write(path, encode_private(form), mode=_PRIVATE_MODE)
    _write_public(own, folder)
    return own


def _write_public(own: OwnKeys, folder: Path) -> Path:
    path = folder / f"{own.public.name}{PUBLIC_SUFFIX}"
    replace_file(path, own.public.encode(), mode=_PUBLIC_MODE)
    return path
