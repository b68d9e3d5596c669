"""One builder for sessions of every protocol: parties are made anew on request, with the same books and noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloister.crypto import Identity, SeededEntropy, Stream
from cloister.privacy.release import NoiseDuty
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import OwnInput, Roles
from cloister.records import ArrayRecords
from cloister.roles import Coordinator, Party, Seat
from cloister.runtime import LocalRun, run_local
from cloister.wire import CoordinatorEndpoint

SESSION = bytes(range(16))


def identity(seed: int, number: int) -> Identity:
    return Identity(SeededEntropy(seed, f"identity {number}"))


def make_directory(seed: int, parties: int) -> tuple[bytes, ...]:
    return tuple(identity(seed, number).public_bytes for number in range(1, parties + 1))


class Session:
    """The roles of one session.

    Parameters
    ----------
    roles, agreed
        The protocol object, or that of a session beside a clustering; and what was agreed.
    inputs
        What each party brings: `OwnInput`, or an array of records that are on the grid already.
    duties, coordinator_duty
        Books and noise, where there is a budget.
    """

    def __init__(
        self,
        roles: Roles[Any],
        agreed: Any,
        inputs: Sequence[OwnInput | np.ndarray],
        *,
        seed: int = 7,
        duties: Mapping[int, NoiseDuty] | None = None,
        coordinator_duty: NoiseDuty | None = None,
    ) -> None:
        self.roles, self.agreed, self.seed = roles, agreed, seed
        self.inputs = [OwnInput(records=ArrayRecords(own)) if isinstance(own, np.ndarray) else own for own in inputs]
        self.duties = dict(duties or {})
        self.coordinator_duty = coordinator_duty

    @property
    def numbers(self) -> range:
        return range(1, len(self.inputs) + 1)

    def seat(self, number: int) -> Seat:
        return Seat(
            number=number,
            identity=identity(self.seed, number),
            entropy=SeededEntropy(self.seed, f"party {number}"),
            session=SESSION,
        )

    def party(self, number: int) -> Party:
        own, duty = self.inputs[number - 1], self.duties.get(number)
        return self.roles.seat(self.agreed, self.seat(number), own, duty=duty)

    def coordinator(self) -> Coordinator[Any]:
        return self.roles.coordinate(
            self.agreed,
            session=SESSION,
            entropy=SeededEntropy(self.seed, "coordinator"),
            duty=self.coordinator_duty,
        )

    def run(self, parties: Sequence[Party] | None = None, **options: Any) -> tuple[LocalRun[Any], list[Any]]:
        """Run it; options are those of `run_local`."""
        seated = [self.party(number) for number in self.numbers] if parties is None else list(parties)
        options = {"restart": self.party, "threads": 1, **options}
        run = run_local(self.coordinator(), seated, codec=self.roles.codec(self.agreed), session=SESSION, **options)
        return run, seated


class Table:
    """A coordinator and its parties with every message in the tester's hands."""

    def __init__(self, session: Session) -> None:
        self.session, self.codec = session, session.roles.codec(session.agreed)
        self.coordinator = CoordinatorEndpoint(session.coordinator(), codec=self.codec, session=SESSION)
        self.parties = {number: session.party(number) for number in session.numbers}

    def play(self, steps: int) -> Table:
        for _ in range(steps):
            for number, request in self.coordinator.ask.requests.items():
                self.deliver(number, self.parties[number].handle(request))
            self.coordinator.close_step()
        return self

    def deliver(self, number: int, reply: Any) -> None:
        frame = self.codec.encode(reply, session=SESSION, step=self.coordinator.step, sender=number)
        self.coordinator.receive(number, frame)

    def request(self, number: int = 1) -> Any:
        return self.coordinator.ask.requests[number]


class RecordingSampler:
    """A sampler whose every draw is kept: the mechanisms that really ran. With ``silent`` it draws zeros."""

    is_simulation = True

    def __init__(self, label: str, *, seed: int = 11, silent: bool = False) -> None:
        self._inner = SimulationSampler(Stream.from_seed(seed, label))
        self._silent = silent
        self.drawn: list[tuple[Any, np.ndarray]] = []

    def draw(self, mechanism, entries, on_progress=None):
        noise = np.zeros(entries, dtype=np.int64) if self._silent else self._inner.draw(mechanism, entries)
        self.drawn.append((mechanism, noise))
        return noise


class ReplayingSampler:
    """Gives out prepared noise, one vector per draw."""

    is_simulation = True

    def __init__(self, vectors) -> None:
        self._vectors = iter(vectors)

    def draw(self, mechanism, entries, on_progress=None):
        vector = next(self._vectors)
        assert len(vector) == entries
        return vector


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
