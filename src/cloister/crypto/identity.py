"""Who is who: a long-lived Ed25519 identity signs a short-lived X25519 key for each session.

The directory of identities is public and agreed before a job starts. Because every session key is signed together with
the session id and the holder's number, the coordinator that relays the keys cannot replace one with its own.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from msgspec import Struct

from cloister.crypto.stream import Context, Entropy, Stream, encode_context
from cloister.errors import RemoteProtocolError

PUBLIC_KEY_BYTES = 32
SECRET_BYTES = 32
SIGNATURE_BYTES = 64


class SignedSessionKey(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A session's public key with its owner's signature, as it travels."""

    owner: int
    public_key: bytes
    signature: bytes

    def verify(self, identity: bytes, session: bytes) -> None:
        """Raise :class:`RemoteProtocolError` unless ``identity`` signed this usable key for this session and owner."""
        if len(self.public_key) != PUBLIC_KEY_BYTES or len(self.signature) != SIGNATURE_BYTES:
            raise RemoteProtocolError(
                f"a session key must have {PUBLIC_KEY_BYTES} bytes and its signature {SIGNATURE_BYTES}; "
                f"got {len(self.public_key)} and {len(self.signature)}."
            )
        if not is_signed(self.signature, identity, *_statement(session, self.owner, self.public_key)):
            raise RemoteProtocolError(
                f"the session key of party {self.owner} must be signed by the identity in the directory; it is not. "
                "Someone on the way may have replaced it."
            )
        _PROBE.exchange(self.public_key)  # a signed point of small order would fail only when a box is sealed to it


def _statement(session: bytes, owner: int, public_key: bytes) -> tuple[Context, ...]:
    return ("cloister session key", session, owner, public_key)


def is_signed(signature: bytes, identity: bytes, *context: Context) -> bool:
    """Return whether this identity signed these labels."""
    try:
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, encode_context(*context))
    except InvalidSignature:
        return False
    return True


class Identity:
    """A party's long-lived signing key."""

    __slots__ = ("_private",)

    def __init__(self, entropy: Entropy) -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(entropy.bytes(SECRET_BYTES))

    @classmethod
    def from_secret(cls, secret: bytes) -> Identity:
        """Return the identity that was drawn as these bytes."""
        made = cls.__new__(cls)
        made._private = Ed25519PrivateKey.from_private_bytes(secret)
        return made

    @property
    def public_bytes(self) -> bytes:
        """The public half, as it stands in the directory."""
        return self._private.public_key().public_bytes_raw()

    def sign_session_key(self, key: SessionKey, session: bytes, owner: int) -> SignedSessionKey:
        """Bind a session key to this identity, this session and this party number."""
        public = key.public_bytes
        return SignedSessionKey(owner, public, self.sign(*_statement(session, owner, public)))

    def sign(self, *context: Context) -> bytes:
        """Sign labels; the first one must name the purpose."""
        return self._private.sign(encode_context(*context))


class SessionKey:
    """A party's X25519 key for one session."""

    __slots__ = ("_private",)

    def __init__(self, entropy: Entropy) -> None:
        self._private = X25519PrivateKey.from_private_bytes(entropy.bytes(32))

    @property
    def public_bytes(self) -> bytes:
        """The public half."""
        return self._private.public_key().public_bytes_raw()

    def exchange(self, public_key: bytes) -> bytes:
        """Return the Diffie-Hellman secret with a peer's public key; refuses points of small order."""
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(public_key))
        except ValueError:
            raise RemoteProtocolError("a public key must be a point of large order in 32 bytes; it is not.") from None


_PROBE = SessionKey(Stream(bytes(32)))  # protects nothing: exchanging with it exposes points of small order
