"""What an artefact leaves behind: a table as CSV, a picture where the paper has one, and a summary to print."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console

from cloister.errors import ConfigError
from cloister.report.layout import make_table, print_heading, print_line, print_table
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Trial

Value = str | int | float | None
ScopeT_contra = TypeVar("ScopeT_contra", contravariant=True)
TrialT_co = TypeVar("TrialT_co", covariant=True)
LabT_contra = TypeVar("LabT_contra", contravariant=True)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Named columns and rows of values; None for what is not known."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    words: int = 1
    """How many of the first columns hold words."""


@dataclass(frozen=True, kw_only=True)
class Product:
    """One artefact, made."""

    table: Table
    """Everything, for the CSV file."""
    summary: Table
    """Ours beside what is printed, for people."""
    notes: tuple[str, ...] = ()
    picture: bytes | None = field(default=None, repr=False)


class PaperArtefact(Protocol[ScopeT_contra, TrialT_co, LabT_contra]):
    """One figure or table of a paper, made from that paper's trials in its lab."""

    @property
    def name(self) -> str:
        """What ``--only`` and the files call it."""

    @property
    def title(self) -> str:
        """What it shows, and where the paper has it."""

    def list_trials(self, scope: ScopeT_contra) -> Sequence[TrialT_co]:
        """The runs that it needs."""

    def count_sessions(self, scope: ScopeT_contra) -> int:
        """How many timed sessions it makes, one tick of the lab each."""

    def make(self, scope: ScopeT_contra, lab: LabT_contra) -> Product:
        """Make it from runs that are done, and time what is to be timed."""


Artefact = PaperArtefact[Scope, Trial, Lab]
"""One of FastLloyd or of the thesis."""


class _Named(Protocol):
    @property
    def name(self) -> str:
        """What ``--only`` calls it."""


NamedT = TypeVar("NamedT", bound=_Named)


def choose_by_name(artefacts: tuple[NamedT, ...], names: Sequence[str] | None) -> tuple[NamedT, ...]:
    """The artefacts of these names, or all of them; in the catalogue's order."""
    known = {artefact.name: artefact for artefact in artefacts}
    if names is None:
        return artefacts
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        got = ", ".join(unknown) or "none"
        raise ConfigError(f"--only must name artefacts; got {got}. Known are: {', '.join(known)}.")
    return tuple(artefact for artefact in artefacts if artefact.name in names)


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
    print_heading(console, title)
    table = make_table(*product.summary.columns, left=product.summary.words)
    for row in product.summary.rows:
        table.add_row(*(_write_short(value) for value in row))
    print_table(console, table)
    for note in product.notes:
        print_line(console, note)


def _write_exact(value: Value) -> str:
    """Nothing for what is not known; eight digits of a number."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _write_short(value: Value) -> str:
    """Four digits of a number, and a dash for what is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
