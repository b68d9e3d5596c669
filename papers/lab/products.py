"""What an artefact leaves behind: a table as CSV, a picture where the paper has one, and a summary to print."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from scipy.stats import t as student

from cloister.errors import ConfigError
from cloister.report import layout

Value = str | int | float | None
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean and the half-width of its 95 % interval (Student's t); nan where there are too few values."""

    mean: float
    half_width: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Estimate from any number of values."""
        if not values:
            return cls(mean=math.nan, half_width=math.nan)
        if len(values) == 1:
            return cls(mean=float(values[0]), half_width=math.nan)
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(mean=float(np.mean(values)), half_width=float(student.ppf(0.975, len(values) - 1)) * error)

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """Return what is known without error."""
        return cls(mean=value, half_width=0.0)

    def times(self, factor: float) -> Estimate:
        """Return the same in another unit."""
        return Estimate(mean=factor * self.mean, half_width=factor * self.half_width)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Named columns and rows of values; None for what is not known."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    words: int = 1
    """How many of the first columns hold words."""

    @classmethod
    def of(cls, items: Iterable[Item], columns: Mapping[str, Callable[[Item], Value]], *, words: int = 1) -> Table:
        """Make one row of each item: the value that each column takes from it."""
        rows = tuple(tuple(take(item) for take in columns.values()) for item in items)
        return cls(columns=tuple(columns), rows=rows, words=words)


@dataclass(frozen=True, kw_only=True)
class Product:
    """One artefact, made."""

    table: Table
    """Everything, for the CSV file."""
    summary: Table
    """Ours beside what is printed, for people."""
    notes: tuple[str, ...] = ()
    picture: bytes | None = field(default=None, repr=False)


def write_product(name: str, product: Product, folder: Path) -> tuple[Path, ...]:
    """Write the CSV file, and the picture beside it; each appears whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(product.table.columns)
    writer.writerows([_write_exact(value) for value in row] for row in product.table.rows)
    files = [(folder / f"{name}.csv", text.getvalue().encode())]
    if product.picture is not None:
        files.append((folder / f"{name}.png", product.picture))
    try:
        for path, content in files:
            part = path.with_name(path.name + ".part")
            part.write_bytes(content)
            part.replace(path)
    except OSError as error:
        raise ConfigError(
            f"--out must be a folder that files can be written to; {folder} is not ({error.strerror}). Choose another."
        ) from None
    return tuple(path for path, _ in files)


def print_product(title: str, product: Product, console: Console) -> None:
    """Print the summary and what is to be known about it."""
    layout.print_heading(console, title)
    table = layout.make_table(*product.summary.columns, left=product.summary.words)
    for row in product.summary.rows:
        table.add_row(*(_write_short(value) for value in row))
    layout.print_table(console, table)
    for note in product.notes:
        layout.print_line(console, note)


def _is_unknown(value: Value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _write_exact(value: Value) -> str:
    """Nothing for what is not known; eight digits of a number."""
    if _is_unknown(value):
        return ""
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _write_short(value: Value) -> str:
    """Four digits of a number, and a dash for what is not known."""
    if _is_unknown(value):
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
