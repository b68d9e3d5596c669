"""Cryptography: the only source of randomness, identities, and boxes sealed between parties.

Reading order: :mod:`~cloister.crypto.stream` (random numbers from a key, and where keys come from),
:mod:`~cloister.crypto.identity` (who is who), :mod:`~cloister.crypto.fingerprint` (an
identity as text), :mod:`~cloister.crypto.sealing` (what one party sends another through the
coordinator), :mod:`~cloister.crypto.secret_sharing`.
"""

from cloister.crypto.fingerprint import read_fingerprint, write_fingerprint
from cloister.crypto.identity import PUBLIC_KEY_BYTES, Identity, SessionKey, SignedSessionKey, is_signed
from cloister.crypto.sealing import OVERHEAD_BYTES, TAG_BYTES, open_box, open_keyed, seal_box, seal_keyed
from cloister.crypto.secret_sharing import SHARE_BYTES, combine_shares, split_secret
from cloister.crypto.stream import (
    KEY_BYTES,
    Context,
    Entropy,
    SeededEntropy,
    Stream,
    SystemEntropy,
    derive_key,
    encode_context,
    make_entropy,
)

__all__ = [
    "KEY_BYTES",
    "OVERHEAD_BYTES",
    "PUBLIC_KEY_BYTES",
    "SHARE_BYTES",
    "TAG_BYTES",
    "Context",
    "Entropy",
    "Identity",
    "SeededEntropy",
    "SessionKey",
    "SignedSessionKey",
    "Stream",
    "SystemEntropy",
    "combine_shares",
    "derive_key",
    "encode_context",
    "is_signed",
    "make_entropy",
    "open_box",
    "open_keyed",
    "read_fingerprint",
    "seal_box",
    "seal_keyed",
    "split_secret",
    "write_fingerprint",
]
