"""Sealed boxes: what one party sends to others through a coordinator that can neither read nor forge it.

*Sealed to a public key* (:func:`seal_box`). A box is one ephemeral X25519 key and one ChaCha20-Poly1305 ciphertext. Its
key is derived from two Diffie-Hellman secrets, ephemeral-recipient (so each box has its own key) and sender-recipient
(so only the sender could have made it), together with all three public keys and the context: session, sender,
recipient, purpose. This is the key schedule of the one-way pattern X of the Noise framework, with keys that were
exchanged and signed beforehand.

*Sealed under a shared secret* (:func:`seal_keyed`): the group's seed, or two parties' Diffie-Hellman secret. The key is
derived from the secret and a context (session, purpose, sender, round, ...), so a context must name one message:
sealing two different plaintexts in one context would use one keystream twice. Whoever knows the secret can read every
box and make one in anybody's name; others can do neither.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from cloister.crypto.identity import PUBLIC_KEY_BYTES, SessionKey
from cloister.crypto.stream import Context, Entropy, derive_key
from cloister.errors import RemoteProtocolError

_NONCE = bytes(12)  # constant: every box and every context has a key of its own
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
