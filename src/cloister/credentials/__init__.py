"""Who an organisation is on the network: its key files, and what TLS needs of them.

An identity (Ed25519) is what a job names and what signs. It vouches for a P-256 key with an X.509 certificate, which
TLS needs. Reading order: ``statements`` (what an identity signs), ``certificates`` (X.509), ``files`` (how keys are
written and read), ``keys`` (the two key files, and what is in them), ``making`` (new ones, and renewal), ``directory``
(other organisations' public files).
"""

from cloister.credentials.directory import find_public_files
from cloister.credentials.keys import (
    OwnKeys,
    PublicKeyFile,
    load_identity,
    load_keys,
    load_public,
    write_certificate_fingerprint,
)
from cloister.credentials.making import (
    default_folder,
    find_keys,
    make_identity,
    make_keys,
    renew_keys,
    request_certificate,
    take_certificate,
    write_public,
)
from cloister.credentials.statements import CONSENTS_MOST, certify, consent_statement, derive_session, is_certified

__all__ = [
    "CONSENTS_MOST",
    "OwnKeys",
    "PublicKeyFile",
    "certify",
    "consent_statement",
    "default_folder",
    "derive_session",
    "find_keys",
    "find_public_files",
    "is_certified",
    "load_identity",
    "load_keys",
    "load_public",
    "make_identity",
    "make_keys",
    "renew_keys",
    "request_certificate",
    "take_certificate",
    "write_certificate_fingerprint",
    "write_public",
]
