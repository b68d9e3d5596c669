"""What it costs that nobody knows the noise: the loss with noise by three parties over that with the coordinator's.

Run: ``python -m bench.placement`` (half a minute on two cores). The synopsis at epsilon 1 on the six sets of the
papers, three parties, shares of the noise such that any two parties' are enough (one may collude, all must stay), so
that all of it together has 3/2 times the variance. What runs is `rehearse`, whose noise has the law of a session's.
Both placements get the same seeds, which are resampled in pairs for the interval of the ratio.

Mark: a ratio of mean losses of at most 1.02 on sets of 1,000 records or more. A set without its file is skipped. Exit
code 1 if the mark was missed, or if there was nothing to measure it on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.harness import Pool, conclude, find_centres, open_pool, paper_delta
from bench.sets import KS, has_set, load_unit
from cloister.job import NoiseOptions
from cloister.kmeans import cluster_sums
from cloister.privacy.placement import Aggregator, Placement, Shared
from cloister.privacy.units import Budget
from cloister.records import FloatArray
from papers.data.files import SOURCES

PARTIES, EPSILON = 3, 1.0
RUNS = 100
MARK, MARKED_FROM = 1.02, 1000
_RESAMPLES = 10_000


@dataclass(frozen=True, kw_only=True)
class Run:
    """What is to be run."""

    name: str
    placement: Placement
    seed: int


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio of two means, with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, above: FloatArray, below: FloatArray) -> Ratio:
        """Resample pairs, which have a seed in common, with replacement (percentile bootstrap)."""
        picks = np.random.default_rng(0).integers(len(above), size=(_RESAMPLES, len(above)))
        low, high = np.quantile(above[picks].mean(axis=1) / below[picks].mean(axis=1), (0.025, 0.975))
        return cls(value=float(above.mean() / below.mean()), low=float(low), high=float(high))


def make_shared() -> Shared:
    """Return where a job of three parties has its noise if it asks for shares and says no more."""
    placement = NoiseOptions(placement="shared").make_placement(PARTIES)
    assert isinstance(placement, Shared)
    return placement


def measure_loss(run: Run) -> float:
    """Run the synopsis on a data set, every third record with each party; return the loss a record."""
    points = load_unit(run.name)
    budget = Budget(epsilon=EPSILON, delta=paper_delta(len(points)))
    parts = [points[party::PARTIES] for party in range(PARTIES)]
    centres = find_centres(parts, KS[run.name], budget, run.seed, placement=run.placement)
    return float(cluster_sums(points, centres, threads=1).loss / len(points))


def print_ratios(pool: Pool, *, runs: int) -> list[str]:
    """Run and print; return the marks that were missed."""
    shared = make_shared()
    print(f"Loss at epsilon {EPSILON:g}, {PARTIES} parties, {runs} runs each with the same seeds, delta = 1/(n ln n),")
    print(f"bounds = extremes. Shares: min_parties = {shared.members_min}, {shared.colluding_max} may collude.")
    print(f"Mark: at most {MARK:g} from {MARKED_FROM:,} records on; [ ] is the ratio's 95 % interval.\n")
    print(f"{'set':8}{'n':>9}{'coordinator':>13}{'shares':>13}{'ratio':>9}  {'interval':18}mark")
    missed, marked = [], 0
    for name, k in KS.items():
        if not has_set(name):
            print(f"{name:8}skipped: {name}.txt was not found")
            continue
        records = len(load_unit(name))
        tasks = [Run(name=name, placement=place, seed=seed) for place in (Aggregator(), shared) for seed in range(runs)]
        alone, together = np.split(np.array(pool.map(measure_loss, tasks, together=runs)), 2)
        ratio = Ratio.of(together, alone)
        verdict = "-"
        if records >= MARKED_FROM:
            marked += 1
            verdict = "ok" if ratio.value <= MARK else "MISS"
        if verdict == "MISS":
            missed.append(f"{name} (k = {k}): {ratio.value:.4f}, mark {MARK:g}")
        print(
            f"{name:8}{records:9,}{alone.mean():13.6g}{together.mean():13.6g}{ratio.value:9.4f}"
            f"  {f'[{ratio.low:.4f}, {ratio.high:.4f}]':18}{verdict}",
            flush=True,
        )
    return missed if marked else [f"no set of {MARKED_FROM:,} records or more was found. {SOURCES}"]


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; 0 if the mark holds."""
    parser = argparse.ArgumentParser(prog="python -m bench.placement", description="The loss of noise by the parties.")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs for each set and placement (default {RUNS})")
    options = parser.parse_args(arguments)
    if options.runs < 2:
        parser.error("--runs must be at least 2: one run has no interval")
    with open_pool() as pool:
        missed = print_ratios(pool, runs=options.runs)
    print()
    return conclude(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
