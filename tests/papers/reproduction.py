"""Reproduces a paper at some scope, and reads what it left."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from cloister.report.layout import make_console
from papers.lab.paper import Paper, Scope


def reproduce(paper: Paper, scope: Scope, folder: Path, only: list[str] | None = None, processes: int = 1) -> str:
    """Return what is printed."""
    text = io.StringIO()
    paper.reproduce(
        only,
        scope,
        folder=folder,
        processes=processes,
        console=make_console(text),
        on_progress=lambda progress: None,
    )
    return text.getvalue()


def read_rows(folder: Path, name: str) -> list[dict[str, str]]:
    """The CSV file of an artefact."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
