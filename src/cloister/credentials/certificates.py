"""X.509 certificates for TLS: made, requested, read. Whom one belongs to is said elsewhere, by an identity's signature.

TLS needs a certificate, and gRPC refuses those with Ed25519 keys, so each holder of an identity has a P-256 key, too.
Its certificate is self-signed, or issued by a certificate authority of the owner's. It says nothing that anyone relies
on except its key and its dates: a self-signed one may not sign others (``CA:FALSE``), and a peer is known by the
identity that signed the SHA-256 of its certificate, never by a name in it.

The key and the serial number come from `cloister.crypto.Entropy`. OpenSSL draws the nonce of the signature itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ec import derive_private_key as make_from_number
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cloister.crypto import Entropy
from cloister.errors import CredentialsError

TLS_NAME = "cloister.invalid"
"""The DNS name in every certificate that Cloister makes. It never resolves (RFC 2606): addresses prove nothing here."""
_CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_WIDE_BYTES = 48  # reduced by the order of the curve, they are uniform but for 2^-128
_SERIAL_BYTES = 16
_BACKDATED = timedelta(hours=1)  # for clocks that are behind
_CERTIFICATES_MOST = 8
Extension = TypeVar("Extension", bound=x509.ExtensionType)
_USES = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A certificate, and those that issued it.

    Attributes
    ----------
    pem
        All of them, in order, and nothing else.
    first_pem, der
        The first one. It is what TLS trusts at the other end, and what it shows there.
    key
        Its public key (DER), which must be that of whoever uses it.
    common_names, tls_name
        Its subject; the DNS name by which TLS checks it.
    valid_from, valid_until
        When all of them are valid, in UTC.
    """

    pem: bytes
    first_pem: bytes
    der: bytes
    key: bytes
    common_names: tuple[str, ...]
    tls_name: str
    valid_from: datetime
    valid_until: datetime
    sha256: bytes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha256", hashlib.sha256(self.der).digest())


def make_tls_key(entropy: Entropy) -> bytes:
    """Draw a P-256 key; returns its PEM."""
    number = int.from_bytes(entropy.bytes(_WIDE_BYTES), "big") % (_CURVE_ORDER - 1) + 1
    key = make_from_number(number, SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def find_public_key(tls_key_pem: bytes) -> bytes:
    """Return the public half of a TLS key, as in `Chain.key`."""
    return _load_key(tls_key_pem).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def make_certificate(name: str, tls_key_pem: bytes, entropy: Entropy, *, now: datetime, days: int) -> bytes:
    """Make a self-signed certificate; returns its PEM."""
    key, subject = _load_key(tls_key_pem), _write_subject(name)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1 + (int.from_bytes(entropy.bytes(_SERIAL_BYTES), "big") >> 1))
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(_USES), critical=False)
        .add_extension(_only_signs(), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


def make_request(name: str, tls_key_pem: bytes) -> bytes:
    """Make a certificate signing request for a certificate authority of the user's own; returns its PEM."""
    key = _load_key(tls_key_pem)
    builder = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(_write_subject(name))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(_USES), critical=False)
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


def read_chain(pem: bytes, *, source: str) -> Chain:
    """Read certificates in PEM; ``source`` is what messages call them.

    Raises
    ------
    CredentialsError
        If they are not a P-256 certificate for TLS at both ends, followed by those that issued it, if any. Dates are
        not checked here (`check_dates`).
    """
    try:
        certificates = x509.load_pem_x509_certificates(pem)
        if len(certificates) > _CERTIFICATES_MOST:
            raise ValueError
        fault = next(_find_faults(certificates), None)
        if fault is None:
            return _describe(certificates)
    except Exception as error:  # the parser raises a dozen types for damaged bytes
        raise CredentialsError(
            f"{source} must hold one to {_CERTIFICATES_MOST} X.509 certificates in PEM; it cannot be read "
            f"({type(error).__name__}). Use an unchanged copy."
        ) from None
    raise CredentialsError(f"{source}: {fault}")


def read_dates(der: bytes) -> tuple[datetime, datetime]:
    """Return from when and until when a certificate is valid; raises `CredentialsError` if it cannot be read."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        return certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except Exception as error:  # the parser raises a dozen types for damaged bytes
        raise CredentialsError(
            f"a certificate must be readable; it is not ({type(error).__name__}). Use an unchanged copy."
        ) from None


def _find_faults(certificates: Sequence[x509.Certificate]) -> Iterator[str]:
    first = certificates[0]
    key = first.public_key()
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        yield "the first certificate must have a P-256 key; it has another. Have one issued from NAME.csr."
    if not _list_dns_names(first):
        yield f"the first certificate must have a DNS name, such as {TLS_NAME}; it has none. Ask for one."
    uses = _find(first, x509.ExtendedKeyUsage)
    if uses is not None and not set(_USES) <= set(uses):
        yield "the first certificate must be for TLS at both ends, server and client; it is not. Ask for both uses."
    for one, issuer in pairwise(certificates):
        try:
            one.verify_directly_issued_by(issuer)
        except Exception:  # of a damaged signature, key or name
            yield "each certificate must be signed by the next; one is not. Put them in order, the key's own first."
    for issuer in certificates[1:]:
        basic = _find(issuer, x509.BasicConstraints)
        if basic is None or not basic.ca:
            yield "all certificates behind the first must be those of authorities (CA:TRUE); one is not."


def _describe(certificates: Sequence[x509.Certificate]) -> Chain:
    first = certificates[0]
    pems = [one.public_bytes(Encoding.PEM) for one in certificates]
    return Chain(
        pem=b"".join(pems),
        first_pem=pems[0],
        der=first.public_bytes(Encoding.DER),
        key=first.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        common_names=tuple(str(name.value) for name in first.subject.get_attributes_for_oid(NameOID.COMMON_NAME)),
        tls_name=_list_dns_names(first)[0],
        valid_from=max(one.not_valid_before_utc for one in certificates),
        valid_until=min(one.not_valid_after_utc for one in certificates),
    )


def _list_dns_names(certificate: x509.Certificate) -> list[str]:
    names = _find(certificate, x509.SubjectAlternativeName)
    return [] if names is None else names.get_values_for_type(x509.DNSName)


def _find(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _only_signs() -> x509.KeyUsage:
    unused = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "key_cert_sign",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=True, **unused)


def _write_subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _load_key(tls_key_pem: bytes) -> EllipticCurvePrivateKey:
    key = load_pem_private_key(tls_key_pem, password=None)
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError("a TLS key must be a P-256 key; it is not")
    return key
