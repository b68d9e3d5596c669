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

import numpy as np

from bench.secfc_kernels import CASES, Case
from cloister.crypto import Stream
from papers.secfc.sessions import Code, Job, SessionCost, make_agreement, time_session

ROUNDS = 12


def make_job(case: Case) -> Job:
    """The session of a case."""
    code = Code(privacy=case.privacy, segments=case.segments)
    return Job(clusters=case.clusters, code=code, seed=1, union=False, separate_after=None, rounds_max=ROUNDS)


def draw_points(case: Case) -> np.ndarray:
    """No clusters at all: labels go on changing, and every column is measured every round."""
    return 2 * Stream.from_seed(1, "bench").uniform(case.records, case.dimensions) - 1


def run_case(case: Case) -> SessionCost:
    """Run one session by hand, with a clock at every role."""
    return time_session(make_job(case), draw_points(case), np.array_split(np.arange(case.records), case.clients))


def code_ms(case: Case) -> float:
    """CPU of coding all clients' records, without boxes."""
    directory = tuple(bytes([n]) for n in range(case.clients))
    agreement = make_agreement(make_job(case), records=case.records, dimensions=case.dimensions, directory=directory)
    coding = agreement.choose_coding(case.records)
    parts = np.array_split(coding.fixed_point.encode(draw_points(case)), case.clients)
    times = []
    for _ in range(5):
        started_s = time.process_time()
        for n, part in enumerate(parts):
            coding.code.share(coding.field.encode(part), Stream.from_seed(n, "noise"))
        times.append((time.process_time() - started_s) * 1e3)
    return min(times)


def main() -> int:
    """Print the table; 0 if the marks hold."""
    missed = False
    print(f"{'n, m, k, d (t, l)':32}{'client ms':>10}{'server ms':>10}{'sum':>8}{'mark':>7}", end="")
    print(f"{'kB up':>8}{'coding ms':>11}{'mark':>7}{'with boxes':>12}")
    for case in CASES:
        run_case(case)  # compiles
        cost = run_case(case)
        client, server = statistics.median(cost.client_ms), statistics.median(cost.server_ms)
        coding = code_ms(case)
        bad = client + server > case.round_mark_ms
        bad |= case.sharing_mark_ms is not None and coding > case.sharing_mark_ms
        missed |= bad
        name = f"{case.clients}, {case.records}, {case.clusters}, {case.dimensions} ({case.privacy}, {case.segments})"
        mark = "" if case.sharing_mark_ms is None else f"{case.sharing_mark_ms:.0f}"
        print(f"{name:32}{client:10.2f}{server:10.2f}{client + server:8.2f}{case.round_mark_ms:7.1f}", end="")
        print(f"{cost.upload_bytes / 1e3:8.0f}{coding:11.1f}{mark:>7}{cost.sharing_ms * case.clients:12.1f}", end="")
        print("  missed" if bad else "  held", f"({len(cost.client_ms)} rounds)")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
