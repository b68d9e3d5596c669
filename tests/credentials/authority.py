"""A certificate authority for tests, and certificates that are wrong in one way each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BOTH = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


class Authority:
    def __init__(self, name: str = "Test CA", *, ca: bool = True, issuer: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        above = issuer or self
        self.certificate = (
            _start(self.subject, above.subject, self.key.public_key(), days=3650)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .sign(above.key, SHA256())
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(
        self,
        request_pem: bytes,
        *,
        name: str | None = None,
        dns: str | None = None,
        uses=BOTH,
        key=None,
        days: int = 90,
    ) -> bytes:
        request = x509.load_pem_x509_csr(request_pem)
        assert request.is_signature_valid
        subject = request.subject if name is None else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _start(subject, self.subject, key or request.public_key(), days=days)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        if dns != "":
            names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            if dns is not None:
                names = x509.SubjectAlternativeName([x509.DNSName(dns)])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self.key, SHA256()).public_bytes(Encoding.PEM)


def _start(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int):
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
    )
