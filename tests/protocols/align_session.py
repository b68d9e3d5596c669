"""Builds sessions of the alignment for tests, with parties that remember what they saw in the clear."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cloister.crypto import SeededEntropy
from cloister.protocols.align import CODEC, AlignParty, Mode, NormalForm, Terms, coordinate
from cloister.runtime import LocalRun, run_local
from tests.harness import SESSION, identity


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


@dataclass
class AlignSession:
    """One session; ``sets`` has each party's IDs in the order of its rows."""

    sets: list[list[bytes]]
    mode: Mode = Mode.INTERSECTION
    seed: int = 7
    part_elements: int = 4
    party_class: type[Watched] = Watched
    form: NormalForm = field(default_factory=NormalForm)

    @cached_property
    def terms(self) -> Terms:
        return Terms(
            mode=self.mode,
            form=self.form,
            directory=tuple(identity(self.seed, number + 1).public_bytes for number in range(len(self.sets))),
            part_elements=self.part_elements,
        )

    def party(self, number: int, of: type[Watched] | None = None, **changes: Any) -> Watched:
        options = {
            "number": number,
            "terms": self.terms,
            "ids": self.sets[number - 1],
            "identity": identity(self.seed, number),
            "entropy": SeededEntropy(self.seed, f"party {number}"),
            "session": SESSION,
        }
        return (of or self.party_class)(**{**options, **changes})

    def parties(self) -> list[Watched]:
        return [self.party(number + 1) for number in range(len(self.sets))]

    def coordinator(self) -> Any:
        return coordinate(self.terms, entropy=SeededEntropy(self.seed, "coordinator"), session=SESSION)

    def run(self, parties: list[Any] | None = None, **options: Any) -> tuple[LocalRun[Any], list[Watched]]:
        parties = parties or self.parties()
        options.setdefault("restart", self.party)
        run = run_local(self.coordinator(), parties, codec=CODEC, session=SESSION, threads=1, **options)
        return run, parties


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
