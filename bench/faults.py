"""Faults of machines, many of them: ``python -m bench.faults --ledger 9000 --sessions 1000 --out FILE``.

Two kinds, counted apart. *Ledger*: any work on one ledger, with one fault of its disk (tests/privacy/ledger/scenes.py).
*Sessions*: whole sessions of several protocols in which one party's process is killed, or its disk fails, up to three
times, and which go on from its journal and its ledger (tests/runtime/faulted.py). Nothing may be lost, charged twice,
or hang. All are seeded by their number, though a kill from outside comes when it comes; each batch appends one line to
the file, so a run that was stopped goes on where it was. The exit code is 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.privacy.ledger.scenes import fail_once, make_disk
from tests.runtime.faulted import FaultedJobs

_BATCH = {"ledger": 100, "sessions": 10}


def main(arguments: list[str] | None = None) -> int:
    """Run until there were so many faulted runs of each kind, or until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", type=int, default=9000, help="faulted runs of a ledger, earlier ones included")
    parser.add_argument("--sessions", type=int, default=1000, help="sessions with a fault, earlier ones included")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after the batch that passes this")
    parser.add_argument("--out", type=Path, default=Path("faults.jsonl"), help="a line for each batch is appended")
    options = parser.parse_args(arguments)
    stop = time.monotonic() + 60 * options.minutes
    found = False
    for kind in _BATCH:
        lines = [line for line in _read(options.out) if line["kind"] == kind]
        with FaultedJobs() as jobs:
            while sum(line["runs"] for line in lines) < getattr(options, kind) and time.monotonic() < stop:
                lines.append(_run_batch(kind, 1 + max((line["batch"] for line in lines), default=-1), jobs))
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
        found |= _describe(kind, lines)
    return int(found)


def _run_batch(kind: str, batch: int, jobs: FaultedJobs) -> dict:
    faults: Counter[str] = Counter()
    runs, findings = 0, []
    for seed in range(batch * _BATCH[kind], (batch + 1) * _BATCH[kind]):
        with make_disk() as disk:
            try:
                happened = [fail_once(seed, disk)] if kind == "ledger" else jobs.run(seed, disk)
            except Exception:
                runs += 1
                findings.append(f"{kind} {seed}: {traceback.format_exc()}")
                continue
        runs += bool(happened)  # a session may end before its fault
        faults.update(happened)
    return {"kind": kind, "batch": batch, "runs": runs, "faults": faults, "findings": findings}


def _read(file: Path) -> Iterable[dict]:
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        yield json.loads(line)


def _describe(kind: str, lines: list[dict]) -> bool:
    """Print what there was of one kind; returns whether there was a finding."""
    faults: Counter[str] = Counter()
    for line in lines:
        faults.update(line["faults"])
    findings = [finding for line in lines for finding in line["findings"]]
    listed = ", ".join(f"{name} {count:,}" for name, count in sorted(faults.items()))
    print(f"{kind}: {sum(line['runs'] for line in lines):,} faulted runs ({listed}); {len(findings)} findings")
    print("".join(f"{finding}\n" for finding in findings), end="", flush=True)
    return bool(findings)


if __name__ == "__main__":
    raise SystemExit(main())
