"""All benchmarks in turn: ``python -m bench``; exit code 1 if a mark was missed."""

from __future__ import annotations

import sys

from bench import kernel, privacy_cost, protocol_round


def main() -> int:
    """Run every benchmark, each with its table."""
    missed = 0
    for benchmark in (kernel, protocol_round, privacy_cost):
        print(f"\n== {benchmark.__name__} ==")
        missed |= benchmark.main()
    return missed


if __name__ == "__main__":
    sys.exit(main())
