"""Made-up neighbouring tables for a job: what an audit of whole simulations runs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.audit.attack import find_far_outside
from cloister.columns import column_slices, show_date, unit_ends, unit_starts
from cloister.crypto import Stream
from cloister.job import Job
from cloister.privacy.units import PersonBudget, Unit
from cloister.protocol import SERVER
from cloister.records import FloatArray

_RECORDS = 30  # of each party
_CANARY_ROWS = 5
ALIGNED = 64
Cells = NDArray[Any]
Tables = Mapping[str, Cells]


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Everybody's made-up records on two inputs, in the job's units, by party, and a public table.

    The first party holds a record more, far outside the bounds; where the unit is a client, its whole table is there or
    empty; where it is a person, it holds several rows of one person more. (Noise of one party makes a pair release the
    same, so the person is at that party alone.) Where columns are split one record has other values at one of the
    parties: how many are aligned is public.
    """

    job: Job
    without: Tables
    present: Tables
    server: Cells | None

    @classmethod
    def draw(cls, job: Job, key: bytes) -> Neighbours:
        """Draw tables."""
        stream = Stream.from_seed(key, "tables")
        server = None if job.data.server is None else _draw_rows(job, 8 * job.k, stream)
        split = _split_columns if job.protocol.facts.split == "columns" else _split_rows
        without, present = split(job, stream)
        return cls(job=job, without=without, present=present, server=server)

    def move_record(self) -> Neighbours | None:
        """Return neighbours that differ in who holds the record, the first or the last party; None if there are two."""
        first, last = self.job.parties[0].name, self.job.parties[-1].name
        if len(self.job.parties) < 3:
            return None
        moved = {
            first: self.present[first][:_RECORDS],
            last: np.vstack([self.present[last], self.present[first][_RECORDS:]]),
        }
        return Neighbours(job=self.job, without={**self.present, **moved}, present=self.present, server=self.server)

    def spoil(self) -> Neighbours:
        """Return the same inputs with a cell that is no number, at the first party that has any on both."""
        party = next(name for name, table in self.without.items() if table.size)
        held = next(self.job.find_columns(one) for one in self.job.parties if one.name == party)
        place = next((place for place, column in enumerate(held) if column.kind != "category"), 0)

        def spoil(tables: Tables) -> Tables:
            unfit = tables[party].copy()
            unfit[0, place] = np.inf  # a missing cell may be none of the owner's faults
            return {**tables, party: unfit}

        return Neighbours(job=self.job, without=spoil(self.without), present=spoil(self.present), server=self.server)

    def write(self, tables: Tables, folder: Path) -> dict[str, object]:
        """Return tables as sources: arrays, or files where the job wants a column of IDs."""
        sources: dict[str, object] = dict(tables)
        named = self.job.data.id or self.job.data.person
        if named is not None:
            for party in self.job.parties:
                if party.name in tables:
                    header = ",".join((named, *(column.name for column in self.job.find_columns(party))))
                    ids = map(self._identify, range(len(tables[party.name])))
                    rows = (",".join(map(str, row)) for row in zip(ids, *tables[party.name].T.tolist(), strict=True))
                    sources[party.name] = folder / f"{party.name}.csv"
                    (folder / f"{party.name}.csv").write_text("\n".join((header, *rows, "")), encoding="utf-8")
        if self.server is not None:
            sources[SERVER] = self.server
        return sources

    def _identify(self, row: int) -> int:
        """Name a row: each its own ID; with persons, two rows each, and the canary's all behind the others."""
        return row if self.job.data.person is None else min(row, _RECORDS) // 2


def _draw_rows(job: Job, rows: int, stream: Stream) -> Cells:
    """Whole records, uniform over the domain."""
    starts, ends = unit_starts(job.coordinates), unit_ends(job.coordinates)
    return _find_cells(job, job.to_original(starts + (ends - starts) * stream.uniform(rows, job.dimensions)))


def _find_cells(job: Job, points: FloatArray) -> Cells:
    """Return records as their columns hold them, from coordinates in original units."""
    if all(column.kind == "number" for column in job.columns):
        return points
    cells = np.empty((len(points), len(job.columns)), dtype=object)
    for place, (column, block) in enumerate(zip(job.columns, column_slices(job.columns), strict=True)):
        own = points[:, block]
        if column.kind == "category":
            levels = np.rint(own[:, 0]).clip(0, 1) if own.shape[1] == 1 else np.argmax(own, axis=1)
            cells[:, place] = [column.levels[int(level)] for level in levels]
        elif column.kind == "date":
            cells[:, place] = [show_date(days) for days in own[:, 0].tolist()]
        else:
            cells[:, place] = own[:, 0] > 0.5 if column.kind == "boolean" else own[:, 0]
    return cells


def _split_rows(job: Job, stream: Stream) -> tuple[Tables, Tables]:
    tables = {party.name: _draw_rows(job, _RECORDS, stream) for party in job.parties}
    first = job.parties[0].name
    if isinstance(job.budget, PersonBudget):
        canary = find_far_outside(job) * np.linspace(1, 2, _CANARY_ROWS)[:, None]
        return tables, {**tables, first: np.vstack([tables[first], canary])}
    if job.budget is not None and job.budget.unit is Unit.CLIENT:
        return {**tables, first: tables[first][:0]}, tables
    return tables, {**tables, first: np.vstack([tables[first], _find_cells(job, find_far_outside(job)[None])])}


def _split_columns(job: Job, stream: Stream) -> tuple[Tables, Tables]:
    whole, names = _draw_rows(job, ALIGNED, stream), [column.name for column in job.columns]
    held = {party.name: [names.index(column.name) for column in job.find_columns(party)] for party in job.parties}
    tables = {party: whole[:, columns] for party, columns in held.items() if columns}
    changed = list(tables)[int(stream.integers(len(tables), 1)[0])]
    other = tables[changed].copy()
    other[-1] = _find_cells(job, find_far_outside(job)[None])[0, held[changed]]
    return tables, {**tables, changed: other}
