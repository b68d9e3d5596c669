"""Scaling by a private spread against the right scaling: bounds 1 to 1000 times too wide, on drawn families.

Run: ``python -m bench.scaling`` (some twenty minutes on two cores), with ``--quick`` for a draw and a noise
a cell and three epsilons,
``--tune`` for other draws, ``--processes N``. Exit code 1 if a mark was missed.

Losses are on standardised data, over scikit-learn's k-means, best of ten. One party, n private, delta = 1 / (n ln n).
"Right" is the synopsis on exactly standardised records, clipped at 4 deviations, with ``scale = "bounds"``; "bounds"
is the same on the bounds as they are; "spread" releases the scale. What decides is v = n mu / sqrt(d).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from bench.harness import Pool, conclude, open_pool, paper_delta
from cloister.columns import Coordinate
from cloister.crypto import Stream
from cloister.kmeans import cluster_sums
from cloister.numeric import FixedPoint
from cloister.privacy.placement import Aggregator
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.guided_sums.algorithm import GuidedFinding, rehearse
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import SIGNAL_GOOD, Settings, SpreadSettings
from cloister.records import ArrayRecords, FloatArray

WIDTHS = (1, 10, 100, 1000)
NUMBERS, EPSILONS = (1_000, 5_000, 50_000), (0.1, 0.5, 1.0, 2.0, 8.0)
GOOD, WORST, SURE = 1.02, 1.04, 1000.0
CLIP = 4.0
BANDS = (0.0, 31.0, 60.0, 100.0, 300.0, 1000.0, np.inf)
"""Of v; the marks are for the last two."""

Draw = Callable[[np.random.Generator, int, np.ndarray], np.ndarray]


def _plane(rng: np.random.Generator, k: int, labels: np.ndarray) -> np.ndarray:
    middles = rng.uniform(-1, 1, (k, 2)) * (50, 0.02)
    return np.asarray(middles[labels] + rng.normal(size=(len(labels), 2)) * (8, 0.003))


def _hospital(rng: np.random.Generator, k: int, labels: np.ndarray) -> np.ndarray:
    """Age, pressure, mass index, creatinine with a long tail, and a laboratory value that tells one group."""
    n = len(labels)
    age = rng.uniform(25, 80, k)[labels] + 7 * rng.normal(size=n)
    pressure = rng.uniform(105, 170, k)[labels] + 10 * rng.normal(size=n)
    mass = rng.uniform(20, 36, k)[labels] + 2.5 * rng.normal(size=n)
    creatinine = np.exp(np.where(labels == 0, 1.4, -0.1) + 0.25 * rng.normal(size=n))
    sugar = np.where(labels == k - 1, 9.0, 5.4) + 0.6 * rng.normal(size=n)
    return np.stack([age, pressure, mass, creatinine, sugar], axis=1)


def _skewed(rng: np.random.Generator, k: int, labels: np.ndarray) -> np.ndarray:
    """Log-normal columns of many sizes."""
    middles = rng.uniform(-1, 1, (k, 7))
    return np.asarray(np.exp(middles[labels] + 0.35 * rng.normal(size=(len(labels), 7))) * 10.0 ** np.arange(-3, 4))


def _awkward(rng: np.random.Generator, k: int, labels: np.ndarray) -> np.ndarray:
    """Whole numbers, yes and no, years, mostly 0, heavy tails, a sign, and two plain columns."""
    n = len(labels)
    visits = rng.poisson(rng.uniform(1, 9, k)[labels])
    smokes = rng.uniform(size=n) < rng.uniform(0.1, 0.9, k)[labels]
    year = np.rint(rng.uniform(1935, 2005, k)[labels] + 6 * rng.normal(size=n))
    rare = np.where(rng.uniform(size=n) < 0.85, 0.0, rng.exponential(30.0, n))
    tails = rng.uniform(-3, 3, k)[labels] + rng.standard_t(2.5, n)
    balance = rng.uniform(-4000, 4000, k)[labels] + 900 * rng.normal(size=n)
    plain = rng.uniform(-1, 1, (k, 2))[labels] + 0.15 * rng.normal(size=(n, 2))
    return np.column_stack([visits, smokes, year, rare, tails, balance, plain])


def _gauss(d: int) -> Draw:
    def draw(rng: np.random.Generator, k: int, labels: np.ndarray) -> np.ndarray:
        middles = rng.normal(size=(k, d))
        return np.asarray((middles[labels] + 0.4 * rng.normal(size=(len(labels), d))) * 10.0 ** rng.uniform(-2, 2, d))

    return draw


FAMILIES: dict[str, tuple[int, Draw]] = {
    "plane": (4, _plane),
    "hospital": (4, _hospital),
    "skewed": (5, _skewed),
    "awkward": (6, _awkward),
    "gauss 10": (8, _gauss(10)),
    "gauss 20": (8, _gauss(20)),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One draw, and how it is clustered; a width of 0 stands for the right scaling, a negative one for the bounds."""

    family: str
    records: int
    epsilon: float
    width: int
    draw: int
    noise: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """The loss over that without privacy, and v."""

    ratio: float
    signal: float


def draw_family(name: str, records: int, number: int) -> tuple[int, FloatArray]:
    """Return k, and records in units of their own."""
    k, draw = FAMILIES[name]
    rng = np.random.default_rng([number, records, *name.encode()])
    labels = np.sort(rng.choice(k, records, p=rng.dirichlet(np.full(k, 5.0))))
    return k, draw(rng, k, labels)[rng.permutation(records)]


@lru_cache(maxsize=1)
def prepare(name: str, records: int, number: int) -> tuple[int, FloatArray, float]:
    """Return a draw, and the loss without privacy on standardised data."""
    k, points = draw_family(name, records, number)
    standard = (points - points.mean(axis=0)) / points.std(axis=0)
    return k, points, float(KMeans(k, n_init=10, random_state=0).fit(standard).inertia_)


def widen(points: FloatArray, width: int, seed: int) -> tuple[Coordinate, ...]:
    """Return bounds so many times too wide, the records somewhere within."""
    low, high = points.min(axis=0), points.max(axis=0)
    below = np.random.default_rng(seed).uniform(size=points.shape[1])
    more = (width - 1) * (high - low)
    ends = zip(low - below * more, high + (1 - below) * more, strict=True)
    return tuple(Coordinate(name="x", low=float(start), high=float(end)) for start, end in ends)


def measure_cell(cell: Cell) -> Found:
    """Run once."""
    k, points, floor = prepare(cell.family, cell.records, cell.draw)
    mean, deviation = points.mean(axis=0), points.std(axis=0)
    standard = (points - mean) / deviation
    plain: dict[str, Any] = {
        "clusters": k,
        "dimensions": points.shape[1],
        "budget": Budget(epsilon=cell.epsilon, delta=paper_delta(cell.records)),
        "parties": 1,
        "placement": Aggregator(),
    }
    seed = 1000 * cell.draw + cell.noise
    if cell.width > 0:
        settings: Settings = SpreadSettings(axes=widen(points, cell.width, seed), **plain)
        finding = _run(settings, points, seed)
        assert finding.scale is not None
        centres = (finding.scale.to_original(finding.centres) - mean) / deviation
    else:
        settings = Settings(**plain)
        if cell.width == 0:
            low, high = np.full(points.shape[1], -CLIP), np.full(points.shape[1], CLIP)
            given = standard
        else:
            axes = widen(points, -cell.width, seed)
            low, high = np.array([axis.low for axis in axes]), np.array([axis.high for axis in axes])
            given = points
        unit = np.clip((given - low) / (high - low) * 2 - 1, -1, 1)
        centres = (_run(settings, FixedPoint(16).quantise(unit), seed).centres + 1) / 2 * (high - low) + low
        if cell.width < 0:
            centres = (centres - mean) / deviation
    loss = cluster_sums(standard, centres, threads=1).loss
    return Found(ratio=loss / floor, signal=settings.measure_signal(cell.records))


def _run(settings: Settings, points: FloatArray, seed: int) -> GuidedFinding:
    return rehearse(
        settings,
        [ArrayRecords(points)],
        pipeline=run_synopsis,
        sampler=SimulationSampler(Stream.from_seed(seed, "noise of bench.scaling")),
        stream=Stream.from_seed(seed, "common stream of bench.scaling"),
    ).finding


def print_scaling(pool: Pool, *, draws: Sequence[int], noises: int, epsilons: Sequence[float]) -> list[str]:
    """Run and print; return the marks that were missed."""
    cells = [
        Cell(family=family, records=records, epsilon=epsilon, width=width, draw=draw, noise=noise)
        for family in FAMILIES
        for records in NUMBERS
        for draw in draws
        for epsilon in epsilons
        for noise in range(noises)
        for width in (0, *WIDTHS, *(-width for width in WIDTHS))
    ]
    found = dict(zip(cells, pool.map(measure_cell, cells, together=9 * noises * len(epsilons)), strict=True))
    print(f"{len(FAMILIES)} families, {len(draws)} draws, {noises} noises. A cell: geometric mean of the loss over")
    print("that without privacy, with the bounds > with the spread.")
    for records in NUMBERS:
        print(f"\nn = {records:<9,}" + "".join(f"{f'epsilon {epsilon:g}':>18}" for epsilon in epsilons))
        for width in (0, *WIDTHS):
            texts = []
            for epsilon in epsilons:
                chosen = [c for c in cells if (c.records, c.epsilon) == (records, epsilon)]
                logs = {w: [np.log(found[c].ratio) for c in chosen if c.width == w] for w in (width, -width)}
                means = {w: float(np.exp(np.mean(of_width))) for w, of_width in logs.items()}
                texts.append(f"{means[0]:.3f}" if not width else f"{means[-width]:.4g} > {means[width]:.4g}")
            print(f"{f'{width} x too wide' if width else 'right':<14}" + "".join(f"{text:>18}" for text in texts))
    return _print_bands(found)


def _print_bands(found: dict[Cell, Found]) -> list[str]:
    """Print the new loss over the right one by v; of families, as geometric means over draws and noises."""
    missed = []
    print("\nSpread over right, median (worst) of families and settings, by v:")
    for least, most in pairwise(BANDS):
        groups: dict[tuple[str, int, float, int], list[float]] = {}
        for cell, one in found.items():
            if cell.width <= 0 or not least <= one.signal < most:
                continue
            right = Cell(**{name: getattr(cell, name) for name in cell.__dataclass_fields__} | {"width": 0})
            key = (cell.family, cell.records, cell.epsilon, cell.width)
            groups.setdefault(key, []).append(float(np.log(one.ratio / found[right].ratio)))
        for width in WIDTHS:
            ratios = {key: float(np.exp(np.mean(logs))) for key, logs in groups.items() if key[3] == width}
            if not ratios:
                continue
            median, worst = float(np.median(list(ratios.values()))), max(ratios, key=lambda key: ratios[key])
            print(
                f"  v {least:g} to {most:g}, {width} x: {median:.4f} ({ratios[worst]:.3f}: {worst[0]}, n {worst[1]:,}, "
                f"epsilon {worst[2]:g})"
            )
            if least >= SIGNAL_GOOD and median > GOOD:
                missed.append(f"v from {least:g}, {width} x: median {median:.4f}, mark {GOOD:g}")
            if least >= SURE and ratios[worst] > WORST:
                missed.append(f"v from {least:g}, {width} x: {worst[0]} {ratios[worst]:.4f}, mark {WORST:g}")
    return missed


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables; 0 if the marks hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description="Scaling by a private spread.")
    parser.add_argument("--quick", action="store_true", help="one draw and one noise a cell")
    parser.add_argument("--tune", action="store_true", help="other draws, to tune on")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    first = 100 if options.tune else 0
    draws = range(first, first + (1 if options.quick else 3))
    with open_pool(options.processes) as pool:
        epsilons = EPSILONS[1:4] if options.quick else EPSILONS
        return conclude(print_scaling(pool, draws=draws, noises=1 if options.quick else 2, epsilons=epsilons))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
