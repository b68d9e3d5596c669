"""``python -m bench.study_synopsis``: the synopsis on the families it was tuned on, against k-means without privacy.

Any knob can be changed on the way: ``python -m bench.study_synopsis rounds_min=3 cells_max=2000``.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from bench.families import FAMILIES, load_family
from cloister.crypto import Stream
from cloister.kmeans import ArrayRecords, cluster_sums
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.synopsis import Knobs, Settings, rehearse

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
INSTANCES, SEEDS = 3, 4


def measure_ratio(name: str, epsilon: float, knobs: Knobs) -> float:
    """The mean ratio over draws of the family and of the noise."""
    ratios = []
    for instance in range(INSTANCES):
        points, k, floor = load_family(name, instance)
        n, d = points.shape
        budget = Budget(epsilon=epsilon, delta=1 / (n * math.log(n)))
        settings = Settings(clusters=k, dimensions=d, budget=budget, parties=2, knobs=knobs)
        for seed in range(SEEDS):
            stream = Stream.from_seed(1000 * instance + seed, "study")
            finding = rehearse(
                settings,
                [ArrayRecords(points[::2]), ArrayRecords(points[1::2])],
                sampler=SimulationSampler(stream.child("noise")),
                stream=stream.child("start"),
            ).finding
            ratios.append(cluster_sums(points, finding.centres).loss / n / floor)
    return float(np.mean(ratios))


def main(arguments: list[str]) -> int:
    """Print one row a family and the geometric mean."""
    given = dict(argument.split("=") for argument in arguments)
    knobs = Knobs(**{name: type(getattr(Knobs(), name))(value) for name, value in given.items()})
    print(f"{'epsilon':16s}" + "".join(f"{epsilon:9g}" for epsilon in EPSILONS))
    table = []
    for name in FAMILIES:
        table.append([measure_ratio(name, epsilon, knobs) for epsilon in EPSILONS])
        print(f"{name:16s}" + "".join(f"{ratio:9.3f}" for ratio in table[-1]), flush=True)
    means = np.exp(np.log(table).mean(axis=0))
    print(f"{'geometric mean':16s}" + "".join(f"{mean:9.3f}" for mean in means))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
