"""Label new records with the centres of a result. Happens where the records are: nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.data import Table, open_table, to_unit
from cloister.kmeans import nearest
from cloister.numeric.fixed_point import FixedPoint
from cloister.report.result import Result


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Records that are about to be labelled.

    Attributes
    ----------
    records
        How many.
    clipped
        For each column, how many cells lie outside the public bounds and were moved onto them.
    """

    result: Result
    table: Table
    records: int
    clipped: tuple[int, ...]

    def labels(self) -> Iterator[NDArray[np.int32]]:
        """Yield labels in batches, in the order of the records; a label is a row of the result's centres."""
        centres = to_unit(self.result.centres, self.result.columns)
        for points in self.table.batches():
            yield nearest(points, centres).labels


def predict(result: Result, source: Any) -> Prediction:
    """Open and check a table whose records are to be labelled.

    Parameters
    ----------
    result
        From ``simulate`` or ``read_result``.
    source
        A path or an object in memory, as for ``open_table``. Columns are found by name.

    Returns
    -------
    Prediction
        Its labels are computed as they are read, a batch at a time.

    Raises
    ------
    DataError
        If the table does not hold the result's columns as numbers.
    """
    grid = FixedPoint(result.fractional_bits)
    table = open_table(source, result.columns, fixed_point=grid, match="name")
    check = table.check()
    return Prediction(result=result, table=table, records=check.records, clipped=check.clipped)
