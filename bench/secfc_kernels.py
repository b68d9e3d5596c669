"""SecFC's arithmetic: what one client and the server compute in a round, and what sharing all records takes.

The marks, on one core: a round (one client and the server) in at most .5, 5 and 30 ms, and sharing all records once,
all clients together, in at most 150 ms for the two larger cases. No messages are made here.

A client's round is its cluster sums, its mask (a pad shared with each client that is decoded with it; the pads cancel)
and its weighted, masked distances; the server's is the sum of 2l + 2t - 1 replies, decoding, the check of the largest
distance, and the nearest centre of every record. The clients' shares are real ones, and a round's labels are checked
against plain integer arithmetic. Times are CPU times, the least of several runs, because other programs that share the
machine only ever add to them. The field of two primes is shown too.

Run: ``python -m bench.secfc_kernels``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream
from cloister.field import (
    FIELD61,
    FIELD122,
    CodedRecords,
    Field,
    LagrangeCode,
    Words,
    find_nearest,
    largest_distance,
    most_bits,
)

REPEATS = 15
SHARE_REPEATS = 5


@dataclass(frozen=True, kw_only=True)
class Case:
    """One setting of the marks."""

    clients: int
    records: int
    clusters: int
    dimensions: int
    privacy: int
    segments: int
    round_mark_ms: float
    sharing_mark_ms: float | None


CASES = (
    Case(
        clients=10,
        records=1000,
        clusters=4,
        dimensions=20,
        privacy=4,
        segments=1,
        round_mark_ms=0.5,
        sharing_mark_ms=None,
    ),
    Case(
        clients=10,
        records=10_000,
        clusters=4,
        dimensions=100,
        privacy=4,
        segments=1,
        round_mark_ms=5.0,
        sharing_mark_ms=150.0,
    ),
    Case(
        clients=16,
        records=16_384,
        clusters=16,
        dimensions=100,
        privacy=6,
        segments=2,
        round_mark_ms=30.0,
        sharing_mark_ms=150.0,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What one case took."""

    client_ms: float
    server_ms: float
    sharing_ms: float


def main() -> int:
    """Print the table; return 0 when every mark holds, else 1."""
    missed = False
    print(f"{'n, m, k, d (t, l)':<30}{'primes':>7}{'client ms':>11}{'server ms':>11}{'mark':>7}", end="")
    print(f"{'sharing ms':>12}{'mark':>7}")
    for field in (FIELD61, FIELD122):
        for case in CASES:
            timing = measure(case, field)
            marked = field is FIELD61
            slow = marked and timing.client_ms + timing.server_ms > case.round_mark_ms
            slow |= marked and case.sharing_mark_ms is not None and timing.sharing_ms > case.sharing_mark_ms
            missed |= slow
            verdict = ("MISSED" if slow else "held") if marked else ""
            name = f"{case.clients}, {case.records}, {case.clusters}, {case.dimensions} "
            print(
                f"{name + f'({case.privacy}, {case.segments})':<30}{field.residues:>7}{timing.client_ms:>11.3f}"
                f"{timing.server_ms:>11.3f}{case.round_mark_ms if marked else '-':>7}{timing.sharing_ms:>12.1f}"
                f"{(case.sharing_mark_ms or '-') if marked else '-':>7}  {verdict}"
            )
    print(f"marks {'MISSED' if missed else 'held'}")
    return int(missed)


def measure(case: Case, field: Field) -> Timing:
    """Share random records, run one round with every client that is needed, and time the parts."""
    code = LagrangeCode(field=field, clients=case.clients, segments=case.segments, privacy=case.privacy)
    bits = min(most_bits(field, dimensions=case.dimensions, records=case.records), 17)
    largest = largest_distance(dimensions=case.dimensions, records=case.records, bits=bits)
    rng = np.random.default_rng(1)
    records = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) + 1, (case.records, case.dimensions))
    labels = rng.integers(0, case.clusters, case.records).astype(np.int32)
    counts = np.bincount(labels, minlength=case.clusters)
    parts = [field.encode(part) for part in np.array_split(records, case.clients)]

    def share_all() -> list[Words]:
        return [code.share(part, Stream.from_seed(1, "owner", number)) for number, part in enumerate(parts)]

    sharing_ms = time_cpu_ms(share_all, SHARE_REPEATS)
    shares = np.concatenate(share_all(), axis=2)
    clients = [CodedRecords(field, share) for share in shares]
    responders = list(range(case.clients - code.replies + 1, case.clients + 1))

    def answer(number: int) -> Words:
        mask = draw_mask(field, responders, number, (case.records, case.clusters))
        coded = clients[number - 1]
        sums = coded.sum_clusters(labels, case.clusters)
        return coded.measure(sums, counts, weight=code.weigh_client(responders, number), mask=mask)

    replies = [answer(number) for number in responders]

    def assign() -> NDArray[np.int32]:
        return find_nearest(field.decode_distances(field.add(replies), largest=largest), counts)

    check_labels(assign(), records, labels, counts)
    return Timing(
        client_ms=time_cpu_ms(lambda: answer(responders[1]), REPEATS),
        server_ms=time_cpu_ms(assign, REPEATS),
        sharing_ms=sharing_ms,
    )


def draw_mask(field: Field, responders: list[int], number: int, shape: tuple[int, ...]) -> Words:
    """Return the sum of one pad for each other responder, with opposite signs at its two ends."""
    mask = field.zeros(*shape)
    for other in responders:
        if other != number:
            pad = field.uniform(Stream.from_seed(2, "pad", min(number, other), max(number, other)), *shape)
            (field.accumulate if number < other else field.deduct)(mask, pad)
    return mask


def check_labels(
    found: NDArray[np.int32],
    records: NDArray[np.int64],
    labels: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Compare some records' labels with Python's own integers."""
    sums = [records[labels == h].sum(axis=0).astype(object) for h in range(len(counts))]
    for i in range(0, len(records), max(1, len(records) // 50)):
        point = records[i].astype(object)
        exact = [sum((total - int(c) * point) ** 2) for total, c in zip(sums, counts, strict=True)]
        best = min(range(len(counts)), key=lambda h: (exact[h] * (1 << 200) // int(counts[h]) ** 2, h))
        assert found[i] == best, "a label differs from exact arithmetic"


def time_cpu_ms(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU time of a call, after one that is not counted."""
    work()
    times_s = []
    for _ in range(repeats):
        started_s = time.process_time()
        work()
        times_s.append(time.process_time() - started_s)
    return min(times_s) * 1e3


if __name__ == "__main__":
    raise SystemExit(main())
