"""``python -m bench.study_vertical``: vertical k-means on synthetic families, against k-means without privacy.

The first half of the columns is Alice's, the rest Bob's; both add the full noise. Any knob or setting can be changed on
the way: ``python -m bench.study_vertical rounds=1 start_share=0.3 residuals=1``; ``draws=10`` takes other draws of the
families than the published table does, for tuning; ``exact=1`` compares with exact Lloyd from the same start instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np

from bench.families import FAMILIES, load_family
from cloister.crypto import Stream
from cloister.kmeans import cluster_sums, lloyd
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.vertical.knobs import Knobs
from cloister.protocols.vertical.pipeline import run_vertical
from cloister.protocols.vertical.rehearsal import rehearse_vertical
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical.statistics import align_records, exact_total

EPSILONS = (0.25, 0.5, 1.0, 2.0)
INSTANCES, SEEDS = 3, 4


def make_settings(points: np.ndarray, k: int, epsilon: float | None, changes: Mapping[str, str]) -> Settings:
    """The settings of one run: half of the columns each, and what the command line changes."""
    n, d = points.shape
    knobs = {name: value for name, value in changes.items() if name in Knobs.__dataclass_fields__}
    others = {name: value for name, value in changes.items() if name in Settings.__dataclass_fields__}
    half = max(d // 2, 1)
    return Settings(
        clusters=k,
        columns_alice=tuple(range(half)),
        columns_encrypted=(tuple(range(half, d)),),
        records=n,
        budget=None if epsilon is None else Budget(epsilon=epsilon, delta=1 / n),
        knobs=Knobs(**{name: type(getattr(Knobs(), name))(float(value)) for name, value in knobs.items()}),
        **{name: value if name == "start" else int(value) for name, value in others.items()},
    )


def find_loss(points: np.ndarray, settings: Settings, seed: int) -> float:
    """The mean squared distance to the centres of one rehearsal."""
    stream = Stream.from_seed(seed, "study vertical")
    samplers = [SimulationSampler(stream.child("noise", holder)) for holder in range(2)]
    found = rehearse_vertical(settings, points, samplers=samplers, stream=stream.child("common"))
    return float(cluster_sums(points, found.finding.centres).loss / len(points))


def compare_with_lloyd(points: np.ndarray, settings: Settings, seed: int) -> float:
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


def main(arguments: list[str]) -> int:
    """Print one row a family and the geometric mean."""
    changes = dict(argument.split("=") for argument in arguments)
    first = int(changes.pop("draws", "0"))
    instances = range(first, first + int(changes.pop("instances", INSTANCES)))
    seeds = int(changes.pop("seeds", SEEDS))
    is_exact = changes.pop("exact", "0") == "1"
    names = changes.pop("families", ",".join(FAMILIES)).split(",")
    columns = ("exact",) if is_exact else EPSILONS
    if "epsilons" in changes:
        columns = tuple(map(float, changes.pop("epsilons").split(",")))
    print(f"{'epsilon':16s}" + "".join(f"{column!s:>9s}" for column in columns))
    table = []
    for name in names:
        row: list[float] = []
        for column in columns:
            ratios = []
            for instance in instances:
                points, k, floor = load_family(name, instance)
                settings = make_settings(points, k, None if is_exact else float(column), changes)
                for seed in range(1000 * instance, 1000 * instance + seeds):
                    if is_exact:
                        ratios.append(compare_with_lloyd(points, settings, seed))
                    else:
                        ratios.append(find_loss(points, settings, seed) / floor)
            row.append(float(np.mean(ratios)))
        table.append(row)
        print(f"{name:16s}" + "".join(f"{ratio:9.3f}" for ratio in row), flush=True)
    means = np.exp(np.log(table).mean(axis=0))
    print(f"{'geometric mean':16s}" + "".join(f"{mean:9.4f}" for mean in means))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
