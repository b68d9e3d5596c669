"""Statistics of exact values and low bits: they see what means and variances do not.

Floating-point noise gives itself away in the last bits: x + noise can only be a double of the sum's precision, so which
doubles occur depends on x (Mironov 2012). Noise that is rounded coarsely, or missing, leaves exact values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.audit.scores import Statistic
from cloister.records import FloatArray

_MOST_VALUES = 64
_LOW_BITS = 3
_COLUMNS_TRIED = 64
_KEPT = 4
_EXPONENT_OF_ZERO = 1100.0  # above every double's: zero has no last bit


def fit_value_statistics(without: NDArray[Any], present: NDArray[Any], names: Sequence[str]) -> Iterator[Statistic]:
    """Score an entry with few distinct values by how much likelier its value was with the record."""
    found = []
    for entry in range(min(without.shape[1], _COLUMNS_TRIED)):
        if len(np.unique(without[:256, entry])) > _MOST_VALUES:
            continue  # quick look first: most released entries have many values
        values = np.unique(np.concatenate([without[:, entry], present[:, entry]]))
        if len(values) <= _MOST_VALUES:
            table, distance = _fit_table(without[:, entry], present[:, entry], values)
            found.append((distance, entry, values, table))
    for _, entry, values, table in _best(found):
        yield Statistic(words=f"exact value of {names[entry]}", score=_table_score(entry, values, table))


def fit_low_digit_statistics(without: NDArray[Any], present: NDArray[Any], names: Sequence[str]) -> Iterator[Statistic]:
    """Score an entry by its low bits, and by the exponent of its last set bit."""
    columns = range(min(without.shape[1], _COLUMNS_TRIED))
    if without.dtype.kind == "i":
        residues = np.arange(1 << _LOW_BITS)
        found = []
        for entry in columns:
            pair = (without[:, entry] & residues[-1], present[:, entry] & residues[-1])
            table, distance = _fit_table(*pair, residues)
            found.append((distance, entry, residues, table))
        for _, entry, values, table in _best(found):
            words = f"{names[entry]} modulo {1 << _LOW_BITS}"
            yield Statistic(words=words, score=_table_score(entry, values, table, mask=int(residues[-1])))
    shifts = []
    for entry in columns:
        a, b = last_bit_exponents(without[:, entry]), last_bit_exponents(present[:, entry])
        shifts.append((abs(float(b.mean() - a.mean())) / (float(a.std() + b.std()) or 1.0), entry))
    for shift, entry in sorted(shifts, reverse=True)[:_KEPT]:
        if shift > 0:
            yield Statistic(words=f"last binary digit of {names[entry]}", score=_last_bit_score(entry))


def last_bit_exponents(values: NDArray[Any]) -> FloatArray:
    """Return log2 of the lowest set bit of each number: 0 for 5, 2 for 12, -1 for 2.5."""
    if values.dtype.kind == "i":
        lowest = (values & -values).astype(np.float64)
        shift: Any = 0
    else:
        mantissas, exponents = np.frexp(values.astype(np.float64))
        whole = np.ldexp(mantissas, 53).astype(np.int64)  # exact: a double has 53 bits
        lowest = (whole & -whole).astype(np.float64)
        shift = exponents - 53
    with np.errstate(divide="ignore"):
        result = np.where(values == 0, _EXPONENT_OF_ZERO, np.log2(np.abs(lowest)) + shift)
    return np.asarray(result, dtype=np.float64)


def _fit_table(a: NDArray[Any], b: NDArray[Any], values: NDArray[Any]) -> tuple[FloatArray, float]:
    """Return each value's smoothed log frequency ratio, and the total variation distance."""
    count_a, count_b = (np.bincount(np.searchsorted(values, part), minlength=len(values)) for part in (a, b))
    table = np.log((count_b + 0.5) / (count_a + 0.5))
    return table, float(np.abs(count_b / len(b) - count_a / len(a)).sum() / 2)


def _best(found: list[Any]) -> list[Any]:
    """Keep the few with the largest distance."""
    return sorted((item for item in found if item[0] > 0), key=lambda item: (-item[0], item[1]))[:_KEPT]


def _table_score(
    entry: int, values: NDArray[Any], table: FloatArray, *, mask: int | None = None
) -> Callable[[NDArray[Any]], FloatArray]:
    def score(outputs: NDArray[Any]) -> FloatArray:
        column = outputs[:, entry] if mask is None else outputs[:, entry] & mask
        places = np.minimum(np.searchsorted(values, column), len(values) - 1)
        return np.asarray(np.where(values[places] == column, table[places], 0.0), dtype=np.float64)

    return score


def _last_bit_score(entry: int) -> Callable[[NDArray[Any]], FloatArray]:
    def score(outputs: NDArray[Any]) -> FloatArray:
        return last_bit_exponents(outputs[:, entry])

    return score
