"""Faults of machines, many of them: ``python -m bench.faults --ledger 9000 --network 1000 --out FILE``.

Four kinds, counted apart. All are seeded by their number, though what comes from outside comes when it comes.

- *Ledger*: any work on one ledger, with one fault of its disk (tests/privacy/ledger/scenes.py).
- *Sessions*: whole sessions of several protocols in which one party's process is killed, or its disk fails, up to three
  times, and which go on from its journal and its ledger (tests/runtime/faulted.py).
- *Steps*: runs between organisations in which one process is killed, at every step of every process in turn.
- *Network*: such runs of several protocols, in which processes, disks, links and people fail, up to three times
  (tests/deployment/faulted.py).

Nothing may be lost, charged twice, summed wrongly, or hang. Each batch appends one line to the file, so a campaign that
was stopped goes on where it was. The exit code is 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.deployment.faulted import FaultedRuns
from tests.privacy.ledger.scenes import fail_once, make_disk
from tests.runtime.faulted import FaultedJobs

RunOne = Callable[[int], Awaitable[list[str]]]
_TOGETHER = 4
"""So many at once: whole runs mostly wait. The other kinds never wait, so they run one by one."""


@contextmanager
def _open_ledgers():
    async def run(seed: int) -> list[str]:
        with make_disk() as disk:
            return [fail_once(seed, disk)]

    yield run


@contextmanager
def _open_sessions():
    with FaultedJobs() as jobs:

        async def run(seed: int) -> list[str]:
            with make_disk() as disk:
                return jobs.run(seed, disk)

        yield run


@contextmanager
def _open_steps():
    with FaultedRuns() as runs:
        yield runs.run_step


@contextmanager
def _open_network():
    with FaultedRuns() as runs:
        yield runs.run


KINDS: dict[str, tuple[Callable[[], AbstractContextManager[RunOne]], int, int, str]] = {
    "ledger": (_open_ledgers, 100, 9000, "faulted runs of a ledger"),
    "sessions": (_open_sessions, 10, 1000, "sessions with a fault"),
    "steps": (_open_steps, 20, 780, "runs between organisations, one kill in each, step by step"),
    "network": (_open_network, 20, 1000, "runs between organisations with faults"),
}
"""How a run of each kind is made, how many are a batch and how many there are by default, and what they are."""


def main(arguments: list[str] | None = None) -> int:
    """Run until there were so many faulted runs of each kind, or until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    for kind, (_, _, count, what) in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, default=count, help=f"{what}, earlier ones included")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after the batch that passes this")
    parser.add_argument("--out", type=Path, default=Path("faults.jsonl"), help="a line for each batch is appended")
    options = parser.parse_args(arguments)
    stop = time.monotonic() + 60 * options.minutes
    found = False
    for kind in KINDS:
        lines = [line for line in _read(options.out) if line["kind"] == kind]
        asyncio.run(_run_kind(kind, lines, getattr(options, kind), stop, options.out))
        found |= _describe(kind, lines)
    return int(found)


async def _run_kind(kind: str, lines: list[dict], count: int, stop: float, out: Path) -> None:
    """Run batches, and append a line for each."""
    open_runs, size, _, _ = KINDS[kind]
    with open_runs() as run_one:
        while sum(line["runs"] for line in lines) < count and time.monotonic() < stop:
            lines.append(await _run_batch(kind, 1 + max((line["batch"] for line in lines), default=-1), size, run_one))
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(lines[-1]) + "\n")


async def _run_batch(kind: str, batch: int, size: int, run_one: RunOne) -> dict:
    faults: Counter[str] = Counter()
    runs, findings, places = 0, [], asyncio.Semaphore(_TOGETHER)

    async def run(seed: int) -> None:
        nonlocal runs
        async with places:
            try:
                happened = await run_one(seed)
            except Exception:
                runs += 1
                findings.append(f"{kind} {seed}: {traceback.format_exc()}")
                return
        runs += bool(happened)  # a run may end before its fault
        faults.update(happened)

    await asyncio.gather(*(run(seed) for seed in range(batch * size, (batch + 1) * size)))
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
