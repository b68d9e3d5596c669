"""``cloister run``: simulate a job file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer


def run(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The result folder; default: result-NAME.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes the run reproducible, and its masks no longer secret.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Simulate the time of this network; see 'cloister networks'.")
    ] = None,
    draw_records: Annotated[
        bool, typer.Option("--draw-records", help="Draw records in the picture, which hands them over.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the result folder.")] = False,
) -> None:
    """Simulate a job: all parties in this process, with the messages they would send."""
    from cloister.cli.execution import execute_job  # noqa: PLC0415 (numba takes a second to load)
    from cloister.job import load_job  # noqa: PLC0415

    job = load_job(job_file)
    if seed is not None:
        job = replace(job, seed=seed)
    if network is not None:
        job = replace(job, network=network)
    folder = Path(f"result-{job.name}") if out is None else out
    execute_job(job, folder, overwrite=overwrite, draw_records=draw_records, quiet=quiet)
    if draw_records:
        typer.echo("cloister: picture.png shows records of the parties: it is as private as their tables.", err=True)
