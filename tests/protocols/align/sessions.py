"""Builds sessions of the alignment for tests, with parties that remember what they saw in the clear."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from cloister.crypto import SeededEntropy
from cloister.protocols.align.coordinator import coordinate
from cloister.protocols.align.party import AlignParty
from cloister.protocols.align.terms import CODEC, Mode, NormalForm, Terms
from tests.sessions import SESSION, Session, make_directory


class Watched(AlignParty):
    """Keeps the points of every list that it opened, by (owner, hop), and what came in and went out."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.opened: dict[tuple[int, int], bytes] = {}
        self.log: list[tuple[Any, Any]] = []

    def _open(self, box: bytes, owner: int, hop: int, part: int) -> bytes:
        points = super()._open(box, owner, hop, part)
        self.opened[owner, hop] = self.opened.get((owner, hop), b"") + points
        return points

    def handle(self, request: Any) -> Any:
        reply = super().handle(request)
        self.log.append((request, reply))
        return reply


class AlignSession(Session):
    """One session; ``sets`` has each party's IDs in the order of its rows."""

    def __init__(
        self,
        sets: list[list[bytes]],
        mode: Mode = Mode.INTERSECTION,
        seed: int = 7,
        part_elements: int = 4,
        party_class: type[Watched] = Watched,
        form: NormalForm | None = None,
    ) -> None:
        terms = Terms(
            mode=mode,
            form=form or NormalForm(),
            directory=make_directory(seed, len(sets)),
            part_elements=part_elements,
        )
        super().__init__(SimpleNamespace(codec=lambda _: CODEC), terms, [], seed=seed)
        self.sets, self.party_class, self.terms = sets, party_class, terms

    @property
    def numbers(self) -> range:
        return range(1, len(self.sets) + 1)

    def party(self, number: int, of: type[Watched] | None = None, **changes: Any) -> Watched:
        seat = self.seat(number)
        options = {
            "number": number,
            "terms": self.terms,
            "ids": self.sets[number - 1],
            "identity": seat.identity,
            "entropy": seat.entropy,
            "session": seat.session,
        }
        return (of or self.party_class)(**{**options, **changes})

    def parties(self) -> list[Watched]:
        return [self.party(number) for number in self.numbers]

    def coordinator(self) -> Any:
        return coordinate(self.terms, entropy=SeededEntropy(self.seed, "coordinator"), session=SESSION)


def name_ids(numbers: Any) -> list[bytes]:
    return [b"patient-%d" % number for number in numbers]


def ids_in_order(ids: list[bytes], rows: np.ndarray) -> list[bytes | None]:
    return [None if row < 0 else ids[row] for row in rows]


def merge_orders(sets: list[list[bytes]], parties: list[Any]) -> list[bytes]:
    """The ID at each place; all who hold one there must agree on it."""
    columns = zip(*(ids_in_order(ids, p.alignment.rows) for ids, p in zip(sets, parties, strict=True)), strict=True)
    merged = []
    for column in columns:
        held = {exact_id for exact_id in column if exact_id is not None}
        assert len(held) == 1
        merged.append(held.pop())
    return merged
