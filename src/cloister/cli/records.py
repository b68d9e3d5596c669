"""``cloister align`` and ``cloister predict``: put records into a common order, and label new ones."""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from cloister.cli.job_files import OwnFiles, read_setup
from cloister.cli.output import AsJson, print_json
from cloister.cli.progress import list_outside, report_clipped
from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.job import Setup
    from cloister.report import Result
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
    as_json: AsJson = False,
) -> None:
    """Privately align records by their IDs: all parties run in this process and exchange the real messages.

    Each party gets a file that says which of its rows is at each place of the common order.
    """
    from cloister.protocols.align.terms import Mode, NormalForm
    from cloister.report.layout import make_console
    from cloister.report.progress import show_progress
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
    if as_json:
        assert aligned.run is not None  # nothing was read from earlier files
        found = aligned.run.result
        print_json({"mode": found.mode.value, "ids": found.count, "digest": aligned.digest, "files": files})
        return
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
    decimal: Annotated[
        str | None, typer.Option(metavar="SIGN", help="What stands before decimals in TABLE: a point or a comma.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Keep this column beside the label, not the row.")
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Write the whole table, with the label as its last column.")
    ] = False,
    own: OwnFiles = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Label rows: writes a CSV with the row (from 1) and its cluster. Runs locally; nothing is sent.

    With --job, columns are split across parties, and their messages are simulated: writes labels-PARTY.csv for each
    party that the job grants labels to.
    """
    if (table is None) == (job_file is None):
        got = "neither" if table is None else "both"
        raise ConfigError(f"either TABLE or --job must be given; got {got}. See cloister predict --help.")
    if append + (id_column is not None) + (job_file is not None) > 1:
        raise ConfigError("--id, --append and --job each say what is written; got more than one. Leave one.")
    if as_json and table is not None and out is None:
        raise ConfigError("--json says what was written to --out; it was not given. Give it, or leave out --json.")
    from cloister.report import read_result

    result = read_result(result_folder)
    if job_file is not None:
        _label_at_parties(result, read_setup(job_file, own), out, overwrite=overwrite, as_json=as_json)
    elif table is not None:
        written = _label_table(result, table, out, id_column, decimal=decimal, append=append, overwrite=overwrite)
        if as_json:
            print_json({"file": out, **written})


def _label_at_parties(result: Result, setup: Setup, out: Path | None, *, overwrite: bool, as_json: bool) -> None:
    """Run a session for labels, and write a file for each party that is granted them."""
    from cloister.report.labels import check_label_folder, write_label_folder
    from cloister.report.layout import make_console
    from cloister.report.progress import show_progress
    from cloister.sessions import label_records

    job = setup.job
    folder = Path(f"labels-{job.name}") if out is None else out
    check_label_folder(folder, [party.name for party in job.parties], overwrite=overwrite)
    errors = make_console(stderr=True)
    with show_progress(errors) as on_progress:
        labels = label_records(result, setup, on_progress=on_progress, on_table=report_clipped(job, errors))
    files = write_label_folder(labels, folder, overwrite=overwrite)
    if as_json:
        print_json({"files": files, "rows": len(labels[0].labels)})
    else:
        for path in files:
            typer.echo(str(path))
    typer.echo(
        f"cloister: labelled {len(labels[0].labels):,} records. Labels are not differentially private, and no "
        "budget covers them: each file is for its own party only, and as private as the records.",
        err=True,
    )


def _label_table(
    result: Result,
    table: Path,
    out: Path | None,
    id_column: str | None,
    *,
    decimal: str | None,
    append: bool,
    overwrite: bool,
) -> dict[str, object]:
    """Label whole rows locally; return what was written."""
    from cloister.report.labels import DELIMITERS, LABEL, append_labels
    from cloister.report.labels import predict as open_prediction

    prediction = open_prediction(result, table, id_column=id_column, decimal=decimal)
    labels = (label for batch in prediction.labels() for label in batch.tolist())
    rows: Iterator[Sequence[object]]
    if append:
        rows = append_labels(table, labels)
    else:
        keys = range(1, prediction.records + 1) if prediction.ids is None else prediction.ids
        rows = chain([(id_column or "row", LABEL)], zip(keys, labels, strict=True))
    first = next(rows)  # what is wrong with the table is said before a file is begun
    with _open_output(out, overwrite=overwrite) as file:
        delimiter = DELIMITERS[table.suffix.lower()] if append else ","
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(chain([first], rows))
    clipped = {column.name: count for column, count in zip(result.columns, prediction.clipped, strict=True) if count}
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
    return {"rows": prediction.records, "clipped": clipped}


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
