"""A result's centres as a table: one row for each cluster, its size and centre, and what noise does to them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cloister.errors import MissingExtraError

if TYPE_CHECKING:
    from cloister.report.result import Result

_NOISE = " ±"


def list_centres(result: Result) -> dict[str, Sequence[float]]:
    """Return the columns of the table, by name: sizes, then each column of the centres; ± is one standard deviation.

    A name that a column of the job has already gets more signs of the same.
    """
    sizes, names = result.sizes, [axis.name for axis in result.columns]
    columns: dict[str, Sequence[float]] = {}
    if sizes is not None:
        named = _avoid(sizes.unit, names)
        columns[named] = sizes.clusters
        if any(sizes.noise):
            columns[_avoid(named + _NOISE, names)] = sizes.noise
    for place, name in enumerate(names):
        columns[name] = result.centres[:, place].tolist()
        if result.centre_noise is not None:
            columns[_avoid(name + _NOISE, names)] = result.centre_noise[:, place].tolist()
    return columns


def _avoid(name: str, taken: Sequence[str]) -> str:
    """Return a name that no column of the job has."""
    return name if name not in taken else _avoid(name + "_", taken)


def write_centres(result: Result) -> str:
    """Return centres.csv: all digits, a row for each cluster, numbered as labels are."""
    columns = list_centres(result)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_avoid("cluster", list(columns)), *columns])
    writer.writerows([cluster, *row] for cluster, row in enumerate(zip(*columns.values(), strict=True)))
    return out.getvalue()


def make_frame(result: Result) -> Any:
    """Return the table as a pandas DataFrame, indexed by cluster.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.
    """
    try:
        import pandas  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtraError("a data frame", "pandas", "frames") from None
    index = pandas.RangeIndex(result.k, name="cluster")
    return pandas.DataFrame(list_centres(result), index=index)
