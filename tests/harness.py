"""Builds sessions of the multiparty Lloyd protocols for tests and benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.crypto import Identity, SeededEntropy
from cloister.numeric import FixedPoint
from cloister.protocols.multiparty_lloyd import CODEC, Agreement, LloydParty, coordinate
from cloister.records import ArrayRecords
from cloister.runtime import LocalRun, run_local

SESSION = bytes(range(16))


@dataclass
class Session:
    """One job's roles, ready to run; every call of :meth:`party` makes the party anew."""

    agreement: Agreement
    records: list[np.ndarray]
    seed: int = 7
    party_class: type[LloydParty] = LloydParty

    def party(self, number: int) -> LloydParty:
        return self.party_class(
            number=number,
            agreement=self.agreement,
            records=ArrayRecords(self.records[number - 1]),
            identity=identity(self.seed, number),
            entropy=SeededEntropy(self.seed, f"party {number}"),
            session=SESSION,
        )

    def run(self, **options: Any) -> tuple[LocalRun[Any], list[LloydParty]]:
        parties = [self.party(number) for number in range(1, self.agreement.parties + 1)]
        coordinator = coordinate(self.agreement, entropy=SeededEntropy(self.seed, "coordinator"), session=SESSION)
        options.setdefault("restart", self.party)
        run = run_local(coordinator, parties, codec=CODEC, session=SESSION, **options)
        return run, parties


def identity(seed: int, number: int) -> Identity:
    return Identity(SeededEntropy(seed, f"identity {number}"))


def make_session(
    variant: str = "masked-sum-count",
    *,
    records: list[np.ndarray],
    clusters: int = 3,
    iterations: int = 4,
    seed: int = 7,
    party_class: type[LloydParty] = LloydParty,
    **options: Any,
) -> Session:
    """Quantise the records and agree on everything else."""
    if variant == "naive":
        options.setdefault("start_by", "coordinator")
    agreement = Agreement(
        variant=variant,
        parties=len(records),
        clusters=clusters,
        dimensions=records[0].shape[1],
        iterations=iterations,
        directory=tuple(identity(seed, number + 1).public_bytes for number in range(len(records))),
        **{"max_records": 10_000, **options},
    )
    grid = FixedPoint(agreement.fractional_bits)
    return Session(agreement, [grid.quantise(part) for part in records], seed, party_class)


def blobs(count: int, dimensions: int, clusters: int, seed: int, spread: float = 0.08) -> np.ndarray:
    """Well separated clusters inside [-1, 1]^d."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.8, 0.8, (clusters, dimensions))
    return np.clip(centres[rng.integers(clusters, size=count)] + rng.normal(0, spread, (count, dimensions)), -1, 1)


def split(points: np.ndarray, parties: int, seed: int = 0) -> list[np.ndarray]:
    """Deal the records out at random, unevenly."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(parties, size=len(points))
    owner[:parties] = range(parties)
    return [points[owner == party] for party in range(parties)]
