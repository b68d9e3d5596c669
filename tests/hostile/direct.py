"""Damaged bytes at the codecs and at the parsers of what is in boxes, without a session around them.

A session costs many times what these do, so these see rarer damage. They see less of it: only that what cannot be read
is refused with RemoteProtocolError.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from cloister.aggregation import statements, unpack_members
from cloister.errors import CloisterError, RemoteProtocolError
from cloister.lattice import packing
from cloister.protocols.align import group
from cloister.protocols.guided_sums.statements import Forms
from cloister.protocols.secfc import messages as secfc_messages
from cloister.protocols.vertical import contents
from cloister.protocols.vertical.labels import masking
from cloister.roles import COORDINATOR
from cloister.wire import Array, Codec
from cloister.wire.codec import DTYPES
from tests.hostile.game import Game, Played
from tests.hostile.mutation import Seals, mutate_content, mutate_frame
from tests.sessions import SESSION

_NOBODY = -2
_MOST_KEPT = 3  # of a kind of message, and of the calls of a parser, in one session
PARSERS: tuple[Callable[..., Any], ...] = (
    contents.decode,
    contents.unpack_answer,
    contents.unpack_share,
    contents.unpack_totals,
    masking.unpack_masked,
    masking.unpack_blocks,
    masking.unpack_values,
    packing.unpack_words,
    packing.unpack_residues,
    group.check_points,
    group.decode_exponent,
    secfc_messages.read_words,
    statements.read_words,
    unpack_members,
)
"""Functions that read bytes which a peer chose, and refuse with RemoteProtocolError what they cannot read."""


@dataclass(frozen=True, eq=False)
class Kept:
    """A true message or a true call of a parser, to be damaged.

    Attributes
    ----------
    what
        For findings.
    raw
        The bytes that are damaged.
    damage, read
        How, and who reads them then.
    """

    what: str
    raw: bytes
    damage: Callable[[bytes, Random], bytes]
    read: Callable[[bytes], object]


def try_directly(name: str, seed: int, count: int) -> Played:
    """Damage what was kept of one case so many times."""
    rng, kept, played = Random(f"direct {name} {seed}"), keep_case(name), Played()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(count):
            one = rng.choice(kept)
            damaged = one.damage(one.raw, rng)
            if damaged == one.raw:
                continue
            played.frames += 1
            try:
                one.read(damaged)
            except RemoteProtocolError:
                played.refused += 1
            except Exception:
                played.findings.append(f"{name}, seed {seed}, {one.what}: {traceback.format_exc()}")
    return played


@cache
def keep_case(name: str) -> tuple[Kept, ...]:
    """Play a case without damage; keep some messages of each kind, and some calls of each parser."""
    calls: list[Kept] = []
    with _watching(calls):
        game = Game(name, None)
        game.play()
    messages = [_keep_message(game.codec, sender, frame) for sender, frame in game.sent]
    by_kind: dict[str, list[Kept]] = {}
    for one in [*messages, *calls]:
        by_kind.setdefault(one.what, []).append(one)
    return tuple(one for kind in by_kind.values() for one in sorted(kind, key=lambda one: len(one.raw))[:_MOST_KEPT])


def _keep_message(codec: Codec, sender: int, frame: bytes) -> Kept:
    decode = codec.request if sender == COORDINATOR else codec.reply
    message = decode(codec.open(frame, session=SESSION, sender=sender).body)
    arrays = [(DTYPES[array.code].type, array.shape) for array in _list_arrays(message)]

    def read(damaged: bytes) -> None:
        got = decode(codec.open(damaged, session=SESSION, sender=sender).body)
        for array, (dtype, shape) in zip(_list_arrays(got), arrays, strict=False):
            array.to_numpy(dtype, *shape)

    return Kept(
        type(message).__name__, frame, lambda raw, rng: mutate_frame(raw, rng, Seals(), hostile=_NOBODY)[0], read
    )


def _list_arrays(value: object) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _list_arrays(one)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _list_arrays(getattr(value, name))


@contextmanager
def _watching(calls: list[Kept]) -> Iterator[None]:
    """Keep every call of a parser, wherever its name was imported to."""
    with ExitStack() as stack:
        for parser in PARSERS:
            for module in [module for name, module in sys.modules.items() if name.startswith("cloister.")]:
                if vars(module).get(parser.__name__) is parser:
                    stack.enter_context(patch.object(module, parser.__name__, _keeping(parser, calls)))
        read_question = Forms._read
        stack.enter_context(patch.object(Forms, "_read", _keeping_question(read_question, calls)))
        yield


def _keeping(parser: Callable[..., Any], calls: list[Kept]) -> Callable[..., Any]:
    name = f"{parser.__module__}.{parser.__name__}"

    def call(raw: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(raw, bytes):
            kind = f"{name} {rest[0].__name__}" if rest and isinstance(rest[0], type) else name
            calls.append(Kept(kind, raw, mutate_content, lambda damaged: parser(damaged, *rest, **named)))
        return parser(raw, *rest, **named)

    return call


def _keeping_question(read: Callable[..., Any], calls: list[Kept]) -> Callable[..., Any]:
    def call(self: Forms, round_: int, written: bytes) -> Any:
        kind = f"question {round_}"

        def read_it(damaged: bytes) -> None:
            try:
                read(self, round_, damaged)
            except CloisterError as error:  # as Statements.open does
                raise RemoteProtocolError(str(error)) from None

        calls.append(Kept(kind, written, mutate_content, read_it))
        return read(self, round_, written)

    return call
