"""``python -m bench.study_synopsis``: the synopsis on the families it was tuned on, against k-means without privacy.

Any knob can be changed on the way: ``python -m bench.study_synopsis rounds_min=3 cells_max=2000``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.harness import paper_delta, parse_changes, print_families, take_changes
from bench.sets import Points
from cloister.crypto import Stream
from cloister.kmeans import cluster_sums
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.records import ArrayRecords

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)


def main(arguments: Sequence[str] = ()) -> int:
    """Print losses over those of k-means without privacy."""
    knobs = take_changes(Knobs, parse_changes(arguments))

    def run(points: Points, k: int, floor: float, epsilon: float, seed: int) -> float:
        n, d = points.shape
        budget = Budget(epsilon=epsilon, delta=paper_delta(n))
        stream = Stream.from_seed(seed, "study")
        finding = rehearse(
            Settings(clusters=k, dimensions=d, budget=budget, parties=2, knobs=knobs),
            [ArrayRecords(points[::2]), ArrayRecords(points[1::2])],
            pipeline=run_synopsis,
            sampler=SimulationSampler(stream.child("noise")),
            stream=stream.child("start"),
        ).finding
        return cluster_sums(points, finding.centres).loss / n / floor

    print_families(EPSILONS, run)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
