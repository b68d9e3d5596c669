"""A session in which one party, or the coordinator with it, is hostile: before every true message come damaged ones.

Whoever is sent one answers it, refuses it with RemoteProtocolError, or ends the session with another CloisterError of
its own. Anything else, a warning too, is a finding. Where every damaged message was refused the session must end as it
does without them: with the same replies to the last byte, the same books and the same results.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, Protocol
from unittest.mock import patch

import numpy as np

from cloister.crypto import sealing
from cloister.errors import CloisterError, RemoteProtocolError
from cloister.roles import COORDINATOR
from cloister.wire import Codec, CoordinatorEndpoint, PartyEndpoint
from tests.hostile.cases import CASES
from tests.hostile.mutation import Seals, mutate_frame
from tests.sessions import SESSION


class Playable(Protocol):
    """What a game needs of a session."""

    numbers: range
    duties: Mapping[int, Any]
    roles: Any
    agreed: Any

    def party(self, number: int) -> Any: ...

    def coordinator(self) -> Any: ...


@dataclass
class Played:
    """What came of one game, or of several together.

    Attributes
    ----------
    games, compared
        How many there were, and in how many every damaged message was refused, so that the end was compared.
    frames, sealed, refused
        Damaged messages; those damaged inside a box; those refused.
    ended
        By which errors sessions ended.
    findings
        What must not be.
    """

    games: int = 0
    compared: int = 0
    frames: int = 0
    sealed: int = 0
    refused: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __iadd__(self, other: Played) -> Played:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


class _EndedError(Exception):
    """The session has ended, with an error of the right kind or with a finding."""


class Game:
    """One session, with damage.

    Parameters
    ----------
    name, seed
        Which case, and what decides about the damage; seed None: none.
    most
        How many damaged messages come before a true one, at most.
    only_boxes
        Damage only what the hostile party seals for others, and before every message that holds it.

    Attributes
    ----------
    codec
        The protocol's.
    played
        What came of it.
    sent
        Every true message, with who sent it.
    """

    def __init__(self, name: str, seed: int | None, *, most: int = 4, only_boxes: bool = False) -> None:
        self._name, self._seed = name, seed
        self._rng = Random(f"{name} {seed}")
        self._session: Playable = CASES[name]()
        self.codec: Codec = self._session.roles.codec(self._session.agreed)
        self._seals = Seals()
        self._replies: list[bytes] = []
        numbers = list(self._session.numbers)
        self._hostile = self._rng.choice(numbers)
        self._with_relay = not only_boxes and self._rng.random() < 0.5
        burst = not only_boxes and self._rng.random() < 0.5
        self._rate = 0.0 if seed is None else 0.03 if burst else 1.0
        self._most = 8 * most if burst else most
        self._only_boxes = only_boxes
        self._diverged = self._is_closing = False
        self.played = Played(games=1)
        self.sent: list[tuple[int, bytes]] = []

    def play(self) -> Played:
        """Play it to its end."""
        with patch.object(sealing, "ChaCha20Poly1305", self._seals), warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                self._run()
            except _EndedError:
                return self.played
            if self._seed is not None and not self._diverged:
                self.played.compared = 1
                if self.outcome != find_true_outcome(self._name):
                    self._find("a session in which all damaged messages were refused ended otherwise")
        return self.played

    @property
    def outcome(self) -> tuple[list[bytes], str]:
        """All replies, the books, and what every party found."""
        books = {
            number: (duty.charger.spent(), len(duty.sampler.drawn)) for number, duty in self._session.duties.items()
        }
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
            found = [_describe(party) for party in self._parties.values()]
        return self._replies, repr((books, found))

    def _run(self) -> None:
        self._parties = {number: self._session.party(number) for number in self._session.numbers}
        self._endpoints = {
            number: PartyEndpoint(party, number=number, codec=self.codec, session=SESSION)
            for number, party in self._parties.items()
        }
        self._coordinator = CoordinatorEndpoint(self._session.coordinator(), codec=self.codec, session=SESSION)
        while not self._coordinator.finished:
            for number, frame in self._coordinator.frames().items():
                reply = self._ask(number, frame)
                if reply is not None:
                    self._replies.append(reply)
                    self._answer(number, reply)
            self._is_closing = True  # what a coordinator raises here ends its session
            self._try(self._coordinator.close_step)
            self._is_closing = False

    def _ask(self, number: int, frame: bytes) -> bytes | None:
        """Ask a party, after what comes damaged from the relay or from the hostile party."""
        self.sent.append((COORDINATOR, frame))
        receive = self._endpoints[number].receive
        self._seals.sealer = number
        if self._with_relay or number != self._hostile:
            for damaged, is_sealed in self._damage(frame, sealed_only=not self._with_relay):
                reply = self._offer(receive, damaged, is_sealed)
                if reply is not None:
                    return reply
        return self._try(lambda: receive(frame))

    def _answer(self, number: int, reply: bytes) -> None:
        """Answer the coordinator; damaged where the hostile party answers."""
        self.sent.append((number, reply))

        def receive(frame: bytes) -> bytes:
            self._coordinator.receive(number, frame)
            return frame

        if number == self._hostile and not self._only_boxes:
            for damaged, is_sealed in self._damage(reply, sealed_only=False):
                if self._offer(receive, damaged, is_sealed) is not None:
                    return
        self._try(lambda: receive(reply))

    def _damage(self, frame: bytes, *, sealed_only: bool) -> Iterator[tuple[bytes, bool]]:
        """Yield damaged messages, and whether each is damaged in a box."""
        if self._rng.random() >= self._rate:
            return
        for _ in range(self._rng.randrange(1, self._most + 1)):
            in_boxes = 1.0 if self._only_boxes else 0.6
            mutated, is_sealed = mutate_frame(frame, self._rng, self._seals, hostile=self._hostile, in_boxes=in_boxes)
            if self._only_boxes and not is_sealed:
                return  # this message holds none
            if mutated != frame and (is_sealed or not sealed_only):
                yield mutated, is_sealed

    def _offer(self, receive: Callable[[bytes], bytes], damaged: bytes, is_sealed: bool) -> bytes | None:
        """Deliver something damaged; None if it was refused."""
        self.played.frames += 1
        self.played.sealed += is_sealed
        was, self._diverged = self._diverged, True
        reply = self._try(lambda: receive(damaged))
        if reply is None:
            self.played.refused += 1
            self._diverged = was
        return reply

    def _try(self, action: Callable[[], Any]) -> Any:
        """Do something; None if it is refused. After a damaged message that was taken, it may be."""
        try:
            return action()
        except CloisterError as error:
            if not self._diverged:
                self._find(f"without damage there is no {type(error).__name__}: {error}")
            elif isinstance(error, RemoteProtocolError) and not self._is_closing:
                return None
            else:
                self.played.ended[type(error).__name__] += 1
        except Exception:
            self._find(traceback.format_exc())
        raise _EndedError

    def _find(self, what: str) -> None:
        self.played.findings.append(f"{self._name}, seed {self._seed}: {what}")


@cache
def find_true_outcome(name: str) -> tuple[list[bytes], str]:
    """Return how a session ends without damage."""
    game = Game(name, None)
    played = game.play()
    assert not played.findings, played.findings
    return game.outcome


def _describe(party: Any) -> str:
    """Return what a party has found, as text."""
    for name in ("finding", "alignment", "exact_labels", "released_totals", "contributor"):
        try:
            found = getattr(party, name)
        except (AttributeError, CloisterError):
            continue
        return f"{name}: {found!r} {vars(found) if hasattr(found, '__dict__') else ''}"
    return f"{getattr(party, 'centres', None)!r}"
