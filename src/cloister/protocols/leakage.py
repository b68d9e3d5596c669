"""Leakage tables: for each role, which values of a protocol it learns. Printed in reports and checked by tests (A5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Learns(Enum):
    """How much of a value a role learns."""

    EXACT = "exactly"
    NOISY = "with DP noise"
    OWN = "only its own"
    NOTHING = "nothing of"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell of a leakage table, in words a user understands."""

    role: str
    value: str
    meaning: str
    learns: Learns


@dataclass(frozen=True, kw_only=True)
class LeakageTable:
    """Who learns what, and which coalition undoes it."""

    source: str
    rows: tuple[Row, ...]
    breaks_if: str

    def learns(self, role: str, value: str) -> Learns:
        """Look one cell up."""
        return next(row.learns for row in self.rows if (row.role, row.value) == (role, value))
