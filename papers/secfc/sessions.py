"""Real sessions of SecFC: keys, sealed shares, masked replies, every message as bytes through both endpoints."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from cloister.crypto import Identity, SeededEntropy, Stream
from cloister.protocols.secfc.agreement import SecfcAgreement
from cloister.protocols.secfc.coordinator import Outcome, coordinate_secfc
from cloister.protocols.secfc.labels import Labels, draw_labels
from cloister.protocols.secfc.messages import CODEC, ExchangeShares, Measure
from cloister.protocols.secfc.party import SecfcParty
from cloister.records import ArrayRecords, FloatArray, IntArray
from cloister.roles import Coordinator
from cloister.runtime import run_local
from cloister.wire import CoordinatorEndpoint, PartyEndpoint

ROUNDS_MAX = 200
SEPARATE_AFTER = 0
"""Before the first assignment, as published (section 5)."""
_SESSION = bytes(16)


@dataclass(frozen=True, kw_only=True)
class Code:
    """t and l."""

    privacy: int
    segments: int


def choose_code(clients: int) -> Code:
    """Return t = ceil(n / 3), as figure 1 has it, and the most segments that leaves: 2 t + 2 l - 1 <= n."""
    privacy = -(-clients // 3)
    return Code(privacy=privacy, segments=max(1, (clients + 1 - 2 * privacy) // 2))


@dataclass(frozen=True, kw_only=True)
class Job:
    """One session to run.

    Parameters
    ----------
    clusters, code
        k, t and l.
    union
        Membership private (appendix B): records keep their common index, so that the first assignment, which is drawn
        by index, is the same however the records are spread over clients.
    seed
        Of keys, noise of shares, and the first assignment.
    separate_after, rounds_max
        As :class:`~cloister.protocols.secfc.agreement.SecfcAgreement` has them.
    """

    clusters: int
    code: Code
    seed: int
    union: bool = True
    separate_after: int | None = SEPARATE_AFTER
    rounds_max: int = ROUNDS_MAX


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cast:
    """All roles of a session."""

    coordinator: Coordinator[Outcome]
    parties: tuple[SecfcParty, ...]


def make_agreement(job: Job, *, records: int, dimensions: int, directory: tuple[bytes, ...]) -> SecfcAgreement:
    """Return what the roles of a job agree on; its field and grid are the centralised run's too."""
    return SecfcAgreement(
        clusters=job.clusters,
        dimensions=dimensions,
        privacy=job.code.privacy,
        segments=job.code.segments,
        records_max=records,
        rounds_max=job.rounds_max,
        separate_after=job.separate_after,
        union=job.union,
        directory=directory,
    )


def draw_start(job: Job, records: int) -> Labels:
    """Return the assignment that the coordinator of this job draws."""
    return draw_labels(records, job.clusters, Stream(_coordinator_entropy(job).bytes(32)))


def run_session(job: Job, unit_points: FloatArray, parts: Sequence[IntArray]) -> Outcome:
    """Run a session in this process, on one thread.

    Parameters
    ----------
    job
        What is run.
    unit_points
        All records, in [-1, 1]^d.
    parts
        The rows of each client.
    """
    cast = _assemble(job, unit_points, parts)
    return run_local(cast.coordinator, cast.parties, codec=CODEC, session=_SESSION, threads=1).result


@dataclass(frozen=True, kw_only=True)
class SessionCost:
    """CPU of one session, by what it was for; a client's is the mean over the clients that were asked."""

    client_ms: tuple[float, ...]
    """One client, for each round that measured every centre."""
    server_ms: tuple[float, ...]
    sharing_ms: float
    """One client, all of the exchange: coding, sealing and opening."""
    upload_bytes: int
    """One client's reply in such a round."""


@dataclass
class _Watch:
    client_ms: list[float] = field(default_factory=list)
    server_ms: list[float] = field(default_factory=list)
    sharing_ms: float = 0.0
    upload_bytes: int = 0


def time_session(job: Job, unit_points: FloatArray, parts: Sequence[IntArray]) -> SessionCost:
    """Run a session by hand, with a clock at every role."""
    cast = _assemble(job, unit_points, parts)
    parties = {
        number: PartyEndpoint(party, number=number, codec=CODEC, session=_SESSION)
        for number, party in enumerate(cast.parties, start=1)
    }
    coordinator = CoordinatorEndpoint(cast.coordinator, codec=CODEC, session=_SESSION)
    watch = _Watch()
    while not coordinator.finished:
        request = next(iter(coordinator.ask.requests.values()))
        stamps_s = [time.process_time()]
        frames = coordinator.frames()
        stamps_s.append(time.process_time())
        replies = {number: parties[number].receive(frame) for number, frame in frames.items()}
        stamps_s.append(time.process_time())
        for number, reply in replies.items():
            coordinator.receive(number, reply)
        coordinator.close_step()
        stamps_s.append(time.process_time())
        sending_ms, clients_ms, closing_ms = (1e3 * (late - early) for early, late in itertools.pairwise(stamps_s))
        if isinstance(request, Measure) and len(request.columns) == job.clusters:
            watch.client_ms.append(clients_ms / len(frames))
            watch.server_ms.append(sending_ms + closing_ms)
            watch.upload_bytes = len(next(iter(replies.values())))
        elif isinstance(request, ExchangeShares):
            watch.sharing_ms += clients_ms / len(frames)
    return SessionCost(
        client_ms=tuple(watch.client_ms),
        server_ms=tuple(watch.server_ms),
        sharing_ms=watch.sharing_ms,
        upload_bytes=watch.upload_bytes,
    )


def _assemble(job: Job, unit_points: FloatArray, parts: Sequence[IntArray]) -> _Cast:
    numbers = range(1, len(parts) + 1)
    identities = [Identity(SeededEntropy(job.seed, f"identity {number}")) for number in numbers]
    directory = tuple(identity.public_bytes for identity in identities)
    agreement = make_agreement(job, records=len(unit_points), dimensions=unit_points.shape[1], directory=directory)
    parties = tuple(
        SecfcParty(
            number=number,
            agreement=agreement,
            records=ArrayRecords(unit_points[rows]),
            identity=identity,
            entropy=SeededEntropy(job.seed, f"party {number}"),
            session=_SESSION,
            positions=rows if job.union else None,
        )
        for number, identity, rows in zip(numbers, identities, parts, strict=True)
    )
    coordinator = coordinate_secfc(agreement, entropy=_coordinator_entropy(job), session=_SESSION)
    return _Cast(coordinator=coordinator, parties=parties)


def _coordinator_entropy(job: Job) -> SeededEntropy:
    return SeededEntropy(job.seed, "coordinator")
