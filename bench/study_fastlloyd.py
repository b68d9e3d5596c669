"""``python -m bench.study_fastlloyd``: the sound FastLloyd on the families it was tuned on, and what its parts do.

Losses are divided by those of FastLloyd's second version (``bench.rivals``: told n, with the better of two
starts and the exact Gaussian curve); geometric means over the families. Each further row changes one thing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from unittest.mock import patch

import numpy as np

from bench.harness import open_pool, paper_delta
from bench.rivals import run_variants
from bench.sets import FAMILIES, Points, load_family
from cloister.crypto import Stream
from cloister.kmeans import cluster_sums, sphere_packing
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd import offsets, sound
from cloister.protocols.fastlloyd.rehearsal import rehearse
from cloister.protocols.fastlloyd.sound import SoundSettings, plan_fastlloyd
from cloister.records import ArrayRecords

EPSILONS = (0.1, 0.5, 1.0, 2.0)
INSTANCES, SEEDS = 3, 4
Change = tuple[ModuleType, str, float]
CHANGES: dict[str, tuple[Change, ...]] = {
    "as it is": (),
    "idle clusters stay where they are": ((offsets, "_BUSY", math.inf),),
    "steps are not shortened": ((offsets, "_DOUBT", 0.0),),
    "the radius does not shrink": ((sound, "_RADIUS_DECAY", 1.0),),
    "no radius widens": ((sound, "_BLUR", 0.0),),
    "noise 0.003 before a radius shrinks": ((sound, "_BLUR", 0.003),),
    "noise 0.03": ((sound, "_BLUR", 0.03),),
    "radii of version 2": (
        (sound, "_FIRST_RADIUS", 1.0),
        (sound, "_LATER_RADIUS", 0.8),
        (sound, "_RADIUS_DECAY", 1.0),
    ),
    "4 rounds": ((sound, "ROUNDS", 4),),
    "8 rounds": ((sound, "ROUNDS", 8),),
    "16 rounds": ((sound, "ROUNDS", 16),),
}


@contextmanager
def changed(changes: tuple[Change, ...]) -> Iterator[None]:
    """Set constants for a while."""
    with ExitStack() as stack:
        for module, name, value in changes:
            stack.enter_context(patch.object(module, name, value))
        yield


def measure(task: tuple[str, float]) -> list[float]:
    """The logarithms of the mean losses of every row of the table, relative to version 2, on one family."""
    name, epsilon = task
    rows = []
    for instance in range(INSTANCES):
        points, k, _ = load_family(name, instance)
        n = len(points)
        budget = Budget(epsilon=epsilon, delta=paper_delta(n))
        seeds = range(1000 * instance, 1000 * instance + SEEDS)
        rival = np.mean([list(run_variants("FastLloyd", points, k, budget, seed)) for seed in seeds], axis=0).min()
        ratios = []
        for changes in CHANGES.values():
            with changed(changes):
                ratios.append(np.mean([_run(points, k, budget, seed) for seed in seeds]) / rival)
        rows.append(np.log(ratios))
    return [float(x) for x in np.mean(rows, axis=0)]


def _run(points: Points, k: int, budget: Budget, seed: int) -> float:
    n, d = points.shape
    plan = plan_fastlloyd(SoundSettings(clusters=k, dimensions=d, parties=2, max_records=n), budget)
    stream = Stream.from_seed(seed, "study of fastlloyd")
    found = rehearse(
        plan,
        [ArrayRecords(points[::2]), ArrayRecords(points[1::2])],
        sphere_packing(stream.child("start"), k, d),
        sampler=SimulationSampler(stream.child("noise")),
    )
    return cluster_sums(points, found.centres, threads=1).loss / n


def main() -> int:
    """Print one row a change, and the families' own numbers for the first."""
    tasks = [(name, epsilon) for name in FAMILIES for epsilon in EPSILONS]
    with open_pool() as pool:
        measured = dict(zip(tasks, pool.map(measure, tasks, together=len(EPSILONS)), strict=True))
    print(f"{'loss / that of version 2, epsilon':36s}" + "".join(f"{epsilon:8g}" for epsilon in EPSILONS))
    for number, change in enumerate(CHANGES):
        means = [np.mean([measured[name, epsilon][number] for name in FAMILIES]) for epsilon in EPSILONS]
        print(f"{change:36s}" + "".join(f"{math.exp(mean):8.3f}" for mean in means))
    print("as it is, family by family")
    for name in FAMILIES:
        print(f"  {name:34s}" + "".join(f"{math.exp(measured[name, epsilon][0]):8.3f}" for epsilon in EPSILONS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
