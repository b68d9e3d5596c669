"""``cloister predict``: label new rows with the centres of a result, at one party or with columns at several."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.report.predict import Prediction
    from cloister.report.result import Result


def predict(
    result_folder: Annotated[Path, typer.Argument(metavar="RESULT", help="The result folder.", show_default=False)],
    table: Annotated[
        Path | None, typer.Argument(metavar="[TABLE]", help="CSV or Parquet; columns by name.", show_default=False)
    ] = None,
    job_file: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.TOML", help="Instead of TABLE: a vertical job with new records."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The CSV file to write; default: standard output. With --job a folder: labels-NAME."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Label rows: writes a CSV with the row (from 1) and its cluster. Runs here; nothing is sent.

    With --job columns are at several parties, and the messages between them are simulated: labels-PARTY.csv for each
    party that the job grants labels.
    """
    if (table is None) == (job_file is None):
        got = "neither" if table is None else "both"
        raise ConfigError(f"either TABLE or --job must say what to label; got {got}. See cloister predict --help.")
    from cloister.report.folder import read_result  # noqa: PLC0415 (numba takes a second to load)

    result = read_result(result_folder)
    if job_file is not None:
        _predict_vertical(result, job_file, out, overwrite=overwrite)
    elif table is not None:
        _predict_table(result, table, out, overwrite=overwrite)


def _predict_vertical(result: Result, job_file: Path, out: Path | None, *, overwrite: bool) -> None:
    """Run a session for labels, and write each granted party's file."""
    from cloister.cli.execution import tell_clipped  # noqa: PLC0415 (numba takes a second to load)
    from cloister.cli.progress import show_progress  # noqa: PLC0415
    from cloister.job import load_job  # noqa: PLC0415
    from cloister.report.labels import check_label_folder, write_label_folder  # noqa: PLC0415
    from cloister.report.layout import make_console  # noqa: PLC0415
    from cloister.simulation.vertical_labels import predict_vertical  # noqa: PLC0415

    job = load_job(job_file)
    folder = Path(f"labels-{job.name}") if out is None else out
    check_label_folder(folder, job.protocol.labels or (), overwrite=overwrite)
    errors = make_console(stderr=True)
    with show_progress(errors, quiet=False) as on_progress:
        labelled = predict_vertical(result, job, on_progress=on_progress, on_table=tell_clipped(job, errors))
    for path in write_label_folder(labelled.labels, folder, overwrite=overwrite):
        typer.echo(str(path))
    typer.echo(
        f"cloister: labelled {len(labelled.labels[0].labels):,} records. Labels are not differentially private, and no "
        "budget covers them: each file is for its party only, and as private as the records.",
        err=True,
    )


def _predict_table(result: Result, table: Path, out: Path | None, *, overwrite: bool) -> None:
    """Label whole rows where they are."""
    from cloister.report.predict import predict as open_prediction  # noqa: PLC0415 (numba takes a second to load)

    prediction = open_prediction(result, table)
    with _open_output(out, overwrite=overwrite) as file:
        _write_labels(prediction, file)
    clipped = [
        f"{column.name} {count:,}" for column, count in zip(result.columns, prediction.clipped, strict=True) if count
    ]
    if clipped:
        typer.echo(
            "cloister: cells outside the public bounds were moved onto them, by column: " + ", ".join(clipped),
            err=True,
        )
    typer.echo(
        f"cloister: labelled {prediction.records:,} rows. A label says which centre a row is near: the "
        "labels of private rows are as private as the rows.",
        err=True,
    )


def _write_labels(prediction: Prediction, file: TextIO) -> None:
    """Write ``row,label`` a batch at a time."""
    file.write("row,label\n")
    first = 1
    for labels in prediction.labels():
        file.writelines(f"{row},{label}\n" for row, label in enumerate(labels.tolist(), first))
        first += len(labels)


@contextmanager
def _open_output(path: Path | None, *, overwrite: bool) -> Iterator[TextIO]:
    """Open standard output, or a file that appears when it is complete."""
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
