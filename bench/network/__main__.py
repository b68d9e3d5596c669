"""Runs the benchmark of the network; exit code 1 if a mark was missed. ``python -m bench.network [SECTION]``.

Marks: a round trip with two parties at most 5 ms (median) beyond the local runtime's, with 64 at most 100 ms; at least
60 % of the throughput of a bare stream of the same library in the same run; 500 MB through one connection in bounded
memory; 1,000 parties held at once; the clinics in at most 3 s from the last party's start; every client of a pool
finishes. All loopback; `line` measures the clinics over a long line between network namespaces.
"""

from __future__ import annotations

import sys

from bench.harness import Section, run_sections
from bench.network.clients import clients
from bench.network.clinics import clinics
from bench.network.line import line
from bench.network.parties import parties
from bench.network.sessions import rounds, upload
from bench.network.streams import throughput

SECTIONS: dict[str, Section] = {
    "upload": upload,
    "rounds": rounds,
    "throughput": throughput,
    "parties": parties,
    "clinics": clinics,
    "line": line,
    "clients": clients,
}


def main(only: str | None = None) -> int:
    """Run the benchmark; 1 if a mark was missed."""
    return run_sections(SECTIONS, only)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
