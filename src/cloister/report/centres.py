"""Centres as people read them: numbers and dates in their units, and of categories the shares of their levels.

A centre's block of level coordinates holds shares with noise, so it is projected to the shares that are nearest: none
negative, and all together 1, or at most 1 where values may be none of the levels. What is left is shown as "other".
This is postprocessing, of a released centre alone.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from cloister.columns import OTHER, Column, column_slices, show_date
from cloister.records import FloatArray
from cloister.report.layout import format_percent, format_value
from cloister.report.result import Result


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelShares:
    """How often each level of a category occurs in each cluster.

    Attributes
    ----------
    column
        The category's name.
    levels
        Its levels; with "other" where values may be none of the others.
    shares, noise
        (k, levels): from 0 to 1, with the standard deviation of the noise, or None where that is not known.
    """

    column: str
    levels: tuple[str, ...]
    shares: FloatArray
    noise: FloatArray | None

    @property
    def common(self) -> tuple[int, ...]:
        """The position of each cluster's most common level."""
        return tuple(np.argmax(self.shares, axis=1).tolist())


def find_shares(result: Result) -> dict[str, LevelShares]:
    """Return the shares of the levels of each category."""
    return {
        column.name: _find_shares(result, column, place)
        for column, place in zip(result.columns, column_slices(result.columns), strict=True)
        if column.kind == "category"
    }


def _find_shares(result: Result, column: Column, place: slice) -> LevelShares:
    block = result.centres[:, place]
    noise = None if result.centre_noise is None else result.centre_noise[:, place]
    levels = column.levels
    if len(levels) == 2:
        second = np.clip(block[:, 0], 0.0, 1.0)
        shares = np.column_stack([1.0 - second, second])
        noise = None if noise is None else np.repeat(noise, 2, axis=1)
        return LevelShares(column=column.name, levels=levels, shares=shares, noise=noise)
    shares = np.array([project_shares(row, whole=OTHER in levels) for row in block])
    if OTHER not in levels:
        levels = (*levels, OTHER)
        shares = np.column_stack([shares, 1.0 - shares.sum(axis=1)])
        if noise is not None:
            noise = np.column_stack([noise, np.sqrt((noise**2).sum(axis=1))])
    return LevelShares(column=column.name, levels=levels, shares=shares, noise=noise)


def project_shares(numbers: FloatArray, *, whole: bool) -> FloatArray:
    """Return the nearest numbers that are not negative and add up to 1, or, unless ``whole``, to at most 1."""
    kept = np.maximum(numbers, 0.0)
    if not whole and kept.sum() <= 1.0:
        return kept
    # Onto the simplex: all numbers less the one constant that leaves a sum of 1 (Held, Wolfe and Crowder 1974).
    falling = np.sort(numbers)[::-1]
    surplus = (np.cumsum(falling) - 1.0) / np.arange(1, len(falling) + 1)
    shares: FloatArray = np.maximum(numbers - surplus[np.flatnonzero(falling > surplus)[-1]], 0.0)
    return shares


def format_cells(result: Result) -> list[list[str]]:
    """Return each cluster's row, a cell for each column; of a category, the most common level and its share."""
    shares = find_shares(result)
    axes, rows = result.coordinates, []
    for j in range(result.k):
        row = []
        for column, place in zip(result.columns, column_slices(result.columns), strict=True):
            if column.kind == "category":
                own = shares[column.name]
                row.append(format_share(own, j, own.common[j], named=True))
                continue
            noise = None if result.centre_noise is None else float(result.centre_noise[j, place.start])
            row.append(format_value(float(result.centres[j, place.start]), axes[place.start], noise))
        rows.append(row)
    return rows


def format_share(own: LevelShares, cluster: int, level: int, *, named: bool = False) -> str:
    """Return one level's share in per cent, after its name if that is wanted."""
    noise = None if own.noise is None else float(own.noise[cluster, level])
    text = format_percent(float(own.shares[cluster, level]), noise)
    return f"{own.levels[level]} {text}" if named else text


def encode_table(result: Result) -> bytes:
    """Return centres.csv: a row for each cluster."""
    rows = list_rows(result)
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def list_rows(result: Result) -> list[dict[str, object]]:
    """Return each cluster's number, size and centre, with dates as dates and a share for each level.

    Where it is known, the standard deviation of the noise in each number stands beside it, under its name and "noise".
    A name that a column of the job has is the column's: what else would have it gets a line behind it.
    """
    shares, taken = find_shares(result), {column.name for column in result.columns}
    rows: list[dict[str, object]] = [{_avoid("cluster", taken): j} for j in range(result.k)]
    for j, row in enumerate(rows):
        if result.sizes is not None:
            size, noise = result.sizes.clusters[j], result.sizes.noise[j]
            row.update({_avoid("size", taken): size, _avoid("size noise", taken): noise})
        for column, place in zip(result.columns, column_slices(result.columns), strict=True):
            own = shares.get(column.name)
            cells = _list_value(result, column, place.start, j) if own is None else _list_levels(own, j)
            row.update({name if name == column.name else _avoid(name, taken): cell for name, cell in cells.items()})
    return rows


def _avoid(name: str, taken: set[str]) -> str:
    """Return a name that no column of the job has."""
    return name if name not in taken else _avoid(name + "_", taken)


def _list_levels(own: LevelShares, cluster: int) -> dict[str, object]:
    """Return the most common level of a category, and the share of each."""
    row: dict[str, object] = {own.column: own.levels[own.common[cluster]]}
    for place, level in enumerate(own.levels):
        row[f"{own.column}={level}"] = round(float(own.shares[cluster, place]), 6)
        if own.noise is not None:
            row[f"{own.column}={level} noise"] = _round_noise(float(own.noise[cluster, place]))
    return row


def _list_value(result: Result, column: Column, axis: int, cluster: int) -> dict[str, object]:
    """Return the value of a column with one coordinate."""
    value = float(result.centres[cluster, axis])
    shown: object = value
    if column.kind == "date":
        shown = show_date(value)
    elif column.kind == "boolean":
        shown = round(min(max(value, 0.0), 1.0), 6)
    row = {column.name: shown}
    if result.centre_noise is not None:
        row[f"{column.name} noise"] = _round_noise(float(result.centre_noise[cluster, axis]))
    return row


def _round_noise(noise: float) -> float:
    """Two digits are all that a deviation has."""
    return float(f"{noise:.2g}")
