"""All benchmarks in turn: ``python -m bench``; exit code 1 if a mark was missed. Options are those of bench.utility."""

from __future__ import annotations

import sys

from bench import (
    align,
    fastlloyd,
    feddp,
    kernel,
    placement,
    privacy_cost,
    protocol_round,
    secfc_kernels,
    secfc_rounds,
    secure_sum,
    startup,
    utility,
    vertical,
)


def main() -> int:
    """Run every benchmark, each with its table."""
    missed = 0
    all_but_utility = (
        startup,
        kernel,
        protocol_round,
        privacy_cost,
        placement,
        secure_sum,
        fastlloyd,
        secfc_kernels,
        secfc_rounds,
        align,
        vertical,
        feddp,
    )
    for benchmark in all_but_utility:
        print(f"\n== {benchmark.__name__} ==")
        missed |= benchmark.main()
    print(f"\n== {utility.__name__} ==")
    return missed | utility.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
