"""A result's centres as a pandas DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloister.errors import MissingExtraError

if TYPE_CHECKING:
    from cloister.report.result import Result


def make_frame(result: Result) -> Any:
    """Return what centres.csv holds, indexed by cluster.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.
    """
    from cloister.report.centres import list_rows  # noqa: PLC0415 (it is built on results)

    try:
        import pandas  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtraError("a data frame", "pandas", "frames") from None
    rows = list_rows(result)
    return pandas.DataFrame.from_records(rows, index=next(iter(rows[0])))
