"""Damage to messages, bit by bit and in structure; and to what a party seals, by whoever holds that party's keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import lru_cache
from random import Random
from typing import Any

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from cloister.crypto import PUBLIC_KEY_BYTES

Path = tuple[Any, ...]
_NONCE = bytes(12)
_STARTS = (0, PUBLIC_KEY_BYTES)  # where the ciphertext begins: after the key of a box sealed to a public key
_ODD = (
    *(
        None,
        True,
        False,
        "",
        "x",
        b"",
        b"\0",
        [],
        {},
        -1,
        0,
        1,
        2,
        3,
        255,
        2**16,
        2**31,
        2**32,
        2**40,
        2**63,
        2**64 - 1,
    ),
    *(
        2**64 - 1,
        -(2**63),
        -(2**31),
        0.0,
        -0.0,
        0.5,
        1.0,
        1e-320,
        1e308,
        -1e308,
        float("inf"),
        float("-inf"),
        float("nan"),
    ),
    *(bytes(16), bytes(32), b"\xff" * 32, [[[[]]]], [b""], ["x"], [0, 0, 0]),
)
_WORDS = (0, 1, 2**31, 2**53, 2**61 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 0x7FF0000000000000, 0x7FF8000000000000)


class Seals:
    """Stands in for the cipher, and remembers who sealed what under which key.

    Attributes
    ----------
    sealer
        Whose turn it is.
    """

    def __init__(self) -> None:
        self.sealer = 0
        self._boxes: dict[bytes, tuple[bytes, bytes, int]] = {}
        self._last: tuple[bytes, int, tuple[Path, ...]] = b"", 0, ()

    def __call__(self, key: bytes) -> _Cipher:
        return _Cipher(self, key)

    def note(self, box: bytes, key: bytes, content: bytes) -> None:
        self._boxes[box] = (key, content, self.sealer)

    def holds(self, box: object, *, by: int) -> bool:
        """Whether this is a box that this party sealed."""
        return isinstance(box, bytes) and any(self._find(box, start)[2] == by for start in _STARTS)

    def find_boxes(self, frame: bytes, *, by: int) -> tuple[Path, ...]:
        """Return where in a message boxes are that this party sealed; it is asked many times of the same one."""
        if self._last[:2] != (frame, by):
            message = msgspec.msgpack.decode(frame)
            found = (path for path in _list_paths(frame) if self.holds(_read(message, path), by=by))
            self._last = frame, by, tuple(found)
        return self._last[2]

    def reseal(self, box: bytes, rng: Random, *, by: int) -> bytes:
        """Return the same box with other contents."""
        start = next(start for start in _STARTS if self._find(box, start)[2] == by)
        key, content, _ = self._find(box, start)
        return box[:start] + ChaCha20Poly1305(key).encrypt(_NONCE, mutate_content(content, rng), None)

    def _find(self, box: bytes, start: int) -> tuple[bytes, bytes, int]:
        return self._boxes.get(box[start:], (b"", b"", -1))


class _Cipher:
    def __init__(self, seals: Seals, key: bytes) -> None:
        self._seals, self._key, self._cipher = seals, key, ChaCha20Poly1305(key)

    def encrypt(self, nonce: bytes, data: bytes, extra: bytes | None) -> bytes:
        box = self._cipher.encrypt(nonce, data, extra)
        self._seals.note(box, self._key, data)
        return box

    def decrypt(self, nonce: bytes, data: bytes, extra: bytes | None) -> bytes:
        return self._cipher.decrypt(nonce, data, extra)


def mutate_frame(frame: bytes, rng: Random, seals: Seals, *, hostile: int, in_boxes: float = 0.6) -> tuple[bytes, bool]:
    """Return a damaged frame, and whether the damage is inside a box of the hostile party's.

    Where there is such a box it is, with probability ``in_boxes``.
    """
    boxes = seals.find_boxes(frame, by=hostile)
    if boxes and rng.random() < in_boxes:
        message = msgspec.msgpack.decode(frame)
        for path in rng.sample(boxes, 1 if rng.random() < 0.8 else len(boxes)):
            holder, at = _follow(message, path)
            holder[at] = seals.reseal(holder[at], rng, by=hostile)
        return msgspec.msgpack.encode(message), True
    if rng.random() < 0.2:
        return mutate_bytes(frame, rng), False
    message = msgspec.msgpack.decode(frame)
    mutate_tree(message, rng, _list_paths(frame))
    for _ in range(0 if rng.random() < 0.8 else 2):
        mutate_tree(message, rng)
    return msgspec.msgpack.encode(message), False


def mutate_content(content: bytes, rng: Random) -> bytes:
    """Damage what is inside a box: in its structure where it has one."""
    if rng.random() < 0.6:
        try:
            message = msgspec.msgpack.decode(content)
        except (msgspec.MsgspecError, ValueError):
            message = None
        if isinstance(message, list) and message:
            mutate_tree(message, rng)
            return msgspec.msgpack.encode(message)
    return mutate_bytes(content, rng)


def mutate_bytes(raw: bytes, rng: Random) -> bytes:
    """Flip, set, cut, lengthen or exchange bytes, or put an extreme word in some place."""
    data, kind = bytearray(raw), rng.randrange(9)
    if not data or kind == 0:
        return bytes(data) + rng.randbytes(rng.choice((1, 2, 8, 64)))
    at = rng.randrange(len(data))
    if kind == 1:
        return bytes(data[:at])
    if kind == 2:
        return bytes(data[at:])
    if kind == 3:
        return rng.choice((bytes(len(data)), b"\xff" * len(data), rng.randbytes(len(data))))
    if kind in (4, 5):
        first = at // 8 * 8
        data[first : first + 8] = rng.choice(_WORDS).to_bytes(8, "little")[: len(data) - first]
    elif kind == 6:
        other = rng.randrange(len(data))
        data[at], data[other] = data[other], data[at]
    else:
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def mutate_tree(message: Any, rng: Random, paths: Sequence[Path] | None = None) -> None:
    """Change one value, or one list, somewhere in a decoded message; ``paths`` are all there are in it, if known."""
    paths = list(_walk(message)) if paths is None else paths
    if not paths:
        return
    holder, at = _follow(message, rng.choice(paths))
    kind = rng.randrange(8)
    if kind == 0:
        holder[at] = _draw_odd(rng)
    elif kind == 1 and isinstance(holder, list):
        del holder[at]
    elif kind == 2 and isinstance(holder, list):
        holder.insert(at, deepcopy(holder[rng.randrange(len(holder))]))
    elif kind == 3:
        other, there = _follow(message, rng.choice(paths))
        holder[at] = deepcopy(other[there])
    else:
        holder[at] = _mutate_value(holder[at], rng)


def _mutate_value(value: Any, rng: Random) -> Any:
    if isinstance(value, bytes):
        return mutate_bytes(value, rng)
    if isinstance(value, bool) or value is None:
        return _draw_odd(rng)
    if isinstance(value, int):
        return max(-(2**63), min(2**64 - 1, value + rng.choice((-1, 1, 2, -2, 7, -value, 2**20, value))))
    if isinstance(value, float):
        return rng.choice((-value, value * 2, value / 2, value + 1, value * 1e300, 0.5, float("nan")))
    if isinstance(value, list) and value:
        return deepcopy(rng.choice((value[::-1], value[:1], value * 2, value[1:], rng.sample(value, len(value)))))
    return _draw_odd(rng)


def _draw_odd(rng: Random) -> Any:
    return deepcopy(rng.choice(_ODD))


def _walk(message: Any, before: Path = ()) -> Iterator[Path]:
    """The path to every place in a decoded message: indices of lists and keys of maps."""
    items = enumerate(message) if isinstance(message, list) else message.items() if isinstance(message, dict) else ()
    for at, value in items:
        yield (*before, at)
        if isinstance(value, list | dict):
            yield from _walk(value, (*before, at))


def _follow(message: Any, path: Path) -> tuple[Any, Any]:
    """Return the list or map that holds a place, and the index there."""
    for at in path[:-1]:
        message = message[at]
    return message, path[-1]


def _read(message: Any, path: Path) -> Any:
    holder, at = _follow(message, path)
    return holder[at]


@lru_cache(maxsize=16)
def _list_paths(frame: bytes) -> tuple[Path, ...]:
    """List all places of a message once: it is damaged many times."""
    return tuple(_walk(msgspec.msgpack.decode(frame)))
