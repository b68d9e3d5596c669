"""Hostile parties in sessions of every protocol: ``python -m bench.fuzz --frames 1000000 --sealed 100000 --out FILE``.

Games are seeded by their number and played in turn; each batch appends one line to the file, so a run that was stopped
goes on where it was. The exit code is 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

from tests.hostile.cases import CASES
from tests.hostile.game import Game, Played

_BATCH = 20  # games of each case in a line
_MOST = 12  # damaged messages before a true one; in some games eight times as many, before few of them


def main(arguments: list[str] | None = None) -> int:
    """Play until there were so many damaged messages, or until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000, help="damaged messages in all, earlier runs included")
    parser.add_argument("--sealed", type=int, default=10_000, help="of these, damaged inside a box")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after the batch that passes this")
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--out", type=Path, default=Path("fuzz.jsonl"), help="a line for each batch is appended")
    options = parser.parse_args(arguments)
    names = [name for name in CASES if options.only in name]
    so_far, batch = _read(options.out)
    stop = time.monotonic() + 60 * options.minutes
    while (so_far.frames < options.frames or so_far.sealed < options.sealed) and time.monotonic() < stop:
        played = Played()
        for name in names:
            for seed in range(batch * _BATCH, (batch + 1) * _BATCH):
                played += Game(name, seed, most=_MOST).play()
        line = {"batch": batch, **vars(played)}
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        so_far += played
        batch += 1
        print(_describe(so_far), flush=True)
    print(_describe(so_far))
    for finding in so_far.findings:
        print(finding)
    return 1 if so_far.findings else 0


def _read(file: Path) -> tuple[Played, int]:
    """Return what earlier runs found, and the next batch."""
    so_far, batch = Played(), 0
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        fields = json.loads(line)
        batch = max(batch, fields.pop("batch") + 1)
        so_far += Played(**{**fields, "ended": Counter(fields["ended"])})
    return so_far, batch


def _describe(played: Played) -> str:
    ended = ", ".join(f"{name} {count:,}" for name, count in sorted(played.ended.items()))
    return (
        f"{played.frames:,} damaged messages ({played.sealed:,} in boxes) in {played.games:,} sessions: "
        f"{played.refused:,} refused; {played.compared:,} sessions in which all were refused ended as without them; "
        f"others ended with {ended or 'no error'}; {len(played.findings)} findings"
    )


if __name__ == "__main__":
    raise SystemExit(main())
