"""Builds sessions of the serverless sum for tests, with contributors that remember everything."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cloister.aggregation import least_quorum
from cloister.crypto import SeededEntropy
from cloister.numeric import Ring
from cloister.protocols.serverless.messages import CODEC
from cloister.protocols.serverless.party import RingParty
from cloister.protocols.serverless.relay import relay
from cloister.protocols.serverless.terms import JointNoise, Terms
from cloister.roles import Seat
from cloister.runtime import LocalRun, run_local
from tests.sessions import SESSION, identity, make_directory


@dataclass
class FakeContributor:
    """Contributes given vectors, which depend on the sums so far as those of Lloyd's rounds do."""

    vectors: np.ndarray  # (rounds, length)
    contributed: list[int] = field(default_factory=list)
    seed: bytes | None = None
    totals: dict[int, np.ndarray] = field(default_factory=dict)
    members: dict[int, int] = field(default_factory=dict)

    def begin(self, seed: bytes, session: bytes) -> None:
        assert self.seed is None
        assert session == SESSION
        self.seed = seed

    def contribute(self, round_: int) -> np.ndarray:
        assert self.seed is not None
        assert round_ > max(self.contributed, default=0)
        assert list(self.totals) == list(range(1, round_))
        self.contributed.append(round_)
        return self.vectors[round_ - 1]

    def take(self, round_: int, total: np.ndarray, members: int) -> None:
        assert round_ == len(self.totals) + 1
        self.totals[round_] = total
        self.members[round_] = members

    def branch(self) -> FakeContributor:
        """A copy with books of its own, which the original takes over if the step was valid."""
        return replace(self, contributed=list(self.contributed), totals=dict(self.totals), members=dict(self.members))

    @property
    def subject(self) -> bytes:
        return b"".join(total.tobytes() for total in self.totals.values())


class Recorder:
    """A party whose requests and replies are kept, those too that never arrive."""

    def __init__(self, party: RingParty) -> None:
        self.party = party
        self.log: list[tuple[Any, Any]] = []

    def handle(self, request: Any) -> Any:
        reply = self.party.handle(request)
        self.log.append((request, reply))
        return reply

    @property
    def contributor(self) -> FakeContributor:
        return self.party.contributor

    @property
    def masks(self) -> Any:
        return self.party._introduction.masks


@dataclass
class SumSession:
    """One session; ``vectors`` has the shape (parties, rounds, length)."""

    vectors: np.ndarray
    bits: int = 32
    members_min: int = 0
    """By default the least quorum."""
    colluding_max: int = 0
    scale: float | None = None
    seed: int = 7
    recorder_class: type[Recorder] = Recorder

    @cached_property
    def terms(self) -> Terms:
        parties, rounds, length = self.vectors.shape
        return Terms(
            digest=b"the same job",
            directory=make_directory(self.seed, parties),
            rounds=rounds,
            length=length,
            ring=Ring(self.bits),
            members_min=self.members_min or max(2, least_quorum(parties, self.colluding_max)),
            colluding_max=self.colluding_max,
            joint=None if self.scale is None else JointNoise(scale=self.scale),
        )

    def party(self, number: int) -> Recorder:
        seat = Seat(
            number=number,
            identity=identity(self.seed, number),
            entropy=SeededEntropy(self.seed, f"party {number}"),
            session=SESSION,
        )
        contributor = FakeContributor(self.vectors[number - 1])
        return self.recorder_class(RingParty(seat=seat, terms=self.terms, contributor=contributor))

    def relay(self) -> Any:
        return relay(self.terms, entropy=SeededEntropy(self.seed, "relay"), session=SESSION)

    def run(self, **options: Any) -> tuple[LocalRun[Any], list[Recorder]]:
        parties = [self.party(number + 1) for number in range(len(self.vectors))]
        options.setdefault("restart", self.party)
        run = run_local(self.relay(), parties, codec=CODEC, session=SESSION, threads=1, **options)
        return run, parties

    def sum_of(self, round_: int, members: tuple[int, ...]) -> np.ndarray:
        return self.vectors[[member - 1 for member in members], round_ - 1].sum(axis=0)


def random_vectors(parties: int, rounds: int = 2, length: int = 3, seed: int = 0, bits: int = 32) -> np.ndarray:
    largest = 2 ** (bits - 1) // parties
    return np.random.default_rng(seed).integers(-largest + 1, largest, (parties, rounds, length))
