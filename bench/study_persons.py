"""What hiding a person costs: losses of the synopsis on made-up visits, by person and by record.

Three laws of visits: a few each; a heavy tail of up to 200; an illness, one of four clusters, whose patients come 150
times. One party (q = 1), four columns, k = 4, delta = 1 / (n ln n) for n persons, noise as in a simulation. Loss: mean
squared distance, each person counting once (each record counting once), over that of k-means without privacy on the
same measure. Geometric means over draws. Run: ``python -m bench.study_persons``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from cloister.audit.persons import MadeUpRows
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.data.persons import choose_records
from cloister.data.table import Table
from cloister.numeric import FixedPoint
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, PersonBudget
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Settings
from cloister.records import FloatArray, IntArray

CLUSTERS, DIMENSIONS, SICK, VISITS_MOST = 4, 4, 150, 200
COLUMNS = tuple(Column(name=f"x{i}", low=-1, high=1) for i in range(DIMENSIONS))
CAPS = {"a record (protects a visit only)": None, "one record a person": 1, "3 records": 3, "10 records": 10}
SIZES, EPSILONS = (1000, 3000, 10_000), (0.5, 1.0, 4.0)
Law = Callable[[Stream, IntArray], IntArray]


def visit_often(stream: Stream, clusters: IntArray) -> IntArray:
    """Return how often each person comes: three times on average."""
    return 1 + stream.integers(5, len(clusters))


def visit_rarely_but_for_some(stream: Stream, clusters: IntArray) -> IntArray:
    """Return how often each person comes: at least m times with probability 1 / m."""
    return np.minimum(1 / (1 - stream.uniform(len(clusters))), VISITS_MOST).astype(np.int64)


def visit_when_sick(stream: Stream, clusters: IntArray) -> IntArray:
    """Return how often each person comes: those of the first cluster all the time."""
    return np.where(clusters == 0, SICK, 1 + stream.integers(2, len(clusters)))


LAWS: dict[str, Law] = {
    "a few": visit_often,
    "heavy tail": visit_rarely_but_for_some,
    "illness": visit_when_sick,
}


@dataclass(frozen=True, kw_only=True)
class Visits:
    """Made-up visits, who made them, and how good k-means is on them without privacy, by person and by record."""

    points: FloatArray
    persons: IntArray
    weights: tuple[FloatArray, FloatArray]
    references: tuple[float, float]

    def lose(self, centres: FloatArray) -> NDArray[np.float64]:
        """Return the losses of centres over the references', by person and by record."""
        return np.array([self._lose(centres, weights) for weights in self.weights]) / self.references

    def _lose(self, centres: FloatArray, weights: FloatArray) -> float:
        squares = ((self.points[:, None, :] - centres) ** 2).sum(axis=2).min(axis=1)
        return float(squares @ weights / weights.sum())


def draw_visits(law: Law, count: int, stream: Stream) -> Visits:
    """Draw persons around centres, one of ten in the first cluster, and their visits around themselves."""
    centres = 1.4 * stream.uniform(CLUSTERS, DIMENSIONS) - 0.7
    clusters = np.where(stream.uniform(count) < 0.1, 0, 1 + stream.integers(CLUSTERS - 1, count))
    often = law(stream, clusters)
    persons = np.repeat(np.arange(count), often)
    homes = centres[clusters] + 0.08 * stream.normal(count, DIMENSIONS)
    points = np.clip(homes[persons] + 0.05 * stream.normal(len(persons), DIMENSIONS), -1, 1)
    order = stream.permutation(len(persons))
    points, persons = points[order], persons[order]
    weights = (1.0 / often[persons], np.ones(len(persons)))
    drawn = Visits(points=points, persons=persons, weights=weights, references=(1.0, 1.0))
    best = []
    for place, weight in enumerate(weights):
        start = KMeans(CLUSTERS, n_init=4, random_state=0).fit(points, sample_weight=weight)
        best.append(float(drawn.lose(start.cluster_centers_)[place]))
    return Visits(points=points, persons=persons, weights=weights, references=(best[0], best[1]))


def find_centres(visits: Visits, count: int, epsilon: float, cap: int | None, stream: Stream) -> FloatArray:
    """Run the synopsis on the records that count; without a cap all do, and one record is what is hidden."""
    delta, grid = 1 / (count * math.log(count)), FixedPoint()
    table = Table(MadeUpRows(visits.points, visits.persons.tolist()), COLUMNS, fixed_point=grid)
    settings = Settings(
        clusters=CLUSTERS,
        dimensions=DIMENSIONS,
        budget=Budget(epsilon=epsilon, delta=delta)
        if cap is None
        else PersonBudget(epsilon=epsilon, delta=delta, records=cap),
        parties=1,
    )
    return rehearse(
        settings,
        [table if cap is None else choose_records(table, most=cap, key=stream.bytes(32))],
        pipeline=run_synopsis,
        sampler=SimulationSampler(stream.child("noise")),
        stream=stream.child("common"),
    ).finding.centres


def study(name: str, count: int, draws: int) -> dict[tuple[float, str], NDArray[np.float64]]:
    """Return the logarithms of the losses by person and by record, a row a draw, by epsilon and cap."""
    visits = [draw_visits(LAWS[name], count, Stream.from_seed(draw, name, count)) for draw in range(draws)]
    return {
        (epsilon, what): np.log(
            [
                one.lose(find_centres(one, count, epsilon, cap, Stream.from_seed(draw, name, count, what)))
                for draw, one in enumerate(visits)
            ]
        )
        for epsilon in EPSILONS
        for what, cap in CAPS.items()
    }


def print_rows(what: str, count: int, found: dict[tuple[float, str], NDArray[np.float64]]) -> None:
    """Print a row for each epsilon: the geometric mean by person (by record), with standard errors."""
    for epsilon in EPSILONS:
        cells = []
        for cap in CAPS:
            logs = found[epsilon, cap]
            means, errors = np.exp(logs.mean(axis=0)), logs.std(axis=0, ddof=1) / math.sqrt(len(logs))
            said = [f"{mean:.3f} ± {mean * error:.3f}" for mean, error in zip(means, errors, strict=True)]
            cells.append(f"{said[0]} ({said[1]})")
        print(f"| {what} | {count:,}, {epsilon:g} | " + " | ".join(cells) + " |", flush=True)


def main() -> int:
    """Print a table of each law and, last, of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--persons", type=int, nargs="+", default=SIZES)
    parser.add_argument("--laws", nargs="+", choices=LAWS, default=tuple(LAWS))
    options = parser.parse_args()
    print("| visits | persons, epsilon | " + " | ".join(CAPS) + " |")
    for count in options.persons:
        by_law = {name: study(name, count, options.draws) for name in options.laws}
        for name, found in by_law.items():
            print_rows(name, count, found)
        together = {key: np.concatenate([found[key] for found in by_law.values()]) for key in by_law[options.laws[0]]}
        print_rows("together", count, together)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
