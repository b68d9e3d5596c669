"""SynthOV and SynthSEP at epsilon 1 (FastLloyd 6.2.2, figures 5 and 6): below both rivals in every cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from bench.sets import SEPARATIONS, draw_synth
from bench.utility_rivals import RIVALS, run_variants
from bench.utility_runs import Pool, find_centres, paper_delta
from cloister.kmeans import cluster_sums
from cloister.privacy.units import Budget

SIZES = (2, 4, 8, 16, 20)
ALL_SIZES = tuple(range(2, 21, 2))
DATA_SETS = 3
_COLUMNS_A_BLOCK = 5


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One data set of the grid, and how often to run on it."""

    family: str
    k: int
    d: int
    number: int
    runs: int


@dataclass(frozen=True, kw_only=True, eq=False)
class CellLosses:
    """Mean losses a record on one data set."""

    ours: float
    floor: float
    rivals: dict[str, np.ndarray]
    """One number for each variant of a rival."""


def measure_cell(cell: Cell) -> CellLosses:
    """Run everybody on one data set with the same budget."""
    points = draw_synth(cell.family, cell.k, cell.d, cell.number)
    budget = Budget(epsilon=1.0, delta=paper_delta(len(points)))
    seeds = [1000 * cell.number + run for run in range(cell.runs)]

    def run_ours(seed: int) -> float:
        centres = find_centres((points[::2], points[1::2]), cell.k, budget, seed)
        return cluster_sums(points, centres, threads=1).loss / len(points)

    return CellLosses(
        ours=float(np.mean([run_ours(seed) for seed in seeds])),
        floor=KMeans(cell.k, n_init=10, random_state=0).fit(points).inertia_ / len(points),
        rivals={
            name: np.mean([list(run_variants(name, points, cell.k, budget, seed)) for seed in seeds], axis=0)
            for name in RIVALS
        },
    )


def print_grid(pool: Pool, *, runs: int, sizes: tuple[int, ...] = SIZES) -> list[str]:
    """Run and print; return the cells that are not below a rival."""
    print(f"SynthOV and SynthSEP, epsilon 1, delta = 1/(n ln n), {DATA_SETS} data sets a cell, {runs} runs on each.")
    print(
        "Rivals are written again (bench.utility_rivals): exact Gaussian accounting and n for free; the best of their"
    )
    print("variants in each cell counts. A cell: our mean loss; ours over scikit-learn's best of 10 without privacy;")
    print("over FastLloyd's; over SuLloyd's (<1, >1: rounds to 1.00). NO: not below one of the two.")
    cells = [
        Cell(family=family, k=k, d=d, number=number, runs=runs)
        for family in SEPARATIONS
        for k in sizes
        for d in sizes
        for number in range(DATA_SETS)
    ]
    losses = dict(zip(cells, pool.map(measure_cell, cells), strict=True))
    missed = []
    for family in SEPARATIONS:
        for first in range(0, len(sizes), _COLUMNS_A_BLOCK):
            block = sizes[first : first + _COLUMNS_A_BLOCK]
            print(f"\n{family:8}" + "".join(f"{f'd = {d}':^24}" for d in block))
            print(f"{'':8}" + f"{'loss  /skl  /FL  /Su   ':>24}" * len(block))
            for k in sizes:
                texts = []
                for d in block:
                    drawn = [losses[Cell(family=family, k=k, d=d, number=i, runs=runs)] for i in range(DATA_SETS)]
                    text, below = _write_cell(drawn)
                    texts.append(text)
                    if not below:
                        missed.append(f"{family}, k = {k}, d = {d}: not below a rival ({' '.join(text.split())})")
                print(f"k = {k:<4}" + "".join(texts))
    return missed


def _write_cell(drawn: list[CellLosses]) -> tuple[str, bool]:
    """One cell's text, and whether ours is below both rivals."""
    ours = float(np.mean([losses.ours for losses in drawn]))
    floor = float(np.mean([losses.floor for losses in drawn]))
    best = [float(np.mean([losses.rivals[name] for losses in drawn], axis=0).min()) for name in RIVALS]
    below = ours < min(best)
    ratios = "".join(f"{_write_ratio(ours / loss):>5}" for loss in (floor, *best))
    return f"{ours:.4f}".removeprefix("0").rjust(6) + ratios + f"{'' if below else ' NO':3}", below


def _write_ratio(ratio: float) -> str:
    """Write .72 rather than 0.72, for cells are narrow; a near tie shows on which side of 1 it is."""
    text = f"{ratio:.2f}".removeprefix("0")
    return text if text != "1.00" else "<1" if ratio < 1 else ">1"
