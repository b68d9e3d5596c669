"""``python -m bench.study_vertical``: vertical k-means on synthetic families, against k-means without privacy.

The first half of the columns is Alice's, the rest Bob's; both add the full noise. Any knob or setting can be changed on
the way: ``python -m bench.study_vertical rounds=1 start_share=0.3 residuals=1``; ``draws=10`` takes other draws of the
families than the published table does, for tuning; ``exact=1`` compares with exact Lloyd from the same start instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from bench.harness import parse_changes, print_families, take_changes
from bench.sets import FAMILIES, Points
from cloister.crypto import Stream
from cloister.kmeans import cluster_sums, lloyd
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.vertical.algorithm import run_vertical
from cloister.protocols.vertical.rehearsal import rehearse_vertical
from cloister.protocols.vertical.settings import Knobs, Settings
from cloister.protocols.vertical.statistics import align_records, exact_total

EPSILONS = (0.25, 0.5, 1.0, 2.0)
INSTANCES, SEEDS = 3, 4


def make_settings(points: Points, k: int, epsilon: float | None, changes: Mapping[str, str]) -> Settings:
    """The settings of one run: half of the columns each, and what the command line changes."""
    n, d = points.shape
    half = max(d // 2, 1)
    left = dict(changes)
    knobs = take_changes(Knobs, left)
    return take_changes(
        Settings,
        left,
        clusters=k,
        columns_alice=tuple(range(half)),
        columns_encrypted=(tuple(range(half, d)),),
        records=n,
        budget=None if epsilon is None else Budget(epsilon=epsilon, delta=1 / n),
        knobs=knobs,
    )


def find_loss(points: Points, settings: Settings, seed: int) -> float:
    """The mean squared distance to the centres of one rehearsal."""
    stream = Stream.from_seed(seed, "study vertical")
    samplers = [SimulationSampler(stream.child("noise", holder)) for holder in range(2)]
    found = rehearse_vertical(settings, points, samplers=samplers, stream=stream.child("common"))
    return float(cluster_sums(points, found.finding.centres).loss / len(points))


def compare_with_lloyd(points: Points, settings: Settings, seed: int) -> float:
    """The loss of an exact clustering over that of as many exact Lloyd rounds from the same start."""
    stream = Stream.from_seed(seed, "study vertical")
    rehearsal = rehearse_vertical(settings, points, samplers=(), stream=stream.child("common"))
    asking = run_vertical(settings, rehearsal.codebooks, stream.child("common"))
    query = next(asking)
    if settings.start == "synopsis":
        query = asking.send(
            exact_total(query, align_records(points, settings.layout, rehearsal.codebooks), rehearsal.codebooks)
        )
    start = settings.layout.to_job(query.centres)
    loss = cluster_sums(points, rehearsal.finding.centres).loss
    return float(loss / lloyd(points, start, iterations=settings.rounds_made).loss)


def main(arguments: Sequence[str] = ()) -> int:
    """Print losses over those of k-means without privacy, or over exact Lloyd from the same start."""
    changes = parse_changes(arguments)
    first = int(changes.pop("draws", "0"))
    instances = range(first, first + int(changes.pop("instances", INSTANCES)))
    seeds = int(changes.pop("seeds", SEEDS))
    is_exact = changes.pop("exact", "0") == "1"
    names = changes.pop("families", ",".join(FAMILIES)).split(",")
    epsilons = [float(text) for text in changes.pop("epsilons", ",".join(map(str, EPSILONS))).split(",")]

    def run(points: Points, k: int, floor: float, epsilon: float | str, seed: int) -> float:
        if is_exact:
            return compare_with_lloyd(points, make_settings(points, k, None, changes), seed)
        return find_loss(points, make_settings(points, k, float(epsilon), changes), seed) / floor

    columns = ["exact"] if is_exact else epsilons
    print_families(columns, run, names=names, instances=instances, seeds=seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
