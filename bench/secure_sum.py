"""CPU and bytes per party and round of sums with double masks, exact noise included, beyond measuring the records.

Whole sessions of FastLloyd's rounds and of the synopsis, as jobs choose them by default: messages as bytes, questions
checked, books kept, exact noise drawn, masks put on, opened and taken off. Tables are empty, so that nothing is
measured; of the noise, which the first two parties draw (the others draw zeros), it is said how much it is. What the
leader's algorithm takes is apart, and so is what is done once in a session: keys, and the result.

Marks: in a round at most 1 ms and 0.1 ms for each other party; of three parties of a synopsis one that does not lead
receives at most 8 kB, and sends at most 3 % more than each did when all ran the algorithm. That was before columns were
scaled by their spread, which takes more rounds: the marks of bytes are for ``scale = "bounds"``. Process CPU time.
Run: ``python -m bench.secure_sum [--parties 3 16 64 300]``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from bench.harness import conclude
from cloister import Budget, Column, DataOptions, Job, JobParty
from cloister.crypto import Identity, SeededEntropy, Stream
from cloister.job import Setup, make_options
from cloister.privacy.books import open_books
from cloister.privacy.mechanisms import Noise
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import ExactSampler, OnProgress
from cloister.protocol import OwnInput, read_public_input
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession, Pipeline
from cloister.protocols.guided_sums.query import Asking
from cloister.records import ArrayRecords, IntArray
from cloister.roles import Seat
from cloister.sessions.assembly import Session, open_session, seat_coordinator
from cloister.wire import CoordinatorEndpoint, PartyEndpoint
from cloister.wire.codec import SESSION_BYTES

SESSION = bytes(SESSION_BYTES)
JOBS: dict[str, tuple[str, Literal["bounds", "spread"]]] = {
    "fastlloyd": ("fastlloyd", "bounds"),
    "synopsis": ("synopsis", "bounds"),
    "  spread": ("synopsis", "spread"),
}
"""Rows by name: a protocol, and how its columns are scaled."""
COLUMNS, CLUSTERS = 4, 5
WATCHED = (1, 2)
"""The party that leads guided sums, and one that does not."""
PARTIES = 3
RECEIVED_MOST, SENT_MOST = 8_000, 1.03 * 51_313
ROUND = ("MaskedRound", "Lead", "Answer", "OpenTotal")


@dataclass
class Watch:
    """What one party spends: CPU seconds by kind of request, how many of them on noise, and bytes."""

    spent_s: dict[str, float] = field(default_factory=dict)
    noise_s: float = 0.0
    algorithm_s: float = 0.0
    received: int = 0
    sent: int = 0

    def receive(self, endpoint: PartyEndpoint, kind: str, frame: bytes) -> bytes:
        """Have a party answer."""
        started, apart_s = time.process_time(), self.algorithm_s
        reply = endpoint.receive(frame)
        spent_s = time.process_time() - started - (self.algorithm_s - apart_s)
        self.spent_s[kind] = self.spent_s.get(kind, 0.0) + spent_s
        self.received, self.sent = self.received + len(frame), self.sent + len(reply)
        return reply

    def per_round_ms(self, rounds: int) -> float:
        """Return what a round takes, whoever leads it."""
        return 1e3 * sum(self.spent_s.get(kind, 0.0) for kind in ROUND) / rounds

    @property
    def once_ms(self) -> float:
        """What is done once in a session."""
        return 1e3 * sum(spent_s for kind, spent_s in self.spent_s.items() if kind not in ROUND)


def time_algorithm(algorithm: Pipeline, watch: Watch) -> Pipeline:
    """Return an algorithm whose own time is noted."""

    def timed(settings: Any, stream: Stream) -> Asking[GuidedFinding]:
        asking = algorithm(settings, stream)
        total: IntArray | None = None
        while True:
            started = time.process_time()
            try:
                query = next(asking) if total is None else asking.send(total)
            except StopIteration as stop:
                found: GuidedFinding = stop.value
                return found
            finally:
                watch.algorithm_s += time.process_time() - started
            total = yield query

    return timed


class _Timed:
    """Exact noise, timed; or zeros."""

    is_simulation = False

    def __init__(self, watch: Watch | None) -> None:
        self._watch, self._sampler = watch, ExactSampler()

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        if self._watch is None:
            return np.zeros(entries, dtype=np.int64)
        started = time.process_time()
        drawn = self._sampler.draw(mechanism, entries)
        self._watch.noise_s += time.process_time() - started
        return drawn


def open_job(name: str, parties: int) -> tuple[Session, list[Identity]]:
    """Return the public side of a job that says no more than it must."""
    protocol, scale = JOBS[name]
    job = Job(
        name="bench",
        data=DataOptions(scale=scale),
        k=CLUSTERS,
        columns=tuple(Column(name=f"x{place}", low=-1, high=1) for place in range(COLUMNS)),
        parties=tuple(JobParty(name=f"p{number}") for number in range(1, parties + 1)),
        budget=Budget(epsilon=1.0, delta=1e-6),
        protocol=make_options(protocol),
    )
    identities = [Identity(SeededEntropy(1, f"identity {party.name}")) for party in job.parties]
    directory = tuple(identity.public_bytes for identity in identities)
    return open_session(job, directory, read_public_input(Setup(job=job)), session=SESSION), identities


def run_session(name: str, parties: int) -> tuple[dict[int, Watch], int]:
    """Run one session; return what the watched parties spent, and how many rounds there were."""
    session, identities = open_job(name, parties)
    codec, charges = session.protocol.codec(session.agreed), session.charges
    assert charges is not None
    assert not charges.placement.by_coordinator
    watches = {number: Watch() for number in WATCHED}
    endpoints = {}
    for number, identity in enumerate(identities, start=1):
        seat = Seat(number=number, identity=identity, entropy=SeededEntropy(2, f"party {number}"), session=SESSION)
        books = open_books(f"p{number}", charges=charges, ledger=None)
        duty = NoiseDuty(charger=books, sampler=_Timed(watches.get(number)))
        own = OwnInput(records=ArrayRecords(np.zeros((0, COLUMNS))))
        agreed = session.agreed
        if isinstance(agreed, GuidedSession) and number in watches:
            agreed = replace(agreed, algorithm=time_algorithm(agreed.algorithm, watches[number]))
        role = session.protocol.seat(agreed, seat, own, duty=duty)
        endpoints[number] = PartyEndpoint(role, number=number, codec=codec, session=SESSION)
    middle, _ = seat_coordinator(session, SeededEntropy(2, "coordinator"), sampler=_Timed(None))
    coordinator: CoordinatorEndpoint[Any] = CoordinatorEndpoint(middle, codec=codec, session=SESSION)
    while not coordinator.finished:
        requests = coordinator.ask.requests
        for number, frame in coordinator.frames().items():
            watch = watches.get(number) or Watch()
            coordinator.receive(number, watch.receive(endpoints[number], type(requests[number]).__name__, frame))
        coordinator.close_step()
    return watches, coordinator.result.rounds


def print_row(name: str, parties: int, who: str, watch: Watch, rounds: int) -> list[str]:
    """Print what one party spends; return the marks that it misses."""
    spent_ms, mark_ms = watch.per_round_ms(rounds), 1.0 + 0.1 * (parties - 1)
    apart_ms = [1e3 * seconds / rounds for seconds in (watch.noise_s, watch.algorithm_s)]
    print(
        f"{name:10}{parties:>8}{who:>8}{spent_ms:>8.2f}{mark_ms:>7.1f}{apart_ms[0]:>8.2f}{apart_ms[1]:>11.2f}"
        f"{watch.once_ms:>8.1f}  {watch.sent:,}, {watch.received:,}",
        flush=True,
    )
    where, missed = f"{name.strip()}, {parties} parties, {who}", []
    if spent_ms > mark_ms:
        missed.append(f"{where}: {spent_ms:.2f} ms, mark {mark_ms:.1f}")
    if who == "other" and parties == PARTIES and JOBS[name][1] == "bounds":
        for way, count, most in (("received", watch.received, RECEIVED_MOST), ("sent", watch.sent, SENT_MOST)):
            if count > most:
                missed.append(f"{where}: {count:,} bytes {way}, mark {most:,.0f}")
    return missed


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; 0 if the marks hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.secure_sum", description="What sums with double masks cost.")
    parser.add_argument("--parties", type=int, nargs="+", default=[3, 16, 64, 300])
    options = parser.parse_args(arguments)
    print(f"CPU of one party in a round, in ms, and how much of it is exact noise; d = {COLUMNS}, k = {CLUSTERS}.")
    print("The leader's algorithm and what is done once in a session are apart.")
    print(
        f"{'protocol':10}{'parties':>8}{'party':>8}{'ms':>8}{'mark':>7}{'noise':>8}{'algorithm':>11}{'once':>8}"
        "  bytes sent, received"
    )
    missed = []
    for name, (protocol, _) in JOBS.items():
        run_session(name, PARTIES)  # compiles
        for parties in options.parties:
            watches, rounds = run_session(name, parties)
            named = zip(("leads", "other"), WATCHED, strict=True) if protocol == "synopsis" else [("any", WATCHED[1])]
            for who, number in named:
                missed += print_row(name, parties, who, watches[number], rounds)
    return conclude(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
