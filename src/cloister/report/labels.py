"""Labels: of new records, by the centres of a result; and of one party's own records, in a file for it alone.

Labels are not part of a result: every party may see a result, but labels are as private as the records.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.columns import to_unit
from cloister.data import Table, open_table
from cloister.errors import ConfigError, DataError
from cloister.numeric import FixedPoint
from cloister.records import IntArray
from cloister.report.result import Result

LABEL = "label"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
_PREFIX, _SUFFIX = "labels-", ".csv"
_OWNER_ONLY = 0o600


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Records that are ready to be labelled.

    Attributes
    ----------
    records
        How many.
    clipped
        For each column, how many cells were outside the public bounds and were moved onto them.
    ids
        The ID of each record, as it is in the table; None if no column was named.
    """

    result: Result
    table: Table
    records: int
    clipped: tuple[int, ...]
    ids: Sequence[object] | None = field(default=None, repr=False)

    def labels(self) -> Iterator[NDArray[np.int32]]:
        """Yield labels in batches, in the order of the records; a label is a row of the result's centres."""
        from cloister.kmeans import fill_from_centres, nearest  # noqa: PLC0415 (numba takes a second to load)

        centres = to_unit(self.result.centres, self.result.coordinates)
        first = 1
        for points in self.table.batches():
            empty = np.isnan(points).all(axis=1)
            if empty.any():
                where = f"row {first + int(empty.argmax())}"
                raise DataError(f"{self.table.label}: a row must have a cell; {where} has none. Remove it.")
            first += len(points)
            yield nearest(fill_from_centres(points, centres), centres).labels

    def all_labels(self) -> NDArray[np.int32]:
        """Return all labels at once."""
        return np.concatenate([np.empty(0, dtype=np.int32), *self.labels()])


def predict(result: Result, source: Any, *, id_column: str | None = None, decimal: str | None = None) -> Prediction:
    """Open and check a table whose records are to be labelled.

    Parameters
    ----------
    result
        From ``simulate`` or ``read_result``. Labelling happens where the records are: nothing is sent.
    source
        A path or an object in memory, as for ``open_table``. Columns are found by name. A record with missing cells
        goes to the centre that is nearest by the others.
    id_column
        The column of IDs, to be kept beside the labels.
    decimal
        What stands before decimals in a CSV file.

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
    table = open_table(
        source,
        result.columns,
        coordinates=result.coordinates,
        fixed_point=grid,
        missing="impute",
        decimal=decimal,
        id_column=id_column,
    )
    check = table.check()
    ids = None if id_column is None else table.id_cells
    return Prediction(result=result, table=table, records=check.records, clipped=check.clipped, ids=ids)


def append_labels(table: Path, labels: Iterable[int]) -> Iterator[list[str]]:
    """Yield the rows of a CSV or TSV file with their labels in a last column, the header first.

    Raises
    ------
    ConfigError
        If it is another file, or has such a column already.
    """
    delimiter = DELIMITERS.get(table.suffix.lower())
    if delimiter is None:
        raise ConfigError(f"--append takes a .csv or .tsv file; got {table.name}. Use --id, and join the two by ID.")
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = filter(None, csv.reader(file, delimiter=delimiter))  # blank lines are no records
        header = next(rows)
        if LABEL in (name.strip() for name in header):
            raise ConfigError(f"--append adds a column {LABEL!r}; {table.name} has one. Rename it, or use --id.")
        yield [*header, LABEL]
        for row, label in zip(rows, labels, strict=True):
            yield [*row, str(label)]


@dataclass(frozen=True, kw_only=True, eq=False)
class PartyLabels:
    """The labels that one party receives.

    Attributes
    ----------
    party
        Its name.
    key_name
        What the first column is called: the job's column of IDs, or "row".
    keys
        The ID of each record as it is in the party's table, or its row number, from 1; in the order of the table.
    labels
        The cluster of each record: a row of the result's centres, from 0.
    """

    party: str
    key_name: str
    keys: Sequence[object] = field(repr=False)
    labels: IntArray = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.labels):
            raise ConfigError(f"each label must come with a key; got {len(self.labels)} labels, {len(self.keys)} keys.")

    @property
    def file_name(self) -> str:
        """The name of their file."""
        return _name_file(self.party)


def is_labels_file(name: str) -> bool:
    """Return whether a file in a result folder holds labels."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def check_label_folder(folder: Path, parties: Sequence[str], *, overwrite: bool) -> None:
    """Refuse a folder that labels cannot be written to; called before a session, so that none runs in vain.

    Raises
    ------
    ConfigError
        If it is a file, cannot be written to, or already holds such labels and these may not be replaced.
    """
    folder = folder.resolve()
    there = [name for name in map(_name_file, parties) if (folder / name).exists()]
    if there and not overwrite:
        raise ConfigError(
            f"labels must go to a new file; got {folder / there[0]}, which exists. Choose another folder, or replace "
            "it with --overwrite (overwrite=True)."
        )
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".labels-", dir=folder):
            pass  # what can be created there now can usually be created after the session
        if not existed:
            folder.rmdir()  # a session that is refused leaves nothing behind
    except OSError as error:
        raise _describe_refusal(folder, error) from None


def write_label_folder(labels: Sequence[PartyLabels], folder: Path, *, overwrite: bool) -> list[Path]:
    """Write each party's labels into a folder; a file appears whole or not at all. Return the paths.

    Raises
    ------
    ConfigError
        As :func:`check_label_folder`.
    """
    folder = folder.resolve()
    check_label_folder(folder, [own.party for own in labels], overwrite=overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".labels-", dir=folder) as workshop:
            return [write_labels(own, Path(workshop)).replace(folder / own.file_name) for own in labels]
    except OSError as error:
        raise _describe_refusal(folder, error) from None


def _describe_refusal(folder: Path, error: OSError) -> ConfigError:
    reason = error.strerror or type(error).__name__
    return ConfigError(f"labels must go to a folder that can be written to; got {folder}: {reason}. Choose another.")


def _name_file(party: str) -> str:
    return f"{_PREFIX}{party}{_SUFFIX}"


def write_labels(labels: PartyLabels, folder: Path) -> Path:
    """Write labels-PARTY.csv, mode 0600 from its first byte on.

    Raises
    ------
    OSError
        If the file already exists or cannot be written.
    """
    path = folder / labels.file_name
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w", encoding="utf-8", newline=""
    ) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([labels.key_name, LABEL])
        writer.writerows(zip(labels.keys, labels.labels.tolist(), strict=True))
    return path
