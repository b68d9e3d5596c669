"""Cryptography: the only source of randomness, identities, and boxes sealed between parties.

Reading order: :mod:`~cloister.crypto.stream` (random numbers from a key, and where keys come from),
:mod:`~cloister.crypto.identity` (who is who), :mod:`~cloister.crypto.sealing` (what one party sends another through the
coordinator), :mod:`~cloister.crypto.secret_sharing`.
"""

from cloister.crypto.identity import Identity, SessionKey, SignedSessionKey
from cloister.crypto.sealing import open_box, seal_box
from cloister.crypto.stream import Entropy, SeededEntropy, Stream, SystemEntropy, derive_key, make_entropy

__all__ = [
    "Entropy",
    "Identity",
    "SeededEntropy",
    "SessionKey",
    "SignedSessionKey",
    "Stream",
    "SystemEntropy",
    "derive_key",
    "make_entropy",
    "open_box",
    "seal_box",
]
