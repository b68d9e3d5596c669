"""What SecFC costs through its roles: CPU of one client and of the coordinator in a round, and of sharing all records.

The marks: client + server per iteration at most .5 / 5 / 30 ms for (clients, records, k, d) = (10, 1000, 4, 20),
(10, 10000, 4, 100), (16, 16384, 16, 100), with (t, l) = (4, 1), (4, 1), (6, 2); sharing all records once, by all
clients together, at most 150 ms for the last two: that is the coding; sealing, relaying and opening the boxes is shown
beside it. Process CPU time, one thread, messages as bytes through both endpoints; bench.secfc_kernels has the same
marks without messages. The median of rounds that measure every column. Run: ``python -m bench.secfc_rounds``.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field

import numpy as np

from bench.secfc_kernels import CASES, Case
from cloister.crypto import Identity, SeededEntropy, Stream
from cloister.protocols.secfc import CODEC, SecfcAgreement, SecfcParty, coordinate_secfc
from cloister.protocols.secfc.messages import ExchangeShares, Measure
from cloister.records import ArrayRecords
from cloister.wire import CoordinatorEndpoint, PartyEndpoint

SESSION = bytes(16)
ROUNDS = 12


@dataclass
class Cost:
    """CPU milliseconds of one session, by what they were for."""

    client_ms: list[float] = field(default_factory=list)
    """One client's mean, for each round that measured every column."""
    server_ms: list[float] = field(default_factory=list)
    exchange_ms: float = 0.0
    """All clients and the coordinator, while shares are exchanged."""
    upload_bytes: int = 0
    """One client's reply in such a round."""


def play(case: Case) -> Cost:
    """Run one session by hand, with a clock at every role."""
    identities = [Identity(SeededEntropy(1, f"identity {n}")) for n in range(case.clients)]
    agreement = SecfcAgreement(
        clusters=case.clusters,
        dimensions=case.dimensions,
        privacy=case.privacy,
        segments=case.segments,
        records_max=case.records,
        rounds_max=ROUNDS,
        separate_after=None,
        directory=tuple(one.public_bytes for one in identities),
    )
    # no clusters at all: labels go on changing, and every column is measured every round
    points = 2 * Stream.from_seed(1, "bench").uniform(case.records, case.dimensions) - 1
    parties = {
        n: PartyEndpoint(
            SecfcParty(
                number=n,
                agreement=agreement,
                records=ArrayRecords(part),
                identity=identities[n - 1],
                entropy=SeededEntropy(1, f"party {n}"),
                session=SESSION,
            ),
            number=n,
            codec=CODEC,
            session=SESSION,
        )
        for n, part in enumerate(np.array_split(points, case.clients), start=1)
    }
    coordinator = CoordinatorEndpoint(
        coordinate_secfc(agreement, entropy=SeededEntropy(1, "coordinator"), session=SESSION),
        codec=CODEC,
        session=SESSION,
    )
    cost = Cost()
    while not coordinator.finished:
        request = next(iter(coordinator.ask.requests.values()))
        server_s = -time.process_time()
        frames = coordinator.frames()
        server_s += time.process_time()
        started_s = time.process_time()
        replies = {n: parties[n].receive(frame) for n, frame in frames.items()}
        clients_s = time.process_time() - started_s
        server_s -= time.process_time()
        for n, frame in replies.items():
            coordinator.receive(n, frame)
        coordinator.close_step()
        server_s += time.process_time()
        if isinstance(request, Measure) and len(request.columns) == case.clusters:
            cost.client_ms.append(clients_s / len(frames) * 1e3)
            cost.server_ms.append(server_s * 1e3)
            cost.upload_bytes = len(next(iter(replies.values())))
        elif isinstance(request, ExchangeShares):
            cost.exchange_ms += (clients_s + server_s) * 1e3
    return cost


def code_ms(case: Case) -> float:
    """CPU of coding all clients' records, without boxes."""
    agreement = SecfcAgreement(
        clusters=case.clusters,
        dimensions=case.dimensions,
        privacy=case.privacy,
        segments=case.segments,
        records_max=case.records,
        directory=tuple(bytes([n]) for n in range(case.clients)),
    )
    points = agreement.fixed_point.encode(2 * Stream.from_seed(1, "bench").uniform(case.records, case.dimensions) - 1)
    parts = np.array_split(points, case.clients)
    times = []
    for _ in range(5):
        started_s = time.process_time()
        for n, part in enumerate(parts):
            agreement.code.share(agreement.field.encode(part), Stream.from_seed(n, "noise"))
        times.append((time.process_time() - started_s) * 1e3)
    return min(times)


def main() -> int:
    """Print the table; 0 if the marks hold."""
    missed = False
    print(f"{'n, m, k, d (t, l)':32}{'client ms':>10}{'server ms':>10}{'sum':>8}{'mark':>7}", end="")
    print(f"{'kB up':>8}{'coding ms':>11}{'mark':>7}{'with boxes':>12}")
    for case in CASES:
        play(case)  # compiles
        cost = play(case)
        client, server = statistics.median(cost.client_ms), statistics.median(cost.server_ms)
        coding = code_ms(case)
        bad = client + server > case.round_mark_ms
        bad |= case.sharing_mark_ms is not None and coding > case.sharing_mark_ms
        missed |= bad
        name = f"{case.clients}, {case.records}, {case.clusters}, {case.dimensions} ({case.privacy}, {case.segments})"
        mark = "" if case.sharing_mark_ms is None else f"{case.sharing_mark_ms:.0f}"
        print(f"{name:32}{client:10.2f}{server:10.2f}{client + server:8.2f}{case.round_mark_ms:7.1f}", end="")
        print(f"{cost.upload_bytes / 1e3:8.0f}{coding:11.1f}{mark:>7}{cost.exchange_ms:12.1f}", end="")
        print("  missed" if bad else "  held", f"({len(cost.client_ms)} rounds)")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
