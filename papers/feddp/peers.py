"""The authors' own code as measured on mixtures of the same kind, where that measurement is at hand.

Its mixture is another draw than ours, so that excesses over the optimum are compared and not costs.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean

from cloister.errors import DataError
from cloister.privacy.units import Unit
from papers.feddp.datasets import DataSet, MixtureSet

FILE = "feddp_kmeans.csv"
_MODES = {"data": Unit.RECORD, "client": Unit.CLIENT}
_MEASURED = {
    MixtureSet(clients=100, records_each=1000, unit=Unit.RECORD),
    MixtureSet(clients=2000, records_each=50, unit=Unit.CLIENT),
}
"""Mixtures of these sizes were measured."""


@dataclass(frozen=True, kw_only=True)
class Peers:
    """Excess of every run by level, method and epsilon (None: without privacy), then by the number of Lloyd steps."""

    excesses: dict[tuple[Unit, str, float | None], dict[int, list[float]]]

    def find(self, data: DataSet, method: str, epsilon: float | None) -> float | None:
        """The mean excess with the best number of Lloyd steps; None where it was not measured."""
        if data not in _MEASURED:
            return None
        by_steps = self.excesses.get((data.unit, method, epsilon))
        return min(fmean(values) for values in by_steps.values()) if by_steps else None


def load_peers(folder: Path | None) -> Peers:
    """Read the file in a folder; none where there is no folder or no file."""
    return Peers(excesses={} if folder is None else _read(folder / FILE))


@lru_cache(maxsize=2)
def _read(path: Path) -> dict[tuple[Unit, str, float | None], dict[int, list[float]]]:
    if not path.is_file():
        return {}
    found: dict[tuple[Unit, str, float | None], dict[int, list[float]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                epsilon = None if row["eps_total"] == "inf" else float(row["eps_total"])
                by_steps = found.setdefault((_MODES[row["mode"]], row["method"], epsilon), {})
                by_steps.setdefault(int(row["lloyd_steps"]), []).append(float(row["excess_over_optimal"]))
    except (KeyError, ValueError):
        raise DataError(
            f"{path} must have the columns mode, method, eps_total, lloyd_steps and excess_over_optimal, with numbers; "
            "it has not. Remove or replace it."
        ) from None
    return found
