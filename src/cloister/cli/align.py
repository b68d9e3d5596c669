"""``cloister align``: bring the tables of a job into one common order of records, by their IDs."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cloister.simulation.alignment import Aligned


class ModeName(StrEnum):
    """Which IDs get a place."""

    INTERSECTION = "intersection"
    UNION = "union"


class FormName(StrEnum):
    """What makes two IDs equal."""

    TEXT = "text"
    INTEGER = "integer"
    RAW = "raw"


def align(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)],
    id_column: Annotated[
        str, typer.Option("--id", metavar="COLUMN", help="The ID column of every table.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The folder for the files PARTY.alignment.json.", show_default=False)],
    mode: Annotated[
        ModeName, typer.Option(help="intersection: IDs that all hold (vertical jobs); union: that any holds (SecFC).")
    ] = ModeName.INTERSECTION,
    form: Annotated[
        FormName, typer.Option(help="text: 007 is not 7; integer: 007 is 7; raw: byte for byte.")
    ] = FormName.TEXT,
    trim: Annotated[bool, typer.Option("--trim", help="Ignore blanks at the ends of IDs.")] = False,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", help="Ignore upper and lower case.")] = False,
    seed: Annotated[int | None, typer.Option(help="Makes the run reproducible, and its keys no longer secret.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace earlier alignments.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the files' names.")] = False,
) -> None:
    """Align records by their IDs, privately: all parties in this process, with the messages they would send.

    Each party gets a file that says which of its rows stands at each place of the common order.
    """
    from cloister.cli.progress import show_progress  # noqa: PLC0415 (numba takes a second to load)
    from cloister.data.alignment_file import save_alignment  # noqa: PLC0415
    from cloister.errors import ConfigError  # noqa: PLC0415
    from cloister.job import load_job  # noqa: PLC0415
    from cloister.protocols.align import Mode, NormalForm  # noqa: PLC0415
    from cloister.report.layout import make_console  # noqa: PLC0415
    from cloister.simulation.alignment import align_job  # noqa: PLC0415

    job = load_job(job_file)
    if seed is not None:
        job = replace(job, seed=seed)
    chosen = NormalForm(kind=form.value, trim=trim, ignore_case=ignore_case)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out must name a folder; got the file {out}. Choose another name.")
    holders = [party.name for party in job.parties if party.columns != ()]  # others hold no records
    files = {name: out / f"{name}.alignment.json" for name in holders}
    earlier = [path for path in files.values() if path.exists()]
    if earlier and not overwrite:  # told before the work, not after
        raise ConfigError(f"--out must not hold these alignments yet; {earlier[0]} exists. Use --overwrite.")
    with show_progress(make_console(stderr=True), quiet=quiet) as on_progress:
        aligned = align_job(job, id_column, mode=Mode(mode.value), form=chosen, on_progress=on_progress)
    for name, path in files.items():
        save_alignment(aligned.alignments[name], path, overwrite=overwrite)
    if quiet:
        for path in files.values():
            typer.echo(path)
        return
    _report(aligned, files, seeded=job.seed is not None)


def _report(aligned: Aligned, files: dict[str, Path], *, seeded: bool) -> None:
    """Print what came out, and what it told whom."""
    from cloister.protocols.align import LEAKAGE, Mode  # noqa: PLC0415

    outcome = aligned.run.result
    what = "in common" if outcome.mode is Mode.INTERSECTION else "in all"
    digest = next(iter(aligned.alignments.values())).digest
    typer.echo(f"{outcome.count:,} ID{'' if outcome.count == 1 else 's'} {what}. Digest {digest[:16]}")
    for (name, path), size in zip(files.items(), outcome.sizes, strict=True):
        typer.echo(f"  {name}: {size:,} rows → {path}")
    if not outcome.count:
        typer.echo(
            "cloister: no ID is common to all. If that is a surprise, compare how the sides write them: leading zeros "
            "(--form integer), case (--ignore-case), or another column.",
            err=True,
        )
    table = LEAKAGE[outcome.mode]
    for row in table.rows:
        role = "the coordinator" if row.role == "coordinator" else "each party"
        typer.echo(f"  {role} learns {row.learns.value}: {row.meaning}")
    typer.echo(f"  breaks if: {table.breaks_if}")
    typer.echo("Each file is for its own party: it says which of that party's rows have a place.")
    if seeded:
        typer.echo("cloister: made with a seed: reproducible, and whoever knows the seed can undo it.", err=True)
