"""The jobs of faulted runs: several protocols, small tables, and for some a result that plain k-means checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from tests.golden.tables import HELD, PARTY_ROWS, _make_rows

NAMES = ("north", "harbour", "valley")
PAIR = ("bank", "telco")
START = ((10.0, 20.0), (50.0, 60.0), (90.0, 30.0))
_ROUNDS = 4
_GIVEN = f'initialisation = "given"\nstart = {[list(row) for row in START]}\niterations = {_ROUNDS}\n'
_BUDGET = "[budget]\nepsilon = {}\ndelta = 1e-6\n"
_EXACT_BUDGET = _BUDGET.format("1e6")  # so little noise that a wrong sum shows
_HEAD = 'name = "processes"\n[clusters]\nk = 3\n[protocol]\n'
_COLUMNS = "[columns]\nx0 = { low = 0, high = 100 }\nx1 = { low = 0, high = 100 }\n"
_HELD = "[columns]\n" + "".join(f"{name} = {{ low = 0, high = 100 }}\n" for who in PAIR for name in HELD[who])


@dataclass(frozen=True, eq=False)
class Case:
    """One job: its text up to who takes part, its parties, who holds which columns, and how its result is checked."""

    contract: str
    names: tuple[str, ...] = NAMES
    held: dict | None = None
    start: tuple | None = None
    tolerance: float = 0.0
    least: int = 3
    """So many parties must be in a sum."""

    @property
    def is_private(self) -> bool:
        return "[budget]" in self.contract


def _exact(protocol: str, *, budget: str = "", tolerance: float = 1e-3, least: int = 3) -> Case:
    return Case(_HEAD + protocol + _GIVEN + budget + _COLUMNS, start=START, tolerance=tolerance, least=least)


CASES = {
    "masked sums": _exact('name = "masked-sum-count"\n'),
    "masked sums of two of three": _exact('name = "masked-sum-count"\nmin_parties = 2\n', least=2),
    "mask-noise-average, shared": _exact(
        'name = "mask-noise-average"\nplacement = "shared"\ncolluding_max = 1\n', budget=_EXACT_BUDGET, tolerance=2.0
    ),
    "mask-noise-average, local": _exact(
        'name = "mask-noise-average"\nplacement = "local"\n', budget=_EXACT_BUDGET, tolerance=2.0
    ),
    "FastLloyd": Case(
        _HEAD + 'name = "fastlloyd"\niterations = 3\nplacement = "shared"\ncolluding_max = 1\n'
        + _BUDGET.format(8.0) + _COLUMNS
    ),
    "synopsis": Case(_HEAD + 'name = "synopsis"\n[synopsis]\ncells_max = 30\n' + _BUDGET.format(8.0) + _COLUMNS),
    "align, cluster, label": Case(
        _HEAD + 'name = "vertical"\ncells = 3\niterations = 1\nlabels = ["telco"]\n' + _BUDGET.format(8.0)
        + '[data]\nid = "id"\n' + _HELD,
        PAIR,
        HELD,
    ),
    "align, cluster": Case(_HEAD + 'name = "secfc"\niterations = 3\n[data]\nid = "id"\n' + _COLUMNS),
}  # fmt: skip


@cache
def cluster_plainly(case: Case) -> tuple[np.ndarray, ...]:
    """Return where Lloyd's algorithm on all tables can end, in a few lines of our own.

    Where sums are of fewer parties than all, each round may be of any that are enough.
    """
    tables = [
        np.clip(np.array(_make_rows(seed, PARTY_ROWS[name], 7))[:, :2], 0, 100)
        for seed, name in enumerate(PARTY_ROWS, start=1)
    ]
    unions = [np.vstack(some) for count in range(case.least, len(tables) + 1) for some in combinations(tables, count)]
    ends = [np.array(case.start)]
    for _ in range(_ROUNDS):
        ends = [_move(rows, centres) for centres in ends for rows in unions]
    return tuple(ends)


def _move(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    nearest = ((rows[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    own = [rows[nearest == number] for number in range(len(centres))]
    return np.array([part.mean(axis=0) if len(part) else centre for part, centre in zip(own, centres, strict=True)])
