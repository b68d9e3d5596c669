"""``cloister demo``: three clinics cluster their patients together, on embedded synthetic data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="The result folder; an earlier result in it is replaced.")] = Path(
        "cloister-demo"
    ),
) -> None:
    """Run the embedded example: three clinics, synthetic patients, no files needed."""
    from cloister.cli.execution import execute_job  # noqa: PLC0415 (numba takes a second to load)
    from cloister.data import sample_folder  # noqa: PLC0415
    from cloister.job import load_job  # noqa: PLC0415

    job_file = sample_folder("clinics") / "job.toml"
    job = load_job(job_file)
    names = ", ".join(party.name for party in job.parties)
    typer.echo(f"{len(job.parties)} clinics ({names}) cluster their synthetic patients, each keeping its own table.")
    typer.echo(f"The job: {job_file}")
    execute_job(job, out, overwrite=True, draw_records=True, quiet=False)
    typer.echo("\nNext, label one clinic's patients with what all three found:")
    typer.echo(f"  cloister predict {out} {job_file.parent / 'north.csv'} --out labels.csv")
