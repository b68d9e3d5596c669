"""What runs in the pinned subprocess: golden jobs, given to the command line in temporary folders."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cloister.cli import app
from tests.golden.jobs import AUDITED, JOBS, LABELLED, PLANNED
from tests.golden.tables import write_tables

VARYING = {"created", "cloister_version"}
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


def run_jobs(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Run jobs here, each in a new folder; returns their records, and the texts in these."""
    sys.modules["matplotlib"] = None  # type: ignore[assignment]  # no picture: it would take most of the time
    records: dict[str, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            write_tables(Path())
            os.environ["XDG_DATA_HOME"] = str(Path("user-data").absolute())  # not the ledgers of whoever records
            Path("job.toml").write_text(JOBS[name])
            records[name] = {key: _refer(value, texts) for part in _run_job(name) for key, value in _flatten(*part)}
    return records | {"texts": texts}


def _run_job(name: str) -> Iterator[tuple[str, Any]]:
    """Run every command that this job is for; yields what each gives."""
    if name.startswith("align"):
        yield from _call(
            "align", "job.toml", "--id", "id", "--out", "out", "--mode", name.removeprefix("align-"), numbers=False
        )
        for path in sorted(Path("out").glob("*.json")):
            yield path.name.partition(".")[0], json.loads(path.read_text())
        return
    yield from _call("run", "job.toml", "--out", "out", "--quiet", numbers=False)
    if Path("out/result.json").exists():
        result = json.loads(Path("out/result.json").read_text())
        yield "result", {key: value for key, value in result.items() if key not in VARYING}
    if name in PLANNED:
        yield from _call("plan", "job.toml", "--quick", "--records", "150")
    if name in AUDITED:
        yield from _call("audit", "job.toml", "--claim", "--runs", "400")
    for path in sorted(Path("ledgers").glob("*.ledger")):
        yield from _call("ledger", "show", str(path), only="Spent:", key=f"ledger.{path.stem}")
    if name in LABELLED and name.startswith("vertical"):
        yield from _call("predict", "out", "--job", "job.toml", "--out", "predicted", numbers=False)
    elif name in LABELLED:
        yield from _call("predict", "out", "north.csv", "--out", "predicted-labels.csv", numbers=False)
    for path in sorted(Path().rglob("*labels*.csv")):
        rows = path.read_text().splitlines()[1:]
        yield "-".join(path.with_suffix("").parts), [int(row.rpartition(",")[2]) for row in rows]


def _call(*command: str, numbers: bool = True, only: str = "", key: str = "") -> Iterator[tuple[str, Any]]:
    """Call the command line; yields the numbers that it prints, and its exit code if that is not 0."""
    key = key or command[0]
    done = CliRunner().invoke(app, command)
    if done.exit_code:
        yield f"{key}.exit", done.exit_code
    if done.exit_code not in (0, 12):  # 12: an audit refuted its claim
        yield f"{key}.error", done.stderr.strip().rpartition("\n")[2]
        if done.exit_code == 70:  # an unexpected error
            _show_traceback(done.stderr)
    elif numbers:
        lines = [line for line in done.stdout.splitlines() if only in line]
        yield key, [_read_number(text) for text in NUMBER.findall("\n".join(lines))]


@cache
def _show_traceback(text: str) -> None:
    """Print it, once."""
    print(text, file=sys.stderr)  # noqa: T201


def _read_number(text: str) -> float:
    text = text.replace(",", "")
    return int(text) if text.isdigit() else float(text)


def _flatten(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested values; a list of objects becomes a list for each of their keys."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flatten(f"{key}.{name}", inner)
    elif isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        for name in dict.fromkeys(name for inner in value for name in inner):
            yield from _flatten(f"{key}.{name}", [inner.get(name, "none") for inner in value])
    elif isinstance(value, list) and any(isinstance(inner, list) for inner in value):
        for place, inner in enumerate(value):
            yield from _flatten(f"{key}[{place}]", inner)
    else:
        yield key, value


def _refer(value: Any, texts: dict[str, str]) -> Any:
    """Return references in the place of sentences."""
    if isinstance(value, list):
        return [_refer(inner, texts) for inner in value]
    if not isinstance(value, str) or len(value) <= 40 or " " not in value:
        return value
    reference = "text " + hashlib.sha256(value.encode()).hexdigest()[:8]
    texts[reference] = value
    return reference


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(run_jobs(sys.argv[2:])))
