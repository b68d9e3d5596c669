"""``python -m tools.mutants``: plants faults in a copy of the sources and reports which of them no test notices."""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from tools.mutants.choice import draw_mutants
from tools.mutants.equivalent import EQUIVALENT, without_place
from tools.mutants.named import NAMED
from tools.mutants.trial import Copy, Verdict

ROOT = Path(__file__).parents[2]
Trial = Callable[[Copy], Verdict]
_SECRETS = ("tests/test_secrets.py",)


def main() -> int:
    """List the mutants, or try those that the report does not hold yet; returns 1 if one survives."""
    options = _parse()
    trials = dict(_list_named(options.only) if options.named else _list_drawn(options))
    if options.list:
        print("\n".join(trials))
        return 0
    report: Path = options.report
    done = {verdict.id: verdict for verdict in _read(report)}
    waiting = [name for name in trials if name not in done]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # in order: the copy and its tests go, too
    if waiting:
        copy = Copy(ROOT, limit_s=options.limit, wide_s=options.wide)
        try:
            for i, name in enumerate(waiting, start=1):
                verdict = trials[name](copy)
                done[name] = verdict
                with report.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(verdict)) + "\n")
                print(f"{i}/{len(waiting)} {_show(verdict)}", flush=True)
        finally:
            copy.close()
    return _summarise([done[name] for name in trials])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--seed", default="HEAD", help="any text; HEAD is the hash of the last commit")
    parser.add_argument("--count", type=int, default=150, help="how many mutants to draw")
    parser.add_argument("--named", action="store_true", help="try the named mutants instead of drawn ones")
    parser.add_argument("--only", default="", help="named mutants whose name contains this")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--report", type=Path, help="one line of JSON for each; a run goes on where the last stopped")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for one run of some files of tests")
    parser.add_argument(
        "--wide", type=float, default=200.0, help="processors' seconds after which to start no more tests"
    )
    options = parser.parse_args()
    if options.seed == "HEAD" and not options.named:
        options.seed = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    if options.report is None:
        kind = "named" if options.named else options.seed[:12]
        options.report = ROOT / "build" / f"mutants-{kind}-{_digest_tree()[:12]}.jsonl"
        options.report.parent.mkdir(exist_ok=True)
    return options


def _digest_tree() -> str:
    """What a verdict holds for: these sources and these tests."""
    digest = hashlib.sha256()
    for top in ("src", "tests"):
        for path in sorted((ROOT / top).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _list_drawn(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    for mutant in draw_mutants(ROOT, options.seed, options.count):
        source = (ROOT / mutant.path).read_bytes()
        changed, names = mutant.apply(source), mutant.name_place(source)

        def try_it(copy: Copy, mutant=mutant, changed=changed, names=names) -> Verdict:  # type: ignore[no-untyped-def]
            first = _SECRETS if mutant.operator == "fix_entropy" else ()
            return copy.try_mutant(mutant.id, mutant.path, changed, names=names, first=first)

        yield mutant.id, try_it


def _list_named(only: str) -> Iterator[tuple[str, Trial]]:
    for named in NAMED:
        if only in named.name:
            changed = named.apply(ROOT)

            def try_it(copy: Copy, named=named, changed=changed) -> Verdict:  # type: ignore[no-untyped-def]
                return copy.try_mutant(named.name, named.path, changed, first=named.tests)

            yield named.name, try_it


def _read(report: Path) -> Iterator[Verdict]:
    if report.exists():
        for line in report.read_text(encoding="utf-8").splitlines():
            yield Verdict(**json.loads(line))


def _show(verdict: Verdict) -> str:
    return f"{verdict.status:9} {verdict.seconds:6.1f} s  {verdict.id}  {verdict.by}"


def _summarise(verdicts: list[Verdict]) -> int:
    """Print what was not killed, with its difference, and the counts."""
    left = [verdict for verdict in verdicts if verdict.status != "killed"]
    for verdict in left:
        why = EQUIVALENT.get(without_place(verdict.id))
        print(f"\n{_show(verdict)}\n{verdict.difference}" + (f"\nequivalent: {why}" if why else ""))
    equivalent = sum(without_place(verdict.id) in EQUIVALENT for verdict in left)
    counts = Counter(verdict.status for verdict in verdicts)
    # A run that does not end is noticed, too: whoever runs the tests sees it.
    noticed = counts["killed"] + counts["timeout"]
    print(
        f"\n{len(verdicts)} mutants: {counts['killed']} killed, {counts['timeout']} ran out of time, "
        f"{counts['survived']} survived, {equivalent} of these proved equivalent. "
        f"Noticed: {100 * noticed / max(1, len(verdicts) - equivalent):.1f} %"
    )
    return int(noticed + equivalent < len(verdicts))


if __name__ == "__main__":
    sys.exit(main())
