"""What one round of the chapter 5 protocols costs: CPU of both parties and the coordinator together, and bytes.

The mark (issue 2): a masked sum/count round on s1 with two parties takes at most a tenth of the 12.5 ms CPU of the published
code, everything included, and at most 4 k (d+1) + 64 bytes per party each way. Process CPU time, one thread; the cost of a
round is the slope between a short and a long run, so that set-up is not in it. Run: ``python -m bench.round``.
"""

from __future__ import annotations

import statistics
import time

from bench.sets import KS, load_unit
from cloister.crypto import Identity, SeededEntropy
from cloister.kmeans.records import ArrayRecords
from cloister.numeric import FixedPoint
from cloister.protocols.multiparty_lloyd import CODEC, Agreement, LloydParty, coordinate
from cloister.runtime import LocalRun, run_local

PUBLISHED_MS = {"s1": 12.5, "adult": 24.8, "birch2": 246.0}  # shared/peers/README.md, FastLloyd v2
SHORT, LONG, REPEATS = 5, 45, 7


def run_session(name: str, variant: str, iterations: int) -> tuple[float, LocalRun]:
    """One whole session with two parties; returns its CPU seconds."""
    points = FixedPoint().quantise(load_unit(name))
    halves = (points[::2], points[1::2])
    session = bytes(16)
    identities = [Identity(SeededEntropy(1, f"identity {n}")) for n in (1, 2)]
    agreement = Agreement(
        variant=variant,
        parties=2,
        clusters=KS[name],
        dimensions=points.shape[1],
        iterations=iterations,
        start_by="coordinator",
        initialisation="random",
        max_records=16383 if len(halves[0]) <= 16383 else 10**6,
        directory=tuple(identity.public_bytes for identity in identities),
    )
    parties = [
        LloydParty(
            number=n,
            agreement=agreement,
            records=ArrayRecords(halves[n - 1]),
            identity=identities[n - 1],
            entropy=SeededEntropy(1, f"party {n}"),
            session=session,
        )
        for n in (1, 2)
    ]
    coordinator = coordinate(agreement, entropy=SeededEntropy(1, "coordinator"), session=session)
    started_s = time.process_time()
    run = run_local(coordinator, parties, codec=CODEC, session=session, threads=1)
    return time.process_time() - started_s, run


def main() -> int:
    """Print the table; 0 if the marks hold."""
    missed = 0
    print("One round, two parties and coordinator together, one thread.")
    print(f"{'data':8}{'protocol':18}{'ring':>5}{'CPU ms':>9}{'published':>11}{'ratio':>8}{'B up':>7}{'B down':>8}{'allowed':>9}")
    for name in PUBLISHED_MS:
        for variant in ("naive", "masked-sum-count", "masked-centroid"):
            run_session(name, variant, SHORT)
            slopes = []
            for _ in range(REPEATS):
                short_s, short = run_session(name, variant, SHORT)
                long_s, long = run_session(name, variant, LONG)
                slopes.append((long_s - short_s) / (LONG - SHORT) * 1e3)
            cpu_ms = statistics.median(slopes)
            up = (long.traffic[1].bytes_sent - short.traffic[1].bytes_sent) / (LONG - SHORT)
            down = (long.traffic[1].bytes_received - short.traffic[1].bytes_received) / (LONG - SHORT)
            width = 4 if name == "s1" or name == "birch2" or variant == "masked-centroid" else 8
            columns = load_unit(name).shape[1]
            allowed = width * KS[name] * (columns + 1) + 64
            print(
                f"{name:8}{variant:18}{8 * width if variant != 'naive' else '-':>5}{cpu_ms:9.3f}"
                f"{PUBLISHED_MS[name]:11.1f}{PUBLISHED_MS[name] / cpu_ms:7.0f}x{up:7.0f}{down:8.0f}{allowed:9}"
            )
            if variant == "masked-sum-count":
                missed += up > allowed or down > allowed
                missed += name == "s1" and cpu_ms > PUBLISHED_MS[name] / 10
    print("marks: " + ("missed" if missed else "held") + " (s1 at most 1.25 ms; bytes at most 'allowed' each way)")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
