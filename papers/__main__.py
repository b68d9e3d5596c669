"""``python -m papers fastlloyd | secfc | feddp``: the papers' figures and tables, run again."""

from __future__ import annotations

import os
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from cloister.cli.failures import guard
from cloister.report.layout import make_console
from cloister.report.progress import show_progress
from papers.data.files import ENVIRONMENT, find_data
from papers.lab.paper import Paper

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Name(StrEnum):
    """The papers, by the folder that each has here."""

    FASTLLOYD = "fastlloyd"
    SECFC = "secfc"
    FEDDP = "feddp"


@app.command()
@guard
def reproduce(
    name: Annotated[Name, typer.Argument(metavar="PAPER", help="fastlloyd (and the thesis), secfc or feddp.")],
    quick: Annotated[bool, typer.Option("--quick", help="A minute or two: few runs, smaller data.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these, with commas between: fig3,table8.2.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs of each point and cell; default: as the paper.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help=f"The folder of data sets; default: {ENVIRONMENT}, or shared/data beside the checkout."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the files go; default: PAPER-reproduction.")] = None,
    processes: Annotated[int | None, typer.Option(help="Processes; default: one per core.")] = None,
) -> None:
    """Run a paper's evaluation again: CSV files and pictures, with our numbers beside the printed ones.

    At full size FastLloyd and FedDP-KMeans take about an hour on two cores, SecFC some minutes. Published variants are
    run as published: where their privacy guarantee fails, tables and pictures say so.
    """
    paper = load_paper(name)
    folder = Path(f"{name}-reproduction") if out is None else out
    names = None if only is None else [each.strip() for each in only.split(",") if each.strip()]
    console = make_console()
    with show_progress(make_console(stderr=True)) as show:
        written = paper.reproduce(
            names,
            paper.choose_scope(find_data(data), quick=quick, runs=runs),
            folder=folder,
            processes=(os.cpu_count() or 1) if processes is None else processes,
            console=console,
            on_progress=show,
        )
    console.print(f"\n{len(written)} files in {folder}", soft_wrap=True)


def load_paper(name: Name) -> Paper[Any, Any, Any]:
    """Import one paper only: each takes a second."""
    paper: Paper[Any, Any, Any] = import_module(f"papers.{name}").PAPER
    return paper


if __name__ == "__main__":
    app()
