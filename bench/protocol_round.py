"""What one round of the chapter 5 protocols costs: CPU of both parties and the coordinator together, and bytes.

The mark: a masked sum/count round on s1 with two parties takes at most a tenth of the 12.5 ms CPU of the published
code, everything included, and at most 4 k (d+1) + 64 bytes per party each way where the 32-bit ring fits. Process CPU
time, one thread; the cost of a round is the slope between a short and a long run, so that set-up is not in it.
Run: ``python -m bench.protocol_round``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from bench.sets import KS, load_unit
from cloister.crypto import Identity, SeededEntropy
from cloister.numeric import FixedPoint
from cloister.privacy.release import NoiseDuty
from cloister.protocols.multiparty_lloyd.agreement import Agreement, Variant
from cloister.protocols.multiparty_lloyd.coordinator import Outcome, coordinate
from cloister.protocols.multiparty_lloyd.messages import CODEC
from cloister.protocols.multiparty_lloyd.noise import NoisePlan
from cloister.protocols.multiparty_lloyd.party import LloydParty, LloydState
from cloister.records import ArrayRecords
from cloister.roles import Seat
from cloister.runtime import LocalRun, run_local

PUBLISHED_MS = {"s1": 12.5, "adult": 24.8, "birch2": 246.0}  # shared/peers/README.md, FastLloyd v2
VARIANTS: tuple[Variant, ...] = ("naive", "masked-sum-count", "masked-centroid")
SHORT, LONG, REPEATS = 5, 45, 7
SESSION = bytes(16)


def run_session(
    name: str,
    variant: Variant,
    iterations: int,
    *,
    noise: NoisePlan | None = None,
    duties: Sequence[NoiseDuty | None] = (None, None, None),
) -> tuple[float, LocalRun[Outcome], Agreement]:
    """Run one whole session with two parties; return its CPU seconds. Duties are the coordinator's and the parties'.

    The public cap on records is the power of two above what each party holds.
    """
    points = FixedPoint().quantise(load_unit(name))
    identities = [Identity(SeededEntropy(1, f"identity {n}")) for n in (1, 2)]
    agreement = Agreement(
        variant=variant,
        parties=2,
        clusters=KS[name],
        dimensions=points.shape[1],
        iterations=iterations,
        start_by="coordinator",
        initialisation="random",
        max_records=(1 << (len(points) // 2).bit_length()) - 1,
        noise=noise,
        directory=tuple(identity.public_bytes for identity in identities),
    )
    parties = [
        LloydParty(
            seat=Seat(number=n, identity=identity, entropy=SeededEntropy(1, f"party {n}"), session=SESSION),
            agreement=agreement,
            state=LloydState(agreement=agreement, records=ArrayRecords(points[n - 1 :: 2]), duty=duties[n]),
        )
        for n, identity in enumerate(identities, start=1)
    ]
    coordinator = coordinate(agreement, entropy=SeededEntropy(1, "coordinator"), session=SESSION, duty=duties[0])
    started_s = time.process_time()
    run = run_local(coordinator, parties, codec=CODEC, session=SESSION, threads=1)
    return time.process_time() - started_s, run, agreement


def main() -> int:
    """Print the table; 0 if the marks hold."""
    missed = False
    heading = f"{'data':8}{'protocol':18}{'ring':>5}{'CPU ms':>9}{'published':>11}{'ratio':>8}"
    print("One round, two parties and coordinator together, one thread.")
    print(heading + f"{'B up':>7}{'B down':>8}{'allowed':>9}")
    for name, published_ms in PUBLISHED_MS.items():
        for variant in VARIANTS:
            run_session(name, variant, SHORT)
            slopes_ms = []
            for _ in range(REPEATS):
                short_s, short, _ = run_session(name, variant, SHORT)
                long_s, long, agreement = run_session(name, variant, LONG)
                slopes_ms.append((long_s - short_s) / (LONG - SHORT) * 1e3)
            cpu_ms = statistics.median(slopes_ms)
            up, down = (
                (getattr(long.traffic[1], way) - getattr(short.traffic[1], way)) / (LONG - SHORT)
                for way in ("bytes_sent", "bytes_received")
            )
            bits = agreement.ring.bits
            allowed = bits // 8 * agreement.length + 64
            print(
                f"{name:8}{variant:18}{bits if agreement.masked else '-':>5}{cpu_ms:9.3f}"
                f"{published_ms:11.1f}{published_ms / cpu_ms:7.0f}x{up:7.0f}{down:8.0f}"
                f"{allowed if agreement.masked else '-':>9}"
            )
            if variant == "masked-sum-count":
                missed |= up > allowed or down > allowed or (name == "s1" and cpu_ms > published_ms / 10)
    print(f"marks {'MISSED' if missed else 'held'}: s1 at most 1.25 ms; bytes at most 'allowed' each way")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
