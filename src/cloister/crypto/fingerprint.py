"""An identity's fingerprint: the public key itself, as text that people can copy into a job and read out on the phone.

``ed25519:`` and 56 letters and digits: base32 of the key's 32 bytes and a checksum of three, so that a wrong letter is
noticed (all but one of 16 million random errors). Nothing else has to be trusted: whoever holds a job with the
fingerprints of all can check every signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from cloister.crypto.identity import PUBLIC_KEY_BYTES
from cloister.errors import ConfigError

_PREFIX = "ed25519:"
_CHECK_BYTES = 3  # with the key's 32 bytes: 56 letters without padding
_LETTERS = (PUBLIC_KEY_BYTES + _CHECK_BYTES) * 8 // 5


def write_fingerprint(identity: bytes) -> str:
    """Return the text of a public key."""
    if len(identity) != PUBLIC_KEY_BYTES:
        raise ValueError(f"an identity must have {PUBLIC_KEY_BYTES} bytes; got {len(identity)}")
    return _PREFIX + base64.b32encode(identity + _check(identity)).decode().lower()


def read_fingerprint(text: str) -> bytes:
    """Return the public key that a text stands for.

    Raises
    ------
    ConfigError
        If it is not exactly what `write_fingerprint` writes.
    """
    letters = text.removeprefix(_PREFIX)
    try:
        if len(letters) != _LETTERS or not letters.isascii() or text != _PREFIX + letters.lower():
            raise ValueError
        raw = base64.b32decode(letters.upper())
    except (binascii.Error, ValueError):
        raise ConfigError(
            f"an identity must be {_PREFIX} and {_LETTERS} lower-case letters and digits, without blanks; it is not. "
            "Copy it from the other organisation's public file: cloister keys show NAME.pub"
        ) from None
    identity, check = raw[:PUBLIC_KEY_BYTES], raw[PUBLIC_KEY_BYTES:]
    if check != _check(identity):
        raise ConfigError(
            "an identity must end with its checksum; it does not, so some letter is wrong. "
            "Compare it with its owner: cloister keys show NAME.pub"
        )
    return identity


def _check(identity: bytes) -> bytes:
    return hashlib.sha256(b"cloister identity" + identity).digest()[:_CHECK_BYTES]
