"""The default algorithm's marks: loss on the papers' data sets and grids, against every sound peer; and its time.

Run: ``python -m bench.utility`` (some ten minutes on two busy cores), with ``--quick`` for three runs of fewer cells,
``--only table`` (or mixture, grid, client, time) for one part, ``--full`` for all of FastLloyd's grid. Exit code 1 if a
mark was missed.

The data sets of the table are for reporting only: nothing was tuned on them, and docs/study-synopsis.md says how often
they were looked at.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from bench.utility_grid import ALL_SIZES, SIZES, print_grid
from bench.utility_mixture import print_client_level, print_mixture
from bench.utility_runs import Pool, open_pool
from bench.utility_table import print_table
from bench.utility_time import print_time

QUICK_RUNS, RUNS, GRID_RUNS = 3, 20, 4
SECTIONS = ("table", "mixture", "grid", "client", "time")


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables; 0 if the marks hold."""
    options = _parse(arguments)
    quick: bool = options.quick
    runs = options.runs or (QUICK_RUNS if quick else RUNS)
    grid_runs = min(runs, GRID_RUNS)

    def run_grid(pool: Pool) -> list[str]:
        sizes = (2, 8) if quick else ALL_SIZES if options.full else SIZES
        return print_grid(pool, runs=1 if quick else runs if options.full else grid_runs, sizes=sizes)

    sections: dict[str, Callable[[Pool], list[str]]] = {
        "table": lambda pool: print_table(pool, runs=runs, **({"epsilons": (0.1, 1.0)} if quick else {})),
        "mixture": lambda pool: print_mixture(pool, runs=runs, **({"epsilons": (1.0,)} if quick else {})),
        "grid": run_grid,
        "client": lambda pool: print_client_level(pool, runs=runs, **({"epsilons": (1.0,)} if quick else {})),
        "time": lambda _pool: print_time(repeats=5) if quick else print_time(),
    }
    missed: list[str] = []
    with open_pool() as pool:
        for name in [options.only] if options.only else SECTIONS:
            print(f"\n-- {name} --", flush=True)
            missed += sections[name](pool)
    print(f"\nmarks {'MISSED' if missed else 'held'}")
    for line in missed:
        print(f"  {line}")
    return int(bool(missed))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.utility", description="Utility and time of the synopsis.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs, fewer cells")
    parser.add_argument("--runs", type=int, help=f"runs a cell (default {RUNS}; grid: at most {GRID_RUNS})")
    parser.add_argument("--only", choices=SECTIONS, help="one part")
    parser.add_argument("--full", action="store_true", help="the whole grid, k and d = 2, 4, ..., 20, with all runs")
    options = parser.parse_args(arguments)
    if options.runs is not None and options.runs < 2:
        parser.error("--runs must be at least 2: one run has no interval")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
