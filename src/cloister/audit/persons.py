"""Made-up persons for attacks: all parties' records on two inputs that differ by one person, the canary.

The canary has a hundred records at each party that may hold any, in batches of their own, and its ID in all spellings
that are one. The others have two different records each, and rows before and behind the canary's: were their choice
to depend on where a row stands, they would keep other records when the canary leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cloister.audit.attack import find_corner, find_middle, make_table
from cloister.audit.bounds import Neighbour
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.data.faults import Faults
from cloister.data.persons import PERSON_KEY_BYTES, choose_records
from cloister.data.table import Table
from cloister.job import Job
from cloister.privacy.units import PersonBudget
from cloister.records import Encoding, FloatArray, Records, StoredRecords

CANARY_RECORDS = 100
_SPELLINGS = ("0", " 0", 0, "0.0", 0.0)  # of the canary's ID
_BATCH_ROWS = 16
_ASIDE = 0.25  # of a column's half: where the others' second records are


def list_canaries(job: Job) -> dict[str, FloatArray]:
    """Return the canary's records at each party, by what they are, in the job's units."""
    corner, middle = find_corner(job), find_middle(job)
    spread = np.linspace(-1.0, 1.0, CANARY_RECORDS)[:, None] * (corner - middle) + middle
    return {
        "one more person, with a hundred equal records at a corner of the domain": np.tile(corner, (CANARY_RECORDS, 1)),
        "one more person, with a hundred records in different cells": spread,
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedRecords:
    """Several parties' records: what a sum over all of them is over."""

    parts: Sequence[Records]

    @property
    def dimensions(self) -> int:
        """The number of columns d."""
        return self.parts[0].dimensions

    def batches(self) -> Iterator[FloatArray]:
        """Yield one party's batches after the other's."""
        for part in self.parts:
            yield from part.batches()

    def encoded_by(self, encoding: Encoding) -> JoinedRecords:
        """Return the same records, encoded by this map from the values as they were stored."""
        assert all(isinstance(part, StoredRecords) for part in self.parts)
        return JoinedRecords(
            parts=[part.encoded_by(encoding) for part in self.parts if isinstance(part, StoredRecords)]
        )


def make_persons(job: Job, canary: FloatArray, *, others: int) -> Mapping[Neighbour, tuple[Records, ...]]:
    """Return every party's records that count, on either input, with the same keys.

    Parameters
    ----------
    job
        Its unit is the person.
    canary
        Its records at each party.
    others
        How many other persons each party has.
    """
    budget = job.budget
    assert isinstance(budget, PersonBudget)
    keys = Stream.from_seed(0, "audit", "persons")
    both: dict[Neighbour, list[Records]] = {side: [] for side in Neighbour}
    for number in range(len(job.parties)):
        key = keys.bytes(PERSON_KEY_BYTES)

        def choose(rows: FloatArray, key: bytes = key) -> Records:
            source = _lay_out(job, rows, others)
            axes = [Column(name=axis.name, low=axis.low, high=axis.high) for axis in job.coordinates]
            table = Table(source, axes, fixed_point=job.protocol.grid, batch_rows=_BATCH_ROWS)
            chosen = choose_records(table, most=budget.records, key=key)
            return make_table(job, source.values[chosen.counts])  # in one piece: it is asked in every run

        without = choose(canary[:0])
        both[Neighbour.WITHOUT].append(without)
        both[Neighbour.WITH].append(choose(canary) if number < budget.parties else without)
    return {side: tuple(records) for side, records in both.items()}


def _lay_out(job: Job, canary: FloatArray, others: int) -> MadeUpRows:
    """Return half of the others, the canary, and the other half."""
    middle = find_middle(job)
    aside = middle - _ASIDE * (find_corner(job) - middle)
    pairs = np.tile(np.vstack([middle, aside]), (others, 1))
    ids: list[object] = [str(1 + row // 2) for row in range(2 * others)]
    spelled = [_SPELLINGS[row % len(_SPELLINGS)] for row in range(len(canary))]
    half = 2 * (others // 2)
    return MadeUpRows(np.vstack([pairs[:half], canary, pairs[half:]]), [*ids[:half], *spelled, *ids[half:]])


class MadeUpRows:
    """A source of rows with IDs, in memory (`cloister.data.source.Source`)."""

    label, in_memory, read_once, id_column = "made-up persons", True, False, "person"

    def __init__(self, values: FloatArray, ids: Sequence[object]) -> None:
        self.values, self._ids = values, ids

    def read(self, faults: Faults, most_rows: int, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield raw values in chunks."""
        for start in range(0, len(self.values), most_rows):
            if id_cells is not None:
                id_cells += self._ids[start : start + most_rows]
            yield self.values[start : start + most_rows]
