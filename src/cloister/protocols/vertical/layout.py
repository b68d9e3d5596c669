"""The layout: whose columns are where, and how cells of several holders become one joint cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError
from cloister.records import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which of the job's columns each party holds; *session order* is Alice's columns, then the holders' in turn.

    Parameters
    ----------
    alice
        The computing party's columns, maybe none.
    encrypted
        Each encrypted holder's columns.
    """

    alice: tuple[int, ...]
    encrypted: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not all(self.encrypted):
            raise ConfigError("every encrypted column holder must have at least one column; got one without any.")
        if sorted(self._flat) != list(range(len(self._flat))):
            raise ConfigError(
                f"each of the {len(self._flat)} columns must be held by exactly one party; got {self._flat}. "
                "Number columns from 0."
            )

    @property
    def _flat(self) -> tuple[int, ...]:
        return (*self.alice, *(column for columns in self.encrypted for column in columns))

    @property
    def dimensions(self) -> int:
        """D."""
        return len(self._flat)

    @property
    def alice_count(self) -> int:
        """d_A."""
        return len(self.alice)

    @property
    def encrypted_count(self) -> int:
        """d_B: of all encrypted holders."""
        return self.dimensions - len(self.alice)

    @property
    def order(self) -> IntArray:
        """The job's columns in session order."""
        return np.array(self._flat, dtype=np.int64)

    def to_session(self, points: FloatArray) -> FloatArray:
        """Return (n, d) points of the job's column order in session order."""
        return np.ascontiguousarray(points[:, self.order])

    def to_job(self, points: FloatArray) -> FloatArray:
        """Return (n, d) points of session order in the job's column order."""
        placed = np.empty_like(points)
        placed[:, self.order] = points
        return placed

    def alice_part(self, table: FloatArray) -> FloatArray:
        """Return Alice's columns of a table in the job's order."""
        return np.ascontiguousarray(table[:, list(self.alice)])

    def holder_part(self, table: FloatArray, holder: int) -> FloatArray:
        """Return an encrypted holder's columns of a table in the job's order."""
        return np.ascontiguousarray(table[:, list(self.encrypted[holder])])


def join_cells(cells: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> IntArray:
    """Return each record's joint cell, (n,): the last holder's cell counts fastest."""
    joint = np.zeros(len(cells[0]), dtype=np.int64)
    for own, size in zip(cells, sizes, strict=True):
        joint = joint * size + own
    return joint


def join_reps(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the representatives of all joint cells, (prod m_h, sum d_h), in the order of `join_cells`."""
    sizes = [len(part) for part in parts]
    indices = np.unravel_index(np.arange(prod(sizes)), sizes)
    return np.concatenate([part[own] for part, own in zip(parts, indices, strict=True)], axis=1)


def cut_axes(columns: int, cells: int) -> tuple[int, ...]:
    """Cut each of some equal axes into bins, ``cells`` at most in all: one more on each in turn, until none fits."""
    bins = [1] * columns
    axis = 0
    while columns and prod(bins) // bins[axis] * (bins[axis] + 1) <= cells:
        bins[axis] += 1
        axis = (axis + 1) % columns
    return tuple(bins)
