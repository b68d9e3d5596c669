"""What only a simulator, which holds every table, can compute: the loss over all records, and a sample of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cloister.crypto import Stream
from cloister.data import EncodedTable, Table
from cloister.kmeans import cluster_sums, lloyd, weighted_kmeans
from cloister.records import FloatArray
from cloister.report.result import Evaluation

_REFERENCE_RECORDS = 20_000
_REFERENCE_RESTARTS = 10
_REFERENCE_ITERATIONS = 50


class AllRecords:
    """The records of all tables that have no missing cells, in batches."""

    def __init__(self, tables: Sequence[Table | EncodedTable]) -> None:
        self._tables = tables
        self.gaps = sum(int(np.isnan(batch).any(axis=1).sum()) for table in tables for batch in table.batches())
        """How many records have missing cells."""

    @property
    def dimensions(self) -> int:
        """The number of columns."""
        return self._tables[0].dimensions

    @property
    def count(self) -> int:
        """The number of records without missing cells."""
        return sum(table.check().records for table in self._tables) - self.gaps

    def batches(self) -> Iterator[FloatArray]:
        """Yield every table's batches in turn."""
        for table in self._tables:
            for batch in table.batches():
                yield batch[~np.isnan(batch).any(axis=1)] if self.gaps else batch

    def sample(self, most: int) -> FloatArray:
        """Return every n-th record, about ``most`` of them, in unit scaling [-1, 1]."""
        every = max(1, -(-self.count // most))
        chosen, passed = [np.empty((0, self.dimensions))], 0
        for batch in self.batches():
            chosen.append(batch[-passed % every :: every])
            passed += len(batch)
        return np.concatenate(chosen)


def evaluate_centres(tables: Sequence[Table | EncodedTable], centres: FloatArray) -> Evaluation | None:
    """Compare centres with k-means on one joint table: best of ten k-means++ starts on a sample, then Lloyd on all.

    Return None if no table holds a record: there is no loss then.
    """
    records = AllRecords(tables)
    if not records.count:
        return None
    sample = records.sample(_REFERENCE_RECORDS)
    k = min(len(centres), len(sample))
    start = weighted_kmeans(sample, k, Stream.from_seed(0, "reference"), restarts=_REFERENCE_RESTARTS).centres
    reference = lloyd(records, start, iterations=_REFERENCE_ITERATIONS, tolerance=1e-6).centres
    own = cluster_sums(records, centres)
    return Evaluation(
        loss=own.loss / records.count,
        empty_clusters=int((own.counts == 0).sum()),
        gaps=records.gaps,
        reference_loss=cluster_sums(records, reference).loss / records.count,
    )
