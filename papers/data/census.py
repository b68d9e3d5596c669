"""US census files as folktables keeps them, and the federated data sets of FedDP-KMeans made from them (appendix G.1).

Folktables (Ding, Hardt, Miller and Schmidt 2021) downloads the Census Bureau's 2018 one-year person files, one for each
state: ``ACSDataSource(survey_year="2018", horizon="1-Year", survey="person").get_data(download=True)`` leaves
``data/2018/1-Year/psam_p01.csv`` and 50 more, 50 states and Puerto Rico. Those files are read here, nothing else is
needed.

Who counts is folktables' ``ACSIncome``: older than 16, income above 100, hours and weight of at least 1. A record is
made of indicators: one column for each code that occurs in ``SCHL, MAR, OCCP, POBP, RELP, SEX, RAC1P``, so that every
record has seven ones and the norm sqrt(7) = 2.65, as the paper's Table 1 has it. Age and hours are no binary features,
and the employment type (``COW``) is what clients are chosen by; both are left out, which that radius implies. The paper
counts 819 columns.

A client is a state. All clients hold people of one employment type; the server holds 20 of that type, who are then no
client's, and 1000 of other types.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from cloister.columns import Column
from cloister.crypto import Stream
from cloister.data.csv_source import CsvSource
from cloister.data.faults import Faults
from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray, IntArray
from papers.data.partition import FederatedPoints, draw_rows, split_by_owner

Employment = Literal["not-for-profit", "federal", "self-employed"]

EMPLOYMENT_CODES: dict[Employment, int] = {"not-for-profit": 2, "federal": 5, "self-employed": 6}
"""The codes of ``COW`` that the paper makes data sets of."""
FEATURES = ("SCHL", "MAR", "OCCP", "POBP", "RELP", "SEX", "RAC1P")
"""What a record's indicators are made from."""
SERVER_SAME, SERVER_OTHER = 20, 1000

_LEAST = {"AGEP": 17.0, "PINCP": 100.5, "WKHP": 1.0, "PWGTP": 1.0}
"""ACSIncome's filter; all of these are whole numbers."""
_TYPE = "COW"
_READ_ROWS = 1 << 14
_YEAR, _HORIZON = "2018", "1-Year"
_CODE_MOST = 1 << 20


def load_census(
    folder: Path,
    employment: Employment,
    stream: Stream,
    *,
    server_same: int = SERVER_SAME,
    server_other: int = SERVER_OTHER,
) -> FederatedPoints:
    """Read every state's file and deal the people of one employment type out to their states.

    Parameters
    ----------
    folder
        Holds the files ``psam_pNN.csv``, or is the folder that folktables was given (with ``2018/1-Year`` in it).
    employment
        Whom clients hold.
    stream
        Draws who is at the server.
    server_same, server_other
        How many of that type, and of other types, the server holds.

    Returns
    -------
    FederatedPoints
        Indicators as 0 and 1. The largest of the paper's sets takes 0.8 GB.

    Raises
    ------
    ConfigError
        If the employment type is not one of the three.
    DataError
        If there are no files, a file is broken or of another year, or there are too few people.
    """
    if employment not in EMPLOYMENT_CODES:
        raise ConfigError(f"employment must be one of {', '.join(EMPLOYMENT_CODES)}; got {employment!r}.")
    states = [_read_state(path) for path in find_state_files(folder)]
    rows = np.concatenate(states)
    owners = np.repeat(np.arange(len(states), dtype=np.int64), [len(state) for state in states])
    kinds, codes = rows[:, 0], rows[:, 1:]
    own = np.flatnonzero(kinds == EMPLOYMENT_CODES[employment])
    known = np.flatnonzero((kinds > 0) & (kinds != EMPLOYMENT_CODES[employment]))
    inside = draw_rows(stream.child("same"), own, server_same, f"of the employment type {employment}")
    outside = draw_rows(stream.child("other"), known, server_other, "of other employment types")
    held = np.setdiff1d(own, inside, assume_unique=True)
    values = [np.unique(codes[:, feature]) for feature in range(len(FEATURES))]
    return FederatedPoints(
        points=_mark_codes(codes[held], values),
        clients=split_by_owner(owners[held]),
        server_points=_mark_codes(codes[np.concatenate([inside, outside])], values),
        names=tuple(f"{name}={code}" for name, each in zip(FEATURES, values, strict=True) for code in each),
    )


def find_state_files(folder: Path) -> tuple[Path, ...]:
    """Return the person files of a folder, or of folktables' folder for 2018 in it, in the order of their states.

    Raises
    ------
    DataError
        If there are none.
    """
    for place in (folder, folder / _YEAR / _HORIZON):
        if paths := tuple(sorted(place.glob("psam_p[0-9][0-9].csv"))):
            return paths
    raise DataError(
        f"{folder} must hold folktables' files psam_pNN.csv, or {_YEAR}/{_HORIZON} with them; it holds none. "
        f'Fetch them: ACSDataSource("{_YEAR}", "{_HORIZON}", "person").get_data(download=True).'
    )


def _read_state(path: Path) -> IntArray:
    """Return the employment type and the codes of everyone in one file who passes ACSIncome's filter."""
    wanted = (*_LEAST, _TYPE, *FEATURES)
    columns = [Column(name=name, low=0, high=1) for name in wanted]
    faults = Faults(columns, missing="impute")
    kept = []
    for chunk in CsvSource(path, columns, "name").read(faults, _READ_ROWS):
        passes = (chunk[:, : len(_LEAST)] >= list(_LEAST.values())).all(axis=1)  # an empty cell is NaN: it does not
        kept.append(np.nan_to_num(chunk[passes, len(_LEAST) :]))  # code 0: not applicable, as folktables has it
    if faults:
        raise faults.to_error(str(path))
    codes = np.concatenate(kept) if kept else np.empty((0, 1 + len(FEATURES)))
    if not ((codes == np.floor(codes)) & (codes >= 0) & (codes < _CODE_MOST)).all():
        raise DataError(f"{path}: codes must be whole numbers from 0; some are not. Use the Census Bureau's own file.")
    return codes.astype(np.int64)


def _mark_codes(codes: IntArray, values: Sequence[IntArray]) -> FloatArray:
    """Return one column for each value of each feature: 1 where a record has it."""
    starts = np.concatenate([[0], np.cumsum([len(each) for each in values])])
    points = np.zeros((len(codes), int(starts[-1])))
    rows = np.arange(len(codes))
    for feature, each in enumerate(values):
        points[rows, starts[feature] + np.searchsorted(each, codes[:, feature])] = 1.0
    return points
