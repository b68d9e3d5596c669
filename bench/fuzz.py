"""Hostile parties in sessions of every protocol, and damaged bytes at every codec and parser.

``python -m bench.fuzz --sessions 1000000 --sealed 100000 --direct 10000000 --out FILE``. Three kinds, counted apart:
damaged messages in sessions (tests/hostile/game.py); in sessions, too, what a party with valid keys seals; and bytes
read directly (tests/hostile/direct.py), which is a hundred times as cheap and sees less. All are seeded by their
number and run in turn; each batch appends one line to the file, so a run that was stopped goes on where it was. The
exit code is 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.hostile.cases import CASES
from tests.hostile.direct import try_directly
from tests.hostile.game import Game, Played

# Damaged messages before a true one, in turn; in some games eight times as many, before few of them. Many are cheap,
# and few let a session go on: it mostly ends at the first that is taken.
_MOST = (40, 400, 1500)
_MOST_SEALED = 200
_GAMES, _SEALED_GAMES, _DIRECT = 5, 2, 5_000  # of each case in a line


def _play(name: str, batch: int) -> Played:
    played = Played()
    for seed in range(batch * _GAMES, (batch + 1) * _GAMES):
        played += Game(name, seed, most=_MOST[seed % len(_MOST)]).play()
    return played


def _play_sealed(name: str, batch: int) -> Played:
    played = Played()
    for seed in range(batch * _SEALED_GAMES, (batch + 1) * _SEALED_GAMES):
        played += Game(name, seed, most=_MOST_SEALED, only_boxes=True).play()
    return played


def _read_directly(name: str, batch: int) -> Played:
    return try_directly(name, batch, _DIRECT)


KINDS: dict[str, Callable[[str, int], Played]] = {
    "sessions": _play,
    "sealed": _play_sealed,
    "direct": _read_directly,
}


def main(arguments: list[str] | None = None) -> int:
    """Play until there was so much damage of each kind, or until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000, help="damaged messages in sessions, in all runs")
    parser.add_argument("--sealed", type=int, default=10_000, help="damaged contents of boxes in sessions, in all runs")
    parser.add_argument("--direct", type=int, default=1_000_000, help="damaged bytes read directly, in all runs")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after the batch that passes this")
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--out", type=Path, default=Path("fuzz.jsonl"), help="a line for each batch is appended")
    options = parser.parse_args(arguments)
    names = [name for name in CASES if options.only in name]
    so_far, batches = _read(options.out)
    stop = time.monotonic() + 60 * options.minutes
    for kind, run in KINDS.items():
        while so_far[kind].frames < getattr(options, kind) and time.monotonic() < stop:
            played = Played()
            for name in names:
                played += run(name, batches[kind])
            line = {"kind": kind, "batch": batches[kind], **vars(played)}
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            so_far[kind] += played
            batches[kind] += 1
        print(_describe(kind, so_far[kind]), flush=True)
    findings = [finding for played in so_far.values() for finding in played.findings]
    print("\n".join(findings) or "no findings")
    return 1 if findings else 0


def _read(file: Path) -> tuple[dict[str, Played], Counter[str]]:
    """Return what earlier runs found, and the next batch of each kind."""
    so_far = {kind: Played() for kind in KINDS}
    batches: Counter[str] = Counter()
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        fields = json.loads(line)
        kind, batch = fields.pop("kind"), fields.pop("batch")
        batches[kind] = max(batches[kind], batch + 1)
        so_far[kind] += Played(**{**fields, "ended": Counter(fields["ended"])})
    return so_far, batches


def _describe(kind: str, played: Played) -> str:
    if kind == "direct":
        return (
            f"direct: {played.frames:,} damaged, {played.refused:,} refused, all others are read as something else; "
            f"{len(played.findings)} findings"
        )
    ended = ", ".join(f"{name} {count:,}" for name, count in sorted(played.ended.items()))
    return (
        f"{kind}: {played.frames:,} damaged ({played.sealed:,} in boxes) in {played.games:,} sessions: "
        f"{played.refused:,} refused; {played.compared:,} sessions in which all were refused ended as without them; "
        f"others ended with {ended or 'no error'}; {len(played.findings)} findings"
    )


if __name__ == "__main__":
    raise SystemExit(main())
