"""What a table reads from: sources of raw values, how the job's columns are found in them, and sources in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.columns import Column
from cloister.data.cells import read_array
from cloister.data.faults import Faults, count_of
from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray

Match = Literal["order", "name"]


class Source(Protocol):
    """One party's raw records, in original units and in the job's column order."""

    @property
    def label(self) -> str:
        """What messages call this source: a path, or the kind of object."""

    @property
    def in_memory(self) -> bool:
        """Whether the records are already in memory; the encoded ones are then kept whatever their size."""

    @property
    def read_once(self) -> bool:
        """Whether a second reading is impossible."""

    @property
    def id_column(self) -> str | None:
        """The column of record IDs, if it is to be read."""

    def read(self, faults: Faults, most_rows: int, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield (n, columns) arrays of at most ``most_rows`` rows; unusable and missing cells are NaN.

        Each begins a chunk of ``faults``. The same rows' cells in the ID column are appended to ``id_cells`` as they
        are stored, before the array is yielded.
        """


def find_columns(header: Sequence[Any], columns: Sequence[Column], match: Match, label: str) -> tuple[int, ...]:
    """Return the position of each of the job's columns in a header.

    Only the job's own names are ever shown: the first line of a file may be a record.
    """
    if match not in ("order", "name"):
        raise ConfigError(f'match must be "order" or "name"; got {match!r}. Use match = "name".')
    names = [column.name for column in columns]
    counts = Counter(name for name in header if isinstance(name, str))
    missing = [name for name in names if not counts[name]]
    if missing:
        numbers = sum(_is_number(name) for name in header)
        hint = (
            "Its first line has one cell: if another sign separates the cells, name it as separator beside data."
            if len(header) == 1 and len(names) > 1
            else f"{numbers} of them are numbers: if the first line is a record, add a header."
            if numbers
            else "Names are compared letter by letter."
        )
        raise DataError(
            f"{label}: the table must have the job's columns {_listed(names)}; {_listed(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not among its {count_of(len(header), 'column')}. {hint}"
        )
    twice = [name for name in names if counts[name] > 1]
    if twice:
        raise DataError(
            f"{label}: each of the job's columns must occur once in the table; got "
            f"{', '.join(f'{name!r} {counts[name]} times' for name in twice)}. Rename or drop the others."
        )
    positions = tuple(header.index(name) for name in names)
    if match == "order" and list(positions) != sorted(positions):
        found = [name for _, name in sorted(zip(positions, names, strict=True))]
        raise DataError(
            f"{label}: the job's columns must be in the job's order {_listed(names)}; found "
            f'{_listed(found)}. Reorder them, or use match = "name", which takes columns by name.'
        )
    return positions


def find_id_column(header: Sequence[Any], id_column: str, label: str) -> int:
    """Return the position of the column of record IDs in a header."""
    return find_columns(header, (Column(name=id_column, low=0.0, high=1.0),), "name", label)[0]  # bounds are not used


def _listed(names: Sequence[str]) -> str:
    """Return the names in quotes, with commas."""
    return ", ".join(repr(name) for name in names)


def _is_number(name: Any) -> bool:
    """Return whether a header cell reads as a number."""
    try:
        float(name)
    except (TypeError, ValueError):
        return False
    return True


class ArraySource:
    """A two-dimensional NumPy array. It has no names, so it must hold the job's columns and nothing else."""

    in_memory = True
    read_once = False
    id_column = None

    def __init__(self, array: NDArray[Any], columns: Sequence[Column], *, label: str | None = None) -> None:
        self.label = label or "NumPy array"
        if array.dtype.names is not None or array.ndim != 2 or array.shape[1] != len(columns):
            shape = "structured" if array.dtype.names is not None else f"of shape {array.shape}"
            raise DataError(
                f"{self.label}: an array has no column names, so it must be two-dimensional with exactly the "
                f"job's {len(columns)} columns; got one {shape}. "
                f"Select the columns, or give a table with names."
            )
        self._array = array
        self._columns = tuple(columns)

    def read(self, faults: Faults, most_rows: int, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield raw values in chunks; see :class:`Source`."""
        for start in range(0, len(self._array), most_rows):
            chunk = self._array[start : start + most_rows]
            # A masked array has data under its mask, but masked cells count as empty.
            empty = np.ma.getmaskarray(chunk) if isinstance(chunk, np.ma.MaskedArray) else None
            cells = np.asarray(chunk)
            values = np.empty(cells.shape)
            faults.begin(len(cells))
            for place, column in enumerate(self._columns):
                mask = None if empty is None else empty[:, place]
                values[:, place] = read_array(cells[:, place], column, place, faults, empty=mask)
            yield values


class FrameSource:
    """A pandas DataFrame, with NumPy or nullable column types."""

    in_memory = True
    read_once = False

    def __init__(
        self,
        frame: Any,
        columns: Sequence[Column],
        match: Match,
        *,
        id_column: str | None = None,
        label: str | None = None,
    ) -> None:
        self.label = label or "pandas DataFrame"
        self.id_column = id_column
        self._frame = frame
        self._columns = tuple(columns)
        header = list(frame.columns)
        self._positions = find_columns(header, columns, match, self.label)
        self._id_position = None if id_column is None else find_id_column(header, id_column, self.label)

    def read(self, faults: Faults, most_rows: int, id_cells: list[object] | None = None) -> Iterator[FloatArray]:
        """Yield raw values in chunks; see :class:`Source`."""
        for start in range(0, len(self._frame), most_rows):
            chunk = self._frame.iloc[start : start + most_rows]
            if id_cells is not None and self._id_position is not None:
                id_cells += chunk.iloc[:, self._id_position].tolist()
            values = np.empty((len(chunk), len(self._positions)))
            faults.begin(len(chunk))
            for place, (column, position) in enumerate(zip(self._columns, self._positions, strict=True)):
                values[:, place] = _read_series(chunk.iloc[:, position], column, place, faults)
            yield values


def _read_series(series: Any, column: Column, place: int, faults: Faults) -> FloatArray:
    """Read one column of a frame."""
    if isinstance(series.dtype, np.dtype):
        return read_array(series.to_numpy(), column, place, faults)
    # Nullable types keep their numbers in a NumPy array and a mask of missing cells beside it.
    inner = getattr(series.dtype, "numpy_dtype", None)
    if inner is None or inner.kind not in "iufb":
        return read_array(series.to_numpy(dtype=object), column, place, faults)
    empty = series.isna().to_numpy(dtype=np.bool_)
    return read_array(series.to_numpy(dtype=inner, na_value=inner.type(0)), column, place, faults, empty=empty)
