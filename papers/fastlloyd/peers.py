"""The authors' own code as measured on the same data, where that measurement is at hand (``peers`` beside the data)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cloister.errors import DataError
from papers.fastlloyd.scope import Scope

FILE = "fastlloyd_and_dp_peers.csv"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One row: mean loss and empty clusters of some runs of a peer."""

    loss: float
    empty: float
    runs: int


@dataclass(frozen=True, kw_only=True)
class Peers:
    """All rows of the file, or none."""

    rows: dict[tuple[str, str, float], Measured]

    def find(self, data: str, method: str, epsilon: float | None) -> Measured | None:
        """The row of a data set, a method of the file and an epsilon (None: without privacy)."""
        return self.rows.get((data, method, epsilon or 0.0))


def load_peers(scope: Scope) -> Peers:
    """Read the file beside the data folder; sets of which only a sample is used have no peer."""
    if scope.data is None:
        return Peers(rows={})
    found = _read(scope.data.parent / "peers" / FILE)
    return Peers(rows={key: row for key, row in found.items() if key[0] not in scope.samples})


@lru_cache(maxsize=2)
def _read(path: Path) -> dict[tuple[str, str, float], Measured]:
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {
                (row["dataset"], row["method"], float(row["eps"])): Measured(
                    loss=float(row["mean_nicv"]), empty=float(row["empty"] or "nan"), runs=int(row["runs"])
                )
                for row in csv.DictReader(file)
            }
    except (KeyError, ValueError):
        raise DataError(
            f"{path} must have the columns dataset, method, eps, mean_nicv, empty and runs, with numbers; it has not. "
            "Remove or replace it."
        ) from None
