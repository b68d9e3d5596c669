"""Random numbers: a stream grown from a key, and where the keys come from.

A :class:`Stream` is ChaCha20 keystream, with purposes separated by HKDF-SHA256. Masks, initial centres, shuffles and
synthetic data all come from it, so that the same key gives the same numbers on every machine and with every library
version. With a secret 256-bit key the output is indistinguishable from uniform; with a seed that a person typed it is
reproducible and nothing more.

Roles are given an :class:`Entropy` and draw every key from it. Its kind is visible (``is_simulation``), so that a
result made from a seed says that it is reproducible and therefore not secret.
"""

from __future__ import annotations

import secrets
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from cloister.errors import ConfigError
from cloister.late import load_late
from cloister.records import FloatArray, IntArray

special = load_late("scipy.special")

KEY_BYTES = 32
NONCE_BYTES = 12
_BLOCK_BYTES = 64
_MAX_BYTES = (1 << 32) * _BLOCK_BYTES  # the cipher's block counter has 32 bits

Context = str | int | bytes


def derive_key(secret: bytes, *context: Context) -> bytes:
    """Derive an independent 256-bit key for one purpose: HKDF-SHA256 with an injective encoding of ``context``."""
    if not secret:
        raise ValueError("a secret must have at least one byte; got none")
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=b"cloister/v1", info=encode_context(*context)).derive(secret)


def encode_context(*context: Context) -> bytes:
    """Encode a tuple of labels injectively: each part is typed and prefixed with its length."""
    parts = []
    for part in context:
        if isinstance(part, bytes):
            tag, raw = b"b", part
        elif isinstance(part, str):
            tag, raw = b"s", part.encode()
        else:
            tag, raw = b"i", part.to_bytes(16, "little", signed=True)
        parts.append(tag + len(raw).to_bytes(4, "little") + raw)
    return b"".join(parts)


class Stream:
    """A sequence of random numbers determined by a key and a nonce.

    Parameters
    ----------
    key
        32 bytes.
    nonce
        12 bytes; two streams with the same key must differ here, or they are the same stream.
    """

    __slots__ = ("_encryptor", "_key", "_used")
    is_simulation = True  # as a source of keys: whoever knows the key knows every byte

    def __init__(self, key: bytes, nonce: bytes = bytes(NONCE_BYTES)) -> None:
        if len(key) != KEY_BYTES or len(nonce) != NONCE_BYTES:
            raise ValueError(
                f"a stream needs a key of {KEY_BYTES} bytes and a nonce of {NONCE_BYTES}; "
                f"got {len(key)} and {len(nonce)}"
            )
        self._key = key
        # OpenSSL's 16-byte ChaCha20 nonce is a 32-bit block counter followed by RFC 8439's 12-byte nonce.
        self._encryptor = Cipher(ChaCha20(key, bytes(4) + nonce), mode=None).encryptor()
        self._used = 0

    @classmethod
    def from_seed(cls, seed: int | bytes, *context: Context) -> Stream:
        """Start a stream from a seed and a purpose; different purposes give independent streams."""
        raw = seed if isinstance(seed, bytes) else b"int" + seed.to_bytes(16, "little", signed=True)
        return cls(derive_key(raw, "seed", *context))

    def child(self, *context: Context) -> Stream:
        """Start an independent stream for one purpose; does not advance this one."""
        return Stream(derive_key(self._key, "child", *context))

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the keystream."""
        self._used += count
        if self._used > _MAX_BYTES:
            raise OverflowError("a stream yields at most 256 GiB; start a child stream")
        return self._encryptor.update(bytes(count))

    def words(self, count: int, dtype: type[np.uint32] | type[np.uint64]) -> NDArray[Any]:
        """Return ``count`` words, uniform over the whole of Z_2^32 or Z_2^64 including the last value."""
        width = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(self.bytes(count * width.itemsize), dtype=width).astype(dtype, copy=False)

    def uniform(self, *shape: int) -> FloatArray:
        """Return doubles uniform on the 2^53 multiples of 2^-53 in [0, 1)."""
        words = self.words(int(np.prod(shape, dtype=np.int64)), np.uint64)
        fractions: FloatArray = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return fractions.reshape(shape)

    def normal(self, *shape: int) -> FloatArray:
        """Return standard normal doubles by inversion; for synthetic data, never for privacy noise."""
        inside = np.minimum(self.uniform(*shape) + 2.0**-54, 1.0 - 2.0**-53)  # neither 0 nor, by rounding, 1
        result: FloatArray = special.ndtri(inside)
        return result

    def integers(self, high: int, *shape: int) -> IntArray:
        """Return integers uniform on [0, high), without modulo bias."""
        if not 1 <= high <= 2**63:
            raise ValueError(f"high must be between 1 and 2^63; got {high}")
        count = int(np.prod(shape, dtype=np.int64))
        limit = (1 << 64) - ((1 << 64) % high)  # words at or above it would be over-represented: draw again
        out = np.empty(0, dtype=np.uint64)
        while out.size < count:
            fresh = self.words(count - out.size, np.uint64)
            if limit < 1 << 64:
                fresh = fresh[fresh < np.uint64(limit)]
            out = np.concatenate([out, fresh % np.uint64(high)])
        return out.astype(np.int64).reshape(shape)

    def permutation(self, count: int) -> IntArray:
        """Return a permutation of 0..count-1; all orders equally likely but for ties among 64-bit words."""
        return np.argsort(self.words(count, np.uint64), kind="stable").astype(np.int64)


class Entropy(Protocol):
    """A source of secret bytes."""

    @property
    def is_simulation(self) -> bool:
        """Whether whoever knows the seed knows every byte."""

    def bytes(self, count: int) -> bytes:
        """Return ``count`` fresh bytes."""


class SystemEntropy:
    """The operating system's generator."""

    is_simulation = False

    def bytes(self, count: int) -> bytes:
        """Return ``count`` bytes from the kernel."""
        return secrets.token_bytes(count)


class SeededEntropy:
    """Reproducible bytes for simulations and tests: the same seed and label give the same bytes."""

    is_simulation = True

    def __init__(self, seed: int | bytes, label: str) -> None:
        self._stream = Stream.from_seed(seed, "entropy", label)

    def bytes(self, count: int) -> bytes:
        """Return the next ``count`` bytes of the seeded stream."""
        return self._stream.bytes(count)


def make_entropy(label: str, *, seed: int | bytes | None = None, secure: bool = False) -> Entropy:
    """Choose the source for one role.

    Parameters
    ----------
    label
        The role's name; two roles with the same seed still get independent bytes.
    seed
        Reproduces a simulation. ``None`` takes the operating system's entropy. Secret bytes reproduce it for whoever
        holds them: an audit.
    secure
        Refuse a seed, because whoever knows it can remove every mask.
    """
    if seed is None:
        return SystemEntropy()
    if secure:
        raise ConfigError(
            "secure mode takes its keys from the operating system and must have no seed; got one. "
            "Remove the seed, or run a simulation."
        )
    return SeededEntropy(seed, label)
