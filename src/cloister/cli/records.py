"""``cloister align`` and ``cloister predict``: put records into a common order, and label new ones."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from cloister.cli.job_files import OwnFiles, read_setup
from cloister.cli.progress import list_outside, report_clipped, show_progress
from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.job import Setup
    from cloister.report import Result
    from cloister.report.labels import Prediction
    from cloister.sessions import Aligned


class ModeName(StrEnum):
    """Which IDs get a place."""

    INTERSECTION = "intersection"
    UNION = "union"


class FormName(StrEnum):
    """When two IDs are equal."""

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
        ModeName, typer.Option(help="intersection: IDs that all parties hold, for split columns; union: all IDs.")
    ] = ModeName.INTERSECTION,
    form: Annotated[
        FormName, typer.Option(help="How IDs compare. text: 007 is not 7; integer: 007 is 7; raw: byte for byte.")
    ] = FormName.TEXT,
    trim: Annotated[bool, typer.Option("--trim", help="Ignore blanks at the ends of IDs.")] = False,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", help="Ignore case in IDs.")] = False,
    own: OwnFiles = None,
    seed: Annotated[int | None, typer.Option(help="Makes the run reproducible, but its keys no longer secret.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace earlier alignments.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the files' names.")] = False,
) -> None:
    """Privately align records by their IDs: all parties run in this process and exchange the real messages.

    Each party gets a file that says which of its rows is at each place of the common order.
    """
    from cloister.protocols.align.terms import Mode, NormalForm
    from cloister.report.layout import make_console
    from cloister.sessions import align_job
    from cloister.sessions.alignment import save_alignment

    setup = read_setup(job_file, own, seed=seed)
    chosen = NormalForm(kind=form.value, trim=trim, ignore_case=ignore_case)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out must name a folder; got the file {out}. Choose another name.")
    holders = [party.name for party in setup.job.parties if setup.job.find_columns(party)]  # others hold no records
    files = {name: out / f"{name}.alignment.json" for name in holders}
    earlier = [path for path in files.values() if path.exists()]
    if earlier and not overwrite:  # refused before the work, not after
        raise ConfigError(f"--out must not already hold these alignments; {earlier[0]} exists. Use --overwrite.")
    with show_progress(make_console(stderr=True), quiet=quiet) as on_progress:
        aligned = align_job(setup, id_column, mode=Mode(mode.value), form=chosen, on_progress=on_progress)
    for name, path in files.items():
        save_alignment(aligned.alignments[name], path, overwrite=overwrite)
    if quiet:
        for path in files.values():
            typer.echo(path)
        return
    _report(aligned, files, seeded=setup.seed is not None)


def _report(aligned: Aligned, files: dict[str, Path], *, seeded: bool) -> None:
    """Print the outcome, and who learned what."""
    from cloister.protocols.align.terms import LEAKAGE, Mode

    assert aligned.run is not None  # nothing was read from earlier files
    outcome = aligned.run.result
    what = "in common" if outcome.mode is Mode.INTERSECTION else "in total"
    typer.echo(f"{outcome.count:,} ID{'' if outcome.count == 1 else 's'} {what}. Digest {aligned.digest[:16]}")
    for (name, path), size in zip(files.items(), outcome.sizes, strict=True):
        typer.echo(f"  {name}: {size:,} rows → {path}")
    if not outcome.count:
        typer.echo(
            "cloister: no ID is common to all. If that is a surprise, compare how parties write them: leading zeros "
            "(--form integer), case (--ignore-case), or another column.",
            err=True,
        )
    table = LEAKAGE[outcome.mode]
    for row in table.rows:
        role = "the coordinator" if row.role == "coordinator" else "each party"
        typer.echo(f"  {role} learns {row.learns.value}: {row.meaning}")
    typer.echo(f"  {table.withstands} Breaks if: {table.breaks_if}")
    typer.echo("Each file is for its own party only: it says which of that party's rows have a place.")
    if seeded:
        typer.echo("cloister: made with a seed: reproducible, but anyone who knows the seed can undo it.", err=True)


def predict(
    result_folder: Annotated[Path, typer.Argument(metavar="RESULT", help="The result folder.", show_default=False)],
    table: Annotated[
        Path | None, typer.Argument(metavar="[TABLE]", help="CSV or Parquet; columns by name.", show_default=False)
    ] = None,
    job_file: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.TOML", help="Instead of TABLE: a job over new records with split columns."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The CSV file to write; default: standard output. With --job, a folder: labels-NAME."),
    ] = None,
    own: OwnFiles = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Label rows: writes a CSV with the row (from 1) and its cluster. Runs locally; nothing is sent.

    With --job, columns are split across parties, and their messages are simulated: writes labels-PARTY.csv for each
    party that the job grants labels to.
    """
    if (table is None) == (job_file is None):
        got = "neither" if table is None else "both"
        raise ConfigError(f"either TABLE or --job must be given; got {got}. See cloister predict --help.")
    from cloister.report import read_result

    result = read_result(result_folder)
    if job_file is not None:
        _label_at_parties(result, read_setup(job_file, own), out, overwrite=overwrite)
    elif table is not None:
        _label_table(result, table, out, overwrite=overwrite)


def _label_at_parties(result: Result, setup: Setup, out: Path | None, *, overwrite: bool) -> None:
    """Run a session for labels, and write a file for each party that is granted them."""
    from cloister.report.labels import check_label_folder, write_label_folder
    from cloister.report.layout import make_console
    from cloister.sessions import label_records

    job = setup.job
    folder = Path(f"labels-{job.name}") if out is None else out
    check_label_folder(folder, [party.name for party in job.parties], overwrite=overwrite)
    errors = make_console(stderr=True)
    with show_progress(errors) as on_progress:
        labels = label_records(result, setup, on_progress=on_progress, on_table=report_clipped(job, errors))
    for path in write_label_folder(labels, folder, overwrite=overwrite):
        typer.echo(str(path))
    typer.echo(
        f"cloister: labelled {len(labels[0].labels):,} records. Labels are not differentially private, and no "
        "budget covers them: each file is for its own party only, and as private as the records.",
        err=True,
    )


def _label_table(result: Result, table: Path, out: Path | None, *, overwrite: bool) -> None:
    """Label whole rows locally."""
    from cloister.report.labels import predict as open_prediction

    prediction = open_prediction(result, table)
    with _open_output(out, overwrite=overwrite) as file:
        _write_labels(prediction, file)
    outside, unknown = list_outside(result.columns, prediction.clipped)
    if outside:
        typer.echo(
            "cloister: cells outside the public bounds were moved onto the bounds, by column: " + ", ".join(outside),
            err=True,
        )
    if unknown:
        typer.echo("cloister: cells that are none of the levels, by column: " + ", ".join(unknown), err=True)
    typer.echo(
        f"cloister: labelled {prediction.records:,} rows. A label says which centre a row is closest to: the "
        "labels of private rows are as private as the rows.",
        err=True,
    )


def _write_labels(prediction: Prediction, file: TextIO) -> None:
    """Write ``row,label``, one batch at a time."""
    file.write("row,label\n")
    first = 1
    for labels in prediction.labels():
        file.writelines(f"{row},{label}\n" for row, label in enumerate(labels.tolist(), first))
        first += len(labels)


@contextmanager
def _open_output(path: Path | None, *, overwrite: bool) -> Iterator[TextIO]:
    """Open standard output, or a file that appears once it is complete."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    path = path.resolve()
    if path.exists() and (path.is_dir() or not overwrite):
        what_to_do = "Choose another name." if path.is_dir() else "Choose another name, or use --overwrite."
        raise ConfigError(f"--out must name a new file; got {path}, which exists. {what_to_do}")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as workshop:
            fresh = Path(workshop, "fresh")
            with fresh.open("w", encoding="utf-8", newline="\n") as file:
                yield file
            fresh.replace(path)
    except OSError as error:
        raise ConfigError(
            f"--out must be writable; got {path}: {error.strerror or type(error).__name__}. Choose another place."
        ) from None
