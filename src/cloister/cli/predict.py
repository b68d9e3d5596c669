"""``cloister predict``: label new rows with the centres of a result."""

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


def predict(
    result_folder: Annotated[Path, typer.Argument(metavar="RESULT", help="The result folder.", show_default=False)],
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV or Parquet; columns by name.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="The CSV file to write; default: standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Label rows: writes a CSV with the row (from 1) and its cluster. Runs here; nothing is sent."""
    from cloister.report.folder import read_result  # noqa: PLC0415 (numba takes a second to load)
    from cloister.report.predict import predict as open_prediction  # noqa: PLC0415

    result = read_result(result_folder)
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
