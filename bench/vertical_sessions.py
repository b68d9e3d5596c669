"""Whole vertical sessions, measured: CPU and bytes of every step, all parties and the relay on one thread."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bench.sets import Points, round_to_grid
from cloister.crypto import Identity, Stream, make_entropy
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Shared
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import ExactSampler, Sampler
from cloister.privacy.units import Budget
from cloister.protocols.vertical.agreement import Model, VerticalAgreement
from cloister.protocols.vertical.computing import ComputingParty
from cloister.protocols.vertical.coordinator import coordinate_vertical
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.messages import CODEC
from cloister.protocols.vertical.party import VerticalParty
from cloister.protocols.vertical.settings import Settings
from cloister.roles import Seat
from cloister.runtime import NETWORKS, NetworkModel, Progress, Traffic, run_local

ALICE, BOB = 1, 2


@dataclass(frozen=True, kw_only=True)
class Link:
    """What one party was sent and sent back in one step, in bytes."""

    received: int
    sent: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a session."""

    label: str
    cpu_s: float
    links: tuple[Link, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One session."""

    agreement: VerticalAgreement
    parties: Sequence[VerticalParty]
    cpu_s: float
    steps: tuple[Step, ...]
    traffic: Mapping[int, Traffic]
    """As the runtime counted it, by party."""

    @property
    def centres(self) -> Points:
        """What all parties found."""
        return self.parties[0].centres

    @property
    def sent(self) -> int:
        """Bytes that all parties sent in the whole session."""
        return sum(traffic.bytes_sent for traffic in self.traffic.values())

    @property
    def upload(self) -> int:
        """Bytes that everyone but Alice sent."""
        return self.sent - self.traffic[ALICE].bytes_sent

    @property
    def round_downloads(self) -> list[int]:
        """Bytes that the key holder is sent to decrypt, for each round of Lloyd's algorithm."""
        return [_largest(step) for step in self.steps if _is_round(step) and step.label.endswith("decrypting")]

    @property
    def histogram_download(self) -> int:
        """The same for the joint histogram; 0 where there is none."""
        return max((_largest(s) for s in self.steps if s.label.startswith("joint histogram: decrypting")), default=0)

    @property
    def round_cpu_s(self) -> float:
        """The median round's CPU seconds, everything."""
        rounds: dict[str, float] = {}
        for step in filter(_is_round, self.steps):
            name = step.label.split(":")[0]
            rounds[name] = rounds.get(name, 0.0) + step.cpu_s
        return float(np.median(list(rounds.values())))

    @property
    def once_cpu_s(self) -> float:
        """CPU seconds of all that is not a round."""
        return sum(step.cpu_s for step in self.steps if not _is_round(step))

    def model_network_s(self, network: NetworkModel) -> float:
        """How long the messages would take: each step as long as its slowest party's request and reply."""
        stream = Stream.from_seed(1, "network", network.name)
        return sum(
            max(
                network.draw_time_s(link.received, stream) + network.draw_time_s(link.sent, stream)
                for link in step.links
            )
            for step in self.steps
        )


def _is_round(step: Step) -> bool:
    return step.label.startswith("Lloyd round")


def _largest(step: Step) -> int:
    return max(link.received for link in step.links)


@dataclass(frozen=True, kw_only=True)
class _Scale(NetworkModel):
    """A network without delays that weighs what passes: the sizes of each step's messages, in order."""

    weighed: list[list[int]] = field(default_factory=list)

    def draw_time_s(self, message_bytes: int, stream: Stream) -> float:
        self.weighed[-1].append(message_bytes)
        return 0.0


def run_session(
    table: Points,
    columns: tuple[tuple[int, ...], ...],
    *,
    clusters: int,
    model: Model = "two-party",
    budget: Budget | None = None,
    samplers: Sequence[Sampler] | None = None,
    seed: int = 7,
    **options: object,
) -> Measured:
    """Run one session; the first party is Alice, the second holds the key, noise is exact unless samplers are given."""
    settings = Settings(
        clusters=clusters,
        columns_alice=columns[0],
        columns_encrypted=columns[1:],
        records=len(table),
        budget=budget,
        placement=Shared(parties=2, colluding_max=1),
        **options,  # type: ignore[arg-type]
    )
    identities = [Identity(make_entropy(f"identity {i}", seed=seed)) for i in range(len(columns))]
    agreement = VerticalAgreement(
        settings=settings,
        model=model,
        computing=ALICE,
        encrypted=tuple(range(2, len(columns) + 1)),
        key_holders=(BOB,),
        directory=tuple(identity.public_bytes for identity in identities),
    )
    session = make_entropy("session", seed=seed).bytes(16)
    sources = samplers or [ExactSampler() for _ in columns]
    parties = [
        (ComputingParty if number == ALICE else HolderParty)(
            Seat(
                number=number,
                identity=identity,
                entropy=make_entropy(f"party {number}", seed=seed),
                session=session,
            ),
            agreement,
            np.ascontiguousarray(table[:, list(columns[number - 1])]),
            duty=None if budget is None else NoiseDuty(charger=Accountant(budget), sampler=sources[number - 1]),
        )
        for number, identity in enumerate(identities, start=1)
    ]
    return _measure(agreement, parties, session)


def _measure(agreement: VerticalAgreement, parties: Sequence[VerticalParty], session: bytes) -> Measured:
    lan = NETWORKS["LAN10000"]
    scale = _Scale(name="scale", description=lan.description, source=lan.source, bandwidth_mbps=1, delay_ms=0)
    labels: list[str] = []
    ends_s: list[float] = []

    def note(progress: Progress) -> None:
        if progress.step == len(labels) and progress.waiting_for:
            labels.append(progress.label)
            scale.weighed.append([])
            ends_s.append(time.process_time())

    started_s = time.process_time()
    run = run_local(
        coordinate_vertical(agreement, session=session),
        parties,
        codec=CODEC,
        session=session,
        threads=1,
        network=scale,
        on_progress=note,
    )
    ends_s.append(time.process_time())
    steps = tuple(
        Step(
            label=label,
            cpu_s=ends_s[number + 1] - ends_s[number],
            links=tuple(Link(received=r, sent=s) for r, s in zip(sizes[::2], sizes[1::2], strict=True)),
        )
        for number, (label, sizes) in enumerate(zip(labels, scale.weighed, strict=True))
    )
    weighed = sum(link.sent for step in steps for link in step.links)
    measured = Measured(
        agreement=agreement, parties=parties, cpu_s=ends_s[-1] - started_s, steps=steps, traffic=run.traffic
    )
    if weighed != measured.sent:
        raise AssertionError("the steps' messages must be all that the runtime counted")
    return measured


def draw_clusters(records: int, dimensions: int, clusters: int, *, spread: float = 0.08, seed: int = 0) -> Points:
    """Gaussian clusters in [-1, 1]^d, on the grid of the records."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.8, 0.8, (clusters, dimensions))
    points = centres[rng.integers(0, clusters, records)] + rng.normal(0, spread, (records, dimensions))
    return round_to_grid(np.clip(points, -1, 1))


def best_of(sessions: Sequence[Measured]) -> Measured:
    """The session with the least CPU, each step's CPU being the least of all: others on the machine only ever add."""
    least = min(sessions, key=lambda session: session.cpu_s)
    steps = tuple(
        replace(step, cpu_s=min(other.steps[place].cpu_s for other in sessions))
        for place, step in enumerate(least.steps)
    )
    return replace(least, steps=steps)
