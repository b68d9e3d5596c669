"""Boxes between parties that the coordinator relays and cannot read or forge.

A box is one ephemeral X25519 key and one ChaCha20-Poly1305 ciphertext. Its key is derived from two Diffie-Hellman
secrets, ephemeral-recipient (so each box has its own key) and sender-recipient (so only the sender could have made
it), together with all three public keys and the context: session, sender, recipient, purpose. This is the key schedule
of the one-way pattern X of the Noise framework, with keys that were exchanged and signed beforehand.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from cloister.crypto.entropy import Entropy
from cloister.crypto.identity import PUBLIC_KEY_BYTES, SessionKey
from cloister.crypto.stream import Context, derive_key
from cloister.errors import RemoteProtocolError

_NONCE = bytes(12)  # constant: every box has a fresh key
TAG_BYTES = 16
OVERHEAD_BYTES = PUBLIC_KEY_BYTES + TAG_BYTES


def seal_box(
    plaintext: bytes, *, sender: SessionKey, recipient: bytes, context: tuple[Context, ...], entropy: Entropy
) -> bytes:
    """Seal ``plaintext`` to the ``recipient``'s session public key; ``context`` must be the same on opening."""
    ephemeral = SessionKey(entropy)
    key = derive_key(
        ephemeral.exchange(recipient) + sender.exchange(recipient),
        "box",
        ephemeral.public_bytes,
        sender.public_bytes,
        recipient,
        *context,
    )
    return ephemeral.public_bytes + ChaCha20Poly1305(key).encrypt(_NONCE, plaintext, None)


def open_box(box: bytes, *, recipient: SessionKey, sender: bytes, context: tuple[Context, ...]) -> bytes:
    """Open a box; raises :class:`RemoteProtocolError` unless ``sender`` made it for us in this context."""
    if len(box) < OVERHEAD_BYTES:
        raise RemoteProtocolError(f"a sealed box must have at least {OVERHEAD_BYTES} bytes; got {len(box)}.")
    ephemeral, ciphertext = box[:PUBLIC_KEY_BYTES], box[PUBLIC_KEY_BYTES:]
    key = derive_key(
        recipient.exchange(ephemeral) + recipient.exchange(sender),
        "box",
        ephemeral,
        sender,
        recipient.public_bytes,
        *context,
    )
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, ciphertext, None)
    except InvalidTag:
        raise RemoteProtocolError(
            "a sealed box must come from the stated sender, for us, in this session; this one does not."
        ) from None
