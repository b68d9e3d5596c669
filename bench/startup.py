"""What a command costs before it does anything: CPU seconds of a new process, all its threads together.

The marks: a command that reads no table takes less than 0.5 s, ``from cloister import Job`` less than 0.3 s. Each is
the least of some runs, with Python's bytecode on disk, as pip and make leave it. What ``cloister serve`` and ``cloister
party`` load before they listen or call has no mark of its own. Run: ``python -m bench.startup``.
"""

from __future__ import annotations

import argparse
import compileall
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import cloister
from bench.harness import conclude

COMMAND_MARK_S, IMPORT_MARK_S = 0.5, 0.3
IMPORTS: Mapping[str, tuple[str, float | None]] = {
    "from cloister import Job": ("from cloister import Job", IMPORT_MARK_S),
    "what serve and party load": ("import cloister.deployment, cloister.protocols.synopsis.protocol", None),
}
NOBODY_LISTENS = 8
"""The exit code of ``cloister check``, which asks the coordinator last."""
OTHERS = ("harbour", "valley", "hub")


def prepare(folder: Path) -> list[list[str]]:
    """Write a table, and list the commands that make keys and a job for three clinics and a coordinator of it."""
    (folder / "patients.csv").write_text("age,bmi\n20,30\n40,30\n60,30\n")
    (folder / "own.toml").write_text('data = "patients.csv"\ndataset = "patients"\n')
    keys = folder / "data" / "cloister" / "keys"
    people = [word for name in ("north", *OTHERS[:2]) for word in ("--pub", str(keys / f"{name}.pub"))]
    hub = ["--coordinator", str(keys / "hub.pub"), "--address", "localhost:7400"]
    return [
        *(["keys", "new", name] for name in OTHERS),
        ["keys", "new", "north"],
        ["init", "patients.csv", "-k", "2", *hub, *people],
    ]


def fill_bounds(folder: Path) -> None:
    """Give the job's columns bounds."""
    job = folder / "job.toml"
    job.write_text(job.read_text().replace("= {}", "= { low = 0, high = 100 }"))


def list_commands(result: Path) -> list[list[str]]:
    """List commands that read no table, or one of three rows; ``result`` is of a session between organisations."""
    own = ["job.toml", "--keys", "north", "--own", "own.toml"]
    limit = ["--epsilon", "2", "--delta", "1e-6", "--reason", "a benchmark", "--new"]
    return [
        ["--help"],
        ["--version"],
        ["networks"],
        ["keys", "show", "north"],
        ["ledger", "cap", "north", *limit],
        ["ledger", "show", "north"],
        ["check", *own],
        ["join", *own, "--yes"],
        ["verify", str(result)],
    ]


def measure(line: Sequence[str], folder: Path, *, runs: int) -> float:
    """Return the least CPU seconds of some runs."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    least = float("inf")
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode in (0, NOBODY_LISTENS), done.stderr
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def judge(name: str, spent_s: float, mark_s: float | None) -> list[str]:
    """Print a row; return what was missed."""
    missed = mark_s is not None and spent_s >= mark_s
    mark = "" if mark_s is None else f"{mark_s:8.2f}"
    print(f"  {name:<34} {spent_s:6.2f} {mark} {'MISS' if missed else ''}".rstrip(), flush=True)
    return [f"{name}: {spent_s:.2f} s"] if missed else []


def main(arguments: Sequence[str] = ()) -> int:
    """Print all; 1 if a mark was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description="CPU seconds of start-up")
    parser.add_argument("--runs", type=int, default=5, help="of each, the least counts (default 5)")
    runs = parser.parse_args(arguments).runs
    compileall.compile_dir(Path(cloister.__file__).parent, quiet=2)
    program, missed = [sys.executable, "-m", "cloister"], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure([*program, "demo", "--network", "--out", "result"], folder, runs=1)
        print(f"\n  {'':<34} {'CPU s':>6} {'mark':>8}")
        for text, (code, mark) in IMPORTS.items():
            missed += judge(text, measure([sys.executable, "-c", code], folder, runs=runs), mark)
        for words in prepare(folder):
            missed += judge(" ".join(words[:2]), measure([*program, *words], folder, runs=1), COMMAND_MARK_S)
        fill_bounds(folder)
        for words in list_commands(folder / "result"):
            missed += judge(" ".join(words[:2]), measure([*program, *words], folder, runs=runs), COMMAND_MARK_S)
    return conclude(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
