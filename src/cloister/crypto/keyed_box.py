"""Boxes under a secret that sender and readers share already: the group's seed, or two parties' Diffie-Hellman secret.

A box is ChaCha20-Poly1305 under a key derived from the secret and a context (session, purpose, sender, round, ...),
with a constant nonce. So a context names one message: sealing two different plaintexts in one context would use one
keystream twice. Whoever knows the secret can read every box and make one in anybody's name; others can do neither.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from cloister.crypto.sealing import TAG_BYTES
from cloister.crypto.stream import Context, derive_key
from cloister.errors import RemoteProtocolError

__all__ = ["TAG_BYTES", "open_keyed", "seal_keyed"]

_NONCE = bytes(12)  # constant: every context has its own key


def seal_keyed(plaintext: bytes, secret: bytes, *context: Context) -> bytes:
    """Seal ``plaintext`` for all who know ``secret``; one message for each ``context``."""
    return _cipher(secret, context).encrypt(_NONCE, plaintext, None)


def open_keyed(box: bytes, secret: bytes, *context: Context) -> bytes:
    """Open a box; raises :class:`RemoteProtocolError` unless it was sealed under this secret in this context."""
    if len(box) < TAG_BYTES:
        raise RemoteProtocolError(f"a box must have at least {TAG_BYTES} bytes; got {len(box)}.")
    try:
        return _cipher(secret, context).decrypt(_NONCE, box, None)
    except InvalidTag:
        raise RemoteProtocolError(
            "a box must be sealed under the secret that we share with its sender, for this step; this one is not."
        ) from None


def _cipher(secret: bytes, context: tuple[Context, ...]) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(derive_key(secret, "keyed box", *context))
