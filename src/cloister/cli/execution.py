"""What ``run`` and ``demo`` share: simulate a job with progress, draw, write the folder, print the report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cloister.cli.progress import show_progress
from cloister.data import TableCheck, open_table, to_original
from cloister.errors import ConfigError, MissingExtraError
from cloister.job import Job
from cloister.protocols.vertical.settings import VERTICAL
from cloister.records import FloatArray
from cloister.report.evaluation import AllRecords
from cloister.report.folder import check_destination, write_result
from cloister.report.labels import PartyLabels
from cloister.report.layout import make_console
from cloister.report.picture import draw_picture
from cloister.report.text import print_report
from cloister.simulation import OnTable, simulate
from cloister.simulation.vertical_tables import join_columns, open_vertical_tables

_MOST_DRAWN = 5_000


def execute_job(job: Job, folder: Path, *, overwrite: bool, draw_records: bool, quiet: bool) -> None:
    """Simulate a job and leave its result folder and report.

    Parameters
    ----------
    job
        The job.
    folder
        Where the result goes; refused before the run if it may not be written to.
    overwrite
        Replace an earlier result there.
    draw_records
        Draw the parties' records in the picture, which hands them to whoever sees it.
    quiet
        No progress and no report: print the folder only.
    """
    errors = make_console(stderr=True)
    check_destination(folder, overwrite=overwrite)
    labels: list[PartyLabels] = []
    with show_progress(errors, quiet=quiet) as on_progress:
        result = simulate(
            job, on_progress=on_progress, on_table=None if quiet else tell_clipped(job, errors), on_labels=labels.append
        )
    picture = None
    try:
        picture = draw_picture(result, records=sample_records(job) if draw_records else None)
    except MissingExtraError as error:
        errors.print(f"cloister: no picture: {error}", soft_wrap=True)
    except Exception as error:  # a result must not be lost for a picture; the text may quote data
        errors.print(f"cloister: no picture: drawing failed ({type(error).__name__}).", soft_wrap=True)
    console = make_console()
    try:
        written = write_result(result, folder, overwrite=overwrite, picture=picture, labels=labels)
    except ConfigError:
        print_report(result, console)  # a result that may have cost a budget is not lost with its folder
        raise
    if quiet:
        console.print(str(written), soft_wrap=True)
    else:
        print_report(result, console, folder=written)
        for own in labels:
            errors.print(
                f"cloister: {own.file_name} is for {own.party} only: it is as private as records.", soft_wrap=True
            )


def tell_clipped(job: Job, errors: Console) -> OnTable:
    """Return what tells each party, on standard error, how many of its values lie outside the public bounds."""
    names = {party.name: [column.name for column in job.find_columns(party)] for party in job.parties}

    def tell(party: str, check: TableCheck) -> None:
        named = [f"{name} {count}" for name, count in zip(names[party], check.clipped, strict=True) if count]
        if named:
            errors.print(
                f"cloister: for {party} only: values outside the bounds were moved onto them: {', '.join(named)}.",
                soft_wrap=True,
            )

    return tell


def sample_records(job: Job) -> FloatArray:
    """Return at most about 5,000 records of all parties in original units, every so-manieth of each table."""
    if job.protocol.name == VERTICAL:
        joined = join_columns(job, open_vertical_tables(job, {}))
        return to_original(AllRecords([joined]).sample(_MOST_DRAWN), job.columns)
    tables = []
    for party in job.parties:
        path = job.find_data(party)
        if path is None:
            raise ConfigError(f"party {party.name} must have the key data for its records to be drawn; got none.")
        tables.append(open_table(path, job.columns, match=job.data.match))
    return to_original(AllRecords(tables).sample(_MOST_DRAWN), job.columns)
