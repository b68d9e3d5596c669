"""Records that are in memory: a NumPy array or a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.columns import Column
from cloister.data.cells import convert_array
from cloister.data.faults import Faults
from cloister.data.source import Match, find_columns
from cloister.errors import DataError
from cloister.records import FloatArray


class ArraySource:
    """A two-dimensional NumPy array. It has no names, so it must hold the job's columns and nothing else."""

    in_memory = True
    read_once = False

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

    def read(self, faults: Faults, most_rows: int) -> Iterator[FloatArray]:
        """Yield raw values in chunks; see :class:`cloister.data.source.Source`."""
        rows, width = self._array.shape
        for start in range(0, rows, most_rows):
            chunk = self._array[start : start + most_rows]
            # A masked array's data lies under its mask; masked cells hold nothing.
            empty = np.ma.getmaskarray(chunk) if isinstance(chunk, np.ma.MaskedArray) else None
            cells = np.asarray(chunk)
            values = np.empty(cells.shape)
            for column in range(width):
                mask = None if empty is None else empty[:, column]
                values[:, column] = convert_array(cells[:, column], column, faults, empty=mask)
            yield values


class FrameSource:
    """A pandas DataFrame, with NumPy or nullable column types."""

    in_memory = True
    read_once = False

    def __init__(self, frame: Any, columns: Sequence[Column], match: Match, *, label: str | None = None) -> None:
        self.label = label or "pandas DataFrame"
        self._frame = frame
        self._positions = find_columns(list(frame.columns), columns, match, self.label)

    def read(self, faults: Faults, most_rows: int) -> Iterator[FloatArray]:
        """Yield raw values in chunks; see :class:`cloister.data.source.Source`."""
        for start in range(0, len(self._frame), most_rows):
            chunk = self._frame.iloc[start : start + most_rows]
            values = np.empty((len(chunk), len(self._positions)))
            for column, position in enumerate(self._positions):
                values[:, column] = _convert_series(chunk.iloc[:, position], column, faults)
            yield values


def _convert_series(series: Any, column: int, faults: Faults) -> FloatArray:
    """Read one column of a frame."""
    if isinstance(series.dtype, np.dtype):
        return convert_array(series.to_numpy(), column, faults)
    # Nullable types keep their numbers in a NumPy type and mark what is missing beside them.
    inner = getattr(series.dtype, "numpy_dtype", None)
    if inner is None or inner.kind not in "iufb":
        return convert_array(series.to_numpy(dtype=object), column, faults)
    empty = series.isna().to_numpy(dtype=np.bool_)
    return convert_array(series.to_numpy(dtype=inner, na_value=inner.type(0)), column, faults, empty=empty)
