"""The one way to open a table: look at what was given and choose the source that reads it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cloister.columns import Column, Coordinate, parse_bounds, require_distinct
from cloister.data.csv_source import CsvSource
from cloister.data.faults import Faults, Missing
from cloister.data.source import ArraySource, FrameSource, Match, Source
from cloister.data.table import BATCH_ROWS, MEMORY_BUDGET_BYTES, Table
from cloister.errors import ConfigError, DataError
from cloister.numeric import FixedPoint
from cloister.records import FloatArray

_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ARROW = (".parquet", ".pq", ".arrow", ".feather")


def open_table(
    source: Any,
    columns: Sequence[Column] | None = None,
    *,
    bounds: Mapping[str, Any] | None = None,
    coordinates: Sequence[Coordinate] | None = None,
    fixed_point: FixedPoint = FixedPoint(),  # noqa: B008 (frozen)
    batch_rows: int | None = None,
    match: Match = "name",
    separator: str | None = None,
    decimal: str | None = None,
    id_column: str | None = None,
    missing: Missing = "refuse",
    memory_budget_bytes: int = MEMORY_BUDGET_BYTES,
    may_be_empty: bool = False,
    see_ids: Callable[[Sequence[object]], None] | None = None,
    label: str | None = None,
) -> Table:
    """Open one party's records.

    Parameters
    ----------
    source
        A path (``str`` or ``Path``) of a ``.csv``, ``.tsv`` (or either with ``.gz``), ``.parquet`` or Arrow
        (``.arrow``, ``.feather``) file, or of a folder of Parquet files, read in the order of their names; or a
        two-dimensional NumPy array, a pandas DataFrame, a ``pyarrow.Table`` or ``RecordBatchReader``, or any object
        with ``__arrow_c_stream__`` (a Polars frame).
    columns
        The job's columns with their public bounds. Other columns of the table are ignored. An array has no
        names, so it must have exactly these columns.
    bounds
        The same as a mapping from names to ``(low, high)``, instead of ``columns``. One of the two is required.
    coordinates
        Of a job with more columns than these: those of these columns, which know the greatest weight of all.
    fixed_point
        The grid that records are rounded to.
    batch_rows
        Rows in a batch; by default 65,536, or fewer where these would take more than 16 MiB.
    match
        ``"name"``: the job's columns stand anywhere in the table. ``"order"``: in the job's order, too.
    separator, decimal
        Of a CSV file: what separates cells, by default whichever of ``,``, ``;``, tab and ``|`` finds the columns in
        the header; and what stands before decimals, by default a point.
    id_column
        The column of record IDs, for `Table.id_cells`; found by its name, at any position.
    missing
        What becomes of a record with a missing cell: ``"refuse"`` refuses the table, ``"drop"`` leaves out the record,
        ``"impute"`` keeps it with NaN in its coordinates.
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
    wanted = _Wanted(columns=tuple(columns), match=match, id_column=id_column, separator=separator, decimal=decimal)
    chosen = _choose_source(source, wanted, label)
    return Table(
        chosen,
        columns,
        coordinates=coordinates,
        fixed_point=fixed_point,
        batch_rows=batch_rows,
        memory_budget_bytes=memory_budget_bytes,
        missing=missing,
        may_be_empty=may_be_empty,
        see_ids=see_ids,
    )


def open_points(
    points: FloatArray, coordinates: Sequence[Coordinate], *, fixed_point: FixedPoint, label: str | None = None
) -> Table:
    """Return made-up records, given as coordinates in original units, (n, d), as a table that has been checked."""
    columns = [Column(name=axis.name, low=axis.low, high=axis.high) for axis in coordinates]
    table = open_table(points, columns, coordinates=coordinates, fixed_point=fixed_point, label=label)
    table.check()
    return table


def read_ids(source: Any, id_column: str, *, separator: str | None = None, label: str | None = None) -> list[object]:
    """Return the cells of one column as they are stored, and read no other; parameters as for :func:`open_table`.

    Rows come in the order, and with the omissions (blank lines of a CSV file), of :class:`Table`.

    Raises
    ------
    DataError
        If the table cannot be read or has no such column.
    """
    wanted = _Wanted(columns=(), match="name", id_column=id_column, separator=separator)
    chosen = _choose_source(source, wanted, label)
    faults, cells = Faults(()), list[object]()
    for _ in chosen.read(faults, BATCH_ROWS, cells):
        pass
    if faults:
        raise faults.to_error(chosen.label)
    return cells


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What is to be read, and how."""

    columns: tuple[Column, ...]
    match: Match
    id_column: str | None
    separator: str | None = None
    decimal: str | None = None


def _choose_source(source: Any, wanted: _Wanted, label: str | None) -> Source:
    """Return the source for what was given."""
    if isinstance(source, str | Path):
        return _choose_file(Path(source), wanted, label or str(source))
    _refuse_dialect(wanted)
    if isinstance(source, np.ndarray) and wanted.id_column is None:
        return ArraySource(source, wanted.columns, label=label)
    pandas = sys.modules.get("pandas")  # anyone who has a DataFrame has imported it
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return FrameSource(source, wanted.columns, wanted.match, id_column=wanted.id_column, label=label)
    if hasattr(source, "__arrow_c_stream__"):
        from cloister.data.arrow_source import ArrowSource  # noqa: PLC0415 (pyarrow is optional)

        return ArrowSource(source, wanted.columns, wanted.match, id_column=wanted.id_column, label=label)
    what, array = ("a table", "a NumPy array, ") if wanted.id_column is None else ("a table with IDs", "")
    raise DataError(
        f"{label or 'source'}: {what} must be a path, {array}a pandas or polars DataFrame or an Arrow table; got "
        f"{type(source).__name__}. Convert it to one of these."
    )


def is_text(path: Path) -> bool:
    """Return whether a path is of a CSV or TSV file, packed or not."""
    return path.name.lower().endswith(_TEXT) and not path.is_dir()


def _choose_file(path: Path, wanted: _Wanted, label: str) -> Source:
    """Return the source for a path, by its extension."""
    if not path.exists():
        raise DataError(f"{label}: the file must exist; nothing is there. Check the path.")
    if is_text(path):
        tabs = path.name.lower().endswith((".tsv", ".tsv.gz"))
        return CsvSource(
            path,
            wanted.columns,
            wanted.match,
            separator="\t" if tabs and wanted.separator is None else wanted.separator,
            decimal=wanted.decimal or ".",
            id_column=wanted.id_column,
            label=label,
        )
    _refuse_dialect(wanted)
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in _ARROW:
        from cloister.data.arrow_source import ArrowFiles  # noqa: PLC0415 (pyarrow is optional)

        return ArrowFiles(path, wanted.columns, wanted.match, id_column=wanted.id_column, label=label)
    raise DataError(
        f"{label}: the file name must end in {', '.join((*_TEXT, *_ARROW[:-1]))} or {_ARROW[-1]}; got "
        f"{repr(suffix) if suffix else 'no extension'}. Rename the file after its format."
    )


def _refuse_dialect(wanted: _Wanted) -> None:
    """Refuse keys of a CSV file for what is none."""
    for key in ("separator", "decimal"):
        if getattr(wanted, key) is not None:
            got = repr(getattr(wanted, key))
            raise ConfigError(f"{key} must be left out unless the table is a CSV file; got {got}. Remove it.")
