"""What benchmarks share: parts to choose from, marks that hold or are missed, seeded runs on two processes."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import numpy as np

from bench.sets import FAMILIES, Points, load_family
from cloister.crypto import Stream
from cloister.numeric import FixedPoint
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Settings as SynopsisSettings
from cloister.records import ArrayRecords, FloatArray
from papers.lab.products import Estimate
from papers.lab.trials import open_executor

Task = TypeVar("Task")
Answer = TypeVar("Answer")
Settings = TypeVar("Settings")
Column = TypeVar("Column")
Verdict = Literal["ok", "MISS", "wide"]
Section = Callable[[], list[str]]


class Pool:
    """Processes with one thread each. Runs are seeded: how many processes there are does not show in a result."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor

    def map(self, function: Callable[[Task], Answer], tasks: Sequence[Task], *, together: int = 1) -> list[Answer]:
        """Answer every task, in order; ``together`` of them go to one process, which keeps the data that it loaded."""
        return list(self._executor.map(function, tasks, chunksize=together))


@contextmanager
def open_pool(processes: int = 2) -> Iterator[Pool]:
    """Start fresh processes: libraries' threads do not survive a fork."""
    with open_executor(processes) as executor:
        assert executor is not None, "a pool must have two processes or more"
        yield Pool(executor)


def run_sections(sections: Mapping[str, Section], only: str | None = None) -> int:
    """Print each part, or one of them, then what was missed; 0 if all marks hold."""
    missed: list[str] = []
    for name in [only] if only else sections:
        print(f"\n-- {name} --", flush=True)
        missed += sections[name]()
    print()
    return conclude(missed)


def conclude(missed: Sequence[str]) -> int:
    """Print the verdict and what was missed; 0 if all marks hold."""
    print(f"marks {'MISSED' if missed else 'held'}")
    for line in missed:
        print(f"  {line}")
    return int(bool(missed))


def make_parser(
    name: str, description: str, sections: Mapping[str, Section] | Sequence[str]
) -> argparse.ArgumentParser:
    """Return a parser that can choose a part."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=description)
    parser.add_argument("--only", choices=list(sections), help="one part")
    return parser


def judge(estimate: Estimate, mark: float) -> Verdict:
    """Ok within 5 % of the mark or below, or with the mark inside the interval.

    An interval wider than a quarter of the mark shows nothing, or a few runs that failed outright: "wide".
    """
    if estimate.mean <= 1.05 * mark:
        return "ok"
    if estimate.mean - estimate.half_width > mark:
        return "MISS"
    return "ok" if estimate.half_width <= mark / 4 else "wide"


def paper_delta(n: int) -> float:
    """1 / (n ln n), as the papers set it."""
    return 1.0 / (n * math.log(n))


def find_centres(
    parts: Sequence[FloatArray], k: int, budget: Budget, seed: int, *, placement: Placement | None = None
) -> FloatArray:
    """Run the synopsis once: each part is a party; n is private; noise is discrete Gaussian, seeded.

    The coordinator adds the noise, unless another ``placement`` is given.
    """
    settings = SynopsisSettings(
        clusters=k,
        dimensions=parts[0].shape[1],
        budget=budget,
        parties=len(parts),
        placement=placement or Aggregator(),
    )
    rehearsal = rehearse(
        settings,
        [ArrayRecords(FixedPoint(16).quantise(part)) for part in parts],
        pipeline=run_synopsis,
        sampler=SimulationSampler(Stream.from_seed(seed, "noise of bench.utility")),
        stream=Stream.from_seed(seed, "common stream of bench.utility"),
    )
    return rehearsal.finding.centres


def parse_changes(arguments: Sequence[str]) -> dict[str, str]:
    """Read ``name=value`` from a study's command line."""
    return dict(argument.split("=") for argument in arguments)


def take_changes(kind: type[Settings], changes: dict[str, str], **given: Any) -> Settings:
    """Make settings with what the command line changes of them, and take that out of the changes."""
    usual = kind(**given)
    names = [name for name in changes if hasattr(usual, name)]
    return kind(**given, **{name: _convert(getattr(usual, name), changes.pop(name)) for name in names})


def _convert(usual: object, text: str) -> object:
    """As the value that it replaces; whole numbers where there was none."""
    if isinstance(usual, str):
        return text
    return int(text) if usual is None else type(usual)(float(text))  # type: ignore[call-arg]


def print_families(
    columns: Sequence[Column],
    run: Callable[[Points, int, float, Column, int], float],
    *,
    names: Sequence[str] = tuple(FAMILIES),
    instances: Sequence[int] = range(3),
    seeds: int = 4,
) -> None:
    """Print one row per family and the geometric mean; a cell is the mean over draws of the family and of the noise.

    ``run`` is given the points, k, the loss of k-means without privacy, the column and a seed.
    """
    print(f"{'epsilon':16s}" + "".join(f"{column!s:>9s}" for column in columns))
    table = []
    for name in names:
        draws = [(instance, *load_family(name, instance)) for instance in instances]
        row = [
            np.mean([run(*draw, column, 1000 * instance + seed) for instance, *draw in draws for seed in range(seeds)])
            for column in columns
        ]
        table.append(row)
        print(f"{name:16s}" + "".join(f"{ratio:9.3f}" for ratio in row), flush=True)
    means = np.exp(np.log(table).mean(axis=0))
    print(f"{'geometric mean':16s}" + "".join(f"{mean:9.4f}" for mean in means))
