"""``python -m papers fastlloyd | secfc | feddp``: the papers' figures and tables, run again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cloister.cli.failures import guard

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run the papers' evaluations again, with our numbers beside the printed ones.",
)


@app.command()
@guard
def fastlloyd(
    quick: Annotated[bool, typer.Option("--quick", help="A minute: few runs, samples of the large sets.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these, with commas between: fig3,table8.2.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs of each point and cell; default: as the papers.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of data sets; default: ../shared/data, here or at the repository.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the files go.")] = Path("fastlloyd-reproduction"),
    processes: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
) -> None:
    """Reproduce FastLloyd's and the thesis's figures and tables as CSV files and pictures: about an hour on two cores.

    Published variants are run as published: where their privacy guarantee fails, tables and pictures say so.
    """
    from papers.fastlloyd import choose_artefacts, find_data, make_scope, reproduce  # noqa: PLC0415 (takes a second)

    _make(
        reproduce, choose_artefacts(_split(only)), make_scope(find_data(data), quick=quick, runs=runs), out, processes
    )


@app.command()
@guard
def secfc(
    quick: Annotated[bool, typer.Option("--quick", help="A minute: few runs, smaller mixtures.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these, with commas between: table1,fig1.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Runs of each cell, sessions of each time; default: 10 and 5.")
    ] = None,
    mnist: Annotated[
        Path | None, typer.Option(help="The folder of MNIST's IDX files; default: scikit-learn's digits stand in.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the files go.")] = Path("secfc-reproduction"),
    processes: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
) -> None:
    """Reproduce SecFC's tables 1 to 3 and figure 1 as CSV files and pictures: some minutes on two cores."""
    from papers.secfc import (  # noqa: PLC0415 (takes a second)
        choose_secfc_artefacts,
        make_secfc_scope,
        reproduce_secfc,
    )

    artefacts = choose_secfc_artefacts(_split(only))
    _make(reproduce_secfc, artefacts, make_secfc_scope(mnist, quick=quick, runs=runs), out, processes)


@app.command()
@guard
def feddp(
    quick: Annotated[bool, typer.Option("--quick", help="A minute or two: few runs and settings.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these, with commas between: fig1,table2.")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs of each setting; default: 3.")] = None,
    folktables: Annotated[
        Path | None, typer.Option(help="The folder of folktables' census files; default: their figures are left out.")
    ] = None,
    stackoverflow: Annotated[
        Path | None, typer.Option(help="Embedded Stack Overflow questions, Parquet; default: left out.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the files go.")] = Path("feddp-reproduction"),
    processes: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
) -> None:
    """Reproduce FedDP-KMeans's figures and Tables 2 to 5 as CSV files and pictures: about an hour on two cores."""
    from papers.feddp import (  # noqa: PLC0415 (takes a second)
        choose_feddp_artefacts,
        make_feddp_scope,
        reproduce_feddp,
    )

    artefacts = choose_feddp_artefacts(_split(only))
    scope = make_feddp_scope(folktables=folktables, stackoverflow=stackoverflow, quick=quick, runs=runs)
    _make(reproduce_feddp, artefacts, scope, out, processes)


def _split(only: str | None) -> list[str] | None:
    """The names of --only."""
    return None if only is None else [name.strip() for name in only.split(",") if name.strip()]


def _make(
    reproduce: Callable[..., tuple[Path, ...]], artefacts: Any, scope: Any, out: Path, processes: int | None
) -> None:
    """Make one paper's artefacts, with progress, and say where they are."""
    from cloister.cli.progress import show_progress  # noqa: PLC0415
    from cloister.report.layout import make_console  # noqa: PLC0415

    console = make_console()
    with show_progress(make_console(stderr=True)) as show:
        written = reproduce(
            artefacts,
            scope,
            folder=out,
            processes=(os.cpu_count() or 1) if processes is None else processes,
            console=console,
            on_progress=show,
        )
    console.print(f"\n{len(written)} files in {out}", soft_wrap=True)


if __name__ == "__main__":
    app()
