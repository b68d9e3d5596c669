"""The one way to open a table: look at what was given and choose the source that reads it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cloister.columns import Column, parse_bounds, require_distinct
from cloister.data.cells import Faults
from cloister.data.csv_source import CsvSource
from cloister.data.source import ArraySource, FrameSource, Match, Source
from cloister.data.table import BATCH_ROWS, MEMORY_BUDGET_BYTES, Table
from cloister.errors import ConfigError, DataError
from cloister.numeric import FixedPoint


def open_table(
    source: Any,
    columns: Sequence[Column] | None = None,
    *,
    bounds: Mapping[str, Any] | None = None,
    fixed_point: FixedPoint = FixedPoint(),  # noqa: B008 (frozen)
    batch_rows: int | None = None,
    match: Match = "order",
    delimiter: str | None = None,
    id_column: str | None = None,
    memory_budget_bytes: int = MEMORY_BUDGET_BYTES,
    may_be_empty: bool = False,
    see_ids: Callable[[Sequence[object]], None] | None = None,
    label: str | None = None,
) -> Table:
    """Open one party's records.

    Parameters
    ----------
    source
        A path (``str`` or ``Path``) of a ``.csv``, ``.tsv``, ``.parquet`` or Arrow (``.arrow``, ``.feather``)
        file, or of a folder of Parquet files, read in the order of their names; or a two-dimensional NumPy
        array, a pandas DataFrame, a ``pyarrow.Table`` or ``RecordBatchReader``, or any object with
        ``__arrow_c_stream__`` (a Polars frame).
    columns
        The job's columns with their public bounds. Other columns of the table are ignored. An array has no
        names, so it must have exactly these columns.
    bounds
        The same as a mapping from names to ``(low, high)``, instead of ``columns``. One of the two is required.
    fixed_point
        The grid that records are rounded to.
    batch_rows
        Rows in a batch; by default 65,536, or fewer where these would take more than 16 MiB.
    match
        ``"order"``: the job's columns must stand in the table in the job's order. ``"name"``: in any order.
    delimiter
        Of a CSV file; by default a comma, or a tab for ``.tsv``.
    id_column
        The column of record IDs, for `Table.id_cells`; found by its name, at any position.
    memory_budget_bytes
        The largest encoded size at which a file is kept in memory between rounds; larger files are read again every
        time.
    may_be_empty
        Accept a table without records, as a differentially private job must: a refusal would reveal that it is empty.
    see_ids
        Told the IDs when the table is checked, instead of keeping them (`cloister.data.persons`).
    label
        What messages call this source; by default its path or kind.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        If the source cannot be read or lacks a column. Its cells are read by :meth:`Table.check`.
    MissingExtraError
        If a Parquet or Arrow file is given and ``pyarrow`` is not installed.
    """
    if columns is not None and bounds is not None:
        raise ConfigError("a table's columns must be given once; got both columns and bounds. Leave one out.")
    columns = parse_bounds(bounds) if columns is None else columns
    require_distinct(columns)
    chosen = _choose_source(source, tuple(columns), match, delimiter, id_column, label)
    return Table(
        chosen,
        columns,
        fixed_point=fixed_point,
        batch_rows=batch_rows,
        memory_budget_bytes=memory_budget_bytes,
        may_be_empty=may_be_empty,
        see_ids=see_ids,
    )


def read_ids(source: Any, id_column: str, *, label: str | None = None) -> list[object]:
    """Return the cells of one column as they are stored, and read no other; parameters as for :func:`open_table`.

    Rows come in the order, and with the omissions (blank lines of a CSV file), of :class:`Table`.

    Raises
    ------
    DataError
        If the table cannot be read or has no such column.
    """
    chosen = _choose_source(source, (), "name", None, id_column, label)
    faults, cells = Faults(()), list[object]()
    for _ in chosen.read(faults, BATCH_ROWS, cells):
        pass
    if faults:
        raise faults.to_error(chosen.label)
    return cells


def _choose_source(
    source: Any,
    columns: tuple[Column, ...],
    match: Match,
    delimiter: str | None,
    id_column: str | None,
    label: str | None,
) -> Source:
    """Return the source for what was given."""
    if isinstance(source, str | Path):
        return _choose_file(Path(source), columns, match, delimiter, id_column, label)
    if delimiter is not None:
        raise ConfigError(f"delimiter must be left out unless the source is a CSV file; got {delimiter!r}. Remove it.")
    if isinstance(source, np.ndarray) and id_column is None:
        return ArraySource(source, columns, label=label)
    pandas = sys.modules.get("pandas")  # anyone who has a DataFrame has imported it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return FrameSource(source, columns, match, id_column=id_column, label=label)
    if hasattr(source, "__arrow_c_stream__"):
        from cloister.data.arrow_source import ArrowSource  # noqa: PLC0415 (pyarrow is optional)

        return ArrowSource(source, columns, match, id_column=id_column, label=label)
    what, array = ("a table", "a NumPy array, ") if id_column is None else ("a table with IDs", "")
    raise DataError(
        f"{label or 'source'}: {what} must be a path, {array}a pandas DataFrame or an Arrow table; got "
        f"{type(source).__name__}. Convert it to one of these."
    )


def _choose_file(
    path: Path,
    columns: tuple[Column, ...],
    match: Match,
    delimiter: str | None,
    id_column: str | None,
    label: str | None,
) -> Source:
    """Return the source for a path, by its extension."""
    name = label or str(path)
    if not path.exists():
        raise DataError(f"{name}: the file must exist; nothing is there. Check the path.")
    suffix = path.suffix.lower()
    if not path.is_dir() and suffix in (".csv", ".tsv"):
        default = "\t" if suffix == ".tsv" else ","
        return CsvSource(
            path,
            columns,
            match,
            delimiter=default if delimiter is None else delimiter,
            id_column=id_column,
            label=name,
        )
    if delimiter is not None:
        raise ConfigError(f"delimiter must be left out unless the source is a CSV file; got {delimiter!r}. Remove it.")
    if path.is_dir() or suffix in (".parquet", ".pq", ".arrow", ".feather"):
        from cloister.data.arrow_source import ArrowFiles  # noqa: PLC0415 (pyarrow is optional)

        return ArrowFiles(path, columns, match, id_column=id_column, label=name)
    raise DataError(
        f"{name}: the file name must end in .csv, .tsv, .parquet, .pq, .arrow or .feather; got "
        f"{repr(suffix) if suffix else 'no extension'}. Rename the file after its format."
    )
