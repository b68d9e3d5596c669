"""The long audits, piece by piece: ``python -m tools.audit_long``; ``--table`` writes what ran into docs/audit.md.

Every test that audits a release runs with CLOISTER_LONG=1. After each, one line for each audit in it is appended to the
file; a run that was stopped goes on with the tests that are not in it. The exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cloister import audit as package
from cloister.audit import AuditReport, harness

ROOT = Path(__file__).parents[1]
_PAGE = ROOT / "docs" / "audit.md"
_START, _END = "<!-- long audits: begin -->", "<!-- long audits: end -->"
_KINDS = {
    "sound": ("sound", "not_refuted", "no_view", "no_route"),
    "as published": ("published", "first_round_alone"),
    "mutant": ("",),
}
FILES = ("tests/audit/test_mutants.py", *sorted(map(str, Path("tests/protocols").glob("*/test_attack.py"))))


class Recorder:
    """Notes every audit of every test, and leaves out the tests that are done."""

    def __init__(self, out: Path, *, stop: float) -> None:
        self._out, self._stop = out, stop
        self._done = {line["test"] for line in read_lines(out) if line["passed"]}
        self._reports: list[tuple[AuditReport, float]] = []
        self._commit = describe_commit()
        real = harness.audit

        def noted(*attacks: Any, **options: Any) -> AuditReport:
            started = time.monotonic()
            report = real(*attacks, **options)
            self._reports.append((report, time.monotonic() - started))
            return report

        package.audit = harness.audit = noted  # before any test imports it

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is done."""
        items[:] = [item for item in items if item.nodeid not in self._done]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin a test; none after the time is over."""
        if time.monotonic() > self._stop:
            pytest.exit("the time is over; the next run goes on from here", returncode=0)
        self._reports.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write down what came of a test."""
        if report.when != "call" and not report.failed:
            return
        head = {"test": report.nodeid, "passed": report.passed, "commit": self._commit}
        head["date"] = datetime.now(UTC).date().isoformat()
        lines = [{**head, **_describe(audited, seconds)} for audited, seconds in self._reports] or [head]
        with self._out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        print(f"{'passed' if report.passed else 'FAILED'} {report.duration:8.1f} s  {report.nodeid}", flush=True)


def _describe(report: AuditReport, seconds: float) -> dict[str, object]:
    return {
        "runs": report.training_runs + report.counts.runs_likelier,
        "epsilon": report.claim.epsilon,
        "rho": report.claim.rho,
        "epsilon_lower": report.epsilon_lower,
        "rho_lower": report.rho_lower,
        "violates": report.violates,
        "seconds": seconds,
    }


def describe_commit() -> str:
    """The commit, and whether the sources differ from it."""

    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=ROOT, text=True).strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "src") else "")


def read_lines(out: Path) -> list[dict[str, Any]]:
    """What earlier runs wrote."""
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []


def write_table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """The table, a row for each audit."""
    yield "| protocol | what | runs per input | epsilon claimed, at least | rho claimed, at least | verdict | s |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for line in sorted(lines, key=lambda line: line["test"]):
        if "runs" not in line or "command" in line["test"]:  # those are about what is printed
            continue
        path, _, test = line["test"].partition("::")
        protocol = "a reference release" if path.startswith("tests/audit") else Path(path).parent.name
        name, _, case = test.removeprefix("test_").partition("[")
        kind = next(kind for kind, words in _KINDS.items() if any(word in name for word in words))
        rho = "" if line["rho"] is None else f"{line['rho']:.3g}, {line['rho_lower']:.3g}"
        verdict = "refuted" if line["violates"] else "not refuted"
        yield (
            f"| {protocol} | {kind}: {name.replace('_', ' ')}{f' ({case[:-1]})' if case else ''} | {line['runs']:,} "
            f"| {line['epsilon']:.3g}, {line['epsilon_lower']:.3g} | {rho} "
            f"| {verdict}{'' if line['passed'] else ' (TEST FAILED)'} | {line['seconds']:,.0f} |"
        )


def put_table(lines: list[dict[str, Any]]) -> None:
    """Write the table into its page, between its marks."""
    text = _PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_START)
    dates = sorted({(line["date"], line["commit"]) for line in lines})
    when = ", ".join(f"{date} at commit {commit}" for date, commit in dates)
    body = "\n".join((_START, f"Run on {when}.", "", *write_table(lines), _END))
    _PAGE.write_text(before + body + rest.partition(_END)[2], encoding="utf-8")


def main() -> int:
    """Run the audits that did not run yet, or write the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.audit_long", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "audit-long.jsonl", help="lines are appended")
    parser.add_argument("--only", default="", help="an expression over the names of tests, as of pytest -k")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no test after this time")
    parser.add_argument("--table", action="store_true", help="write what the file holds into docs/audit.md")
    options = parser.parse_args()
    if options.table:
        put_table(read_lines(options.out))
        return 0
    options.out.parent.mkdir(exist_ok=True)
    os.environ["CLOISTER_LONG"] = "1"
    os.chdir(ROOT)
    recorder = Recorder(options.out, stop=time.monotonic() + 60 * options.minutes)
    arguments = ["-n", "0", "-s", "-p", "no:cacheprovider", "-k", options.only, *FILES]
    code = pytest.main(arguments, plugins=[recorder])
    return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)


if __name__ == "__main__":
    sys.exit(main())
