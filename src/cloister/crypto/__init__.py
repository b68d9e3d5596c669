"""Cryptography: the only source of randomness, identities, and boxes sealed between parties.

Reading order: :mod:`~cloister.crypto.entropy` (where random bytes come from), :mod:`~cloister.crypto.stream`
(a stream-cipher generator grown from a key), :mod:`~cloister.crypto.identity` (who is who),
:mod:`~cloister.crypto.sealing` (what one party sends another through the coordinator).
"""

from cloister.crypto.entropy import Entropy, SeededEntropy, SystemEntropy, make_entropy
from cloister.crypto.identity import Identity, SessionKey, SignedSessionKey
from cloister.crypto.sealing import open_box, seal_box
from cloister.crypto.stream import Stream, derive_key

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
