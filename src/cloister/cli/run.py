"""``cloister run``, ``cloister demo`` and ``cloister networks``: simulate a job with progress, and write its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cloister.cli.job_files import OwnFiles, read_setup
from cloister.cli.ledger_report import print_statements, take_statements, tell_if_stopped
from cloister.cli.output import AsJson, print_json
from cloister.cli.progress import report_clipped
from cloister.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from rich.console import Console

    from cloister.data import Table
    from cloister.job import Setup
    from cloister.privacy.ledger import LedgerSession
    from cloister.records import FloatArray
    from cloister.report import Result
    from cloister.report.labels import PartyLabels

_MOST_DRAWN = 5_000
_SOURCES = (
    'Vertical K-Means: Mazzone et al., "Privacy-Preserving Vertical K-Means Clustering", Table 1. '
    'FastLloyd: Diaa et al., "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering with '
    'Differential Privacy". Thesis: "Differentially-Private Multiparty Clustering".'
)


def run(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The result folder; default: result-NAME.")] = None,
    own: OwnFiles = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes the run reproducible, but its masks and noise no longer secret.")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="Simulate the time of this network; see 'cloister networks'.")
    ] = None,
    draw_records: Annotated[
        bool, typer.Option("--draw-records", help="Draw the records in the picture, which discloses them.")
    ] = False,
    loss: Annotated[
        bool | None,
        typer.Option(
            help="Print the exact loss over all records, which is not private. Default: only without a [budget]."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result.")] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Also write report.html, with everybody's ledgers: for your own eyes.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the result folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a job: all parties run in this process and exchange the real messages."""
    setup = read_setup(job_file, own, seed=seed)
    if network is not None:
        setup = replace(setup, network=network)
    folder = Path(f"result-{setup.job.name}") if out is None else out
    command = f"cloister run {job_file}" if html else ""
    told = Telling(contract=read_contract(job_file), quiet=quiet, as_json=as_json, html=command)
    _simulate(setup, folder, told, overwrite=overwrite, draw_records=draw_records, loss=loss)
    if draw_records:
        typer.echo("cloister: picture.png shows the parties' records: it is as private as their tables.", err=True)


def demo(
    out: Annotated[Path, typer.Option(help="The result folder; an earlier result in it is replaced.")] = Path(
        "cloister-demo"
    ),
    network: Annotated[
        bool, typer.Option("--network", help="Four processes with keys and TLS, as between machines.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the embedded example: three clinics, synthetic patients, no files needed."""
    from cloister.data import sample_folder
    from cloister.job import OwnSide
    from cloister.report.layout import make_console

    job_file = sample_folder("clinics") / "job.toml"
    if network:
        from cloister.cli.network_demo import demo_network

        demo_network(job_file, out, as_json=as_json)
        return
    setup = read_setup(job_file)
    setup = replace(setup, own={name: OwnSide(data=side.data) for name, side in setup.own.items()})  # charges nobody
    told = Telling(contract=read_contract(job_file), quiet=False, as_json=as_json)
    if as_json:
        _simulate(setup, out, told, overwrite=True, draw_records=True, loss=True)
        return
    parties, console = setup.job.parties, make_console()
    names = ", ".join(party.name for party in parties)
    console.print(f"{len(parties)} clinics ({names}) cluster their synthetic patients, each keeping its own table.")
    console.print(f"The job: {job_file}", soft_wrap=True)
    console.print("As the patients are made up, the picture shows them, and the report prints the exact loss.")
    _simulate(setup, out, told, overwrite=True, draw_records=True, loss=True)
    console.print("\nNext, label one clinic's patients with what all three found:")
    console.print(f"  cloister predict {out} {job_file.parent / 'north.csv'} --out labels.csv", soft_wrap=True)


def networks(as_json: AsJson = False) -> None:
    """List the network models."""
    from cloister.report.layout import make_console, make_table, print_line, print_table
    from cloister.runtime import NETWORKS

    if as_json:
        print_json({name: asdict(model) for name, model in NETWORKS.items()})
        return
    table = make_table("name", "Mbit/s", "delay ms", "jitter ms", "loss %")
    for name, model in NETWORKS.items():
        numbers = (model.bandwidth_mbps, model.delay_ms, model.jitter_ms, model.loss_percent)
        table.add_row(name, *("unlimited" if isinf(number) else f"{number:g}" for number in numbers))
    console = make_console()
    print_table(console, table)
    console.print()
    for name, model in NETWORKS.items():
        print_line(console, f"{name}: {model.description} ({model.source})")
    console.print()
    print_line(console, _SOURCES)


class Telling(NamedTuple):
    """What a run says, and with which contract its result is written."""

    contract: str
    quiet: bool
    as_json: bool
    html: str = ""
    """The command that is written on the report's page; empty: there is no page."""


def _simulate(
    setup: Setup, folder: Path, told: Telling, *, overwrite: bool, draw_records: bool, loss: bool | None
) -> None:
    """Simulate a job, write its result folder and print the report.

    Parameters
    ----------
    setup
        The job, with everybody's own side.
    folder
        Where the result goes; refused before the run if it may not be written to.
    told
        What is printed: with ``quiet`` neither progress nor a report, only the folder.
    overwrite
        Replace an earlier result there.
    draw_records
        Draw the parties' records in the picture, which discloses them to everyone who sees it.
    loss
        Print the exact loss, which is not private; None: only where the job has no budget.
    """
    from cloister.cli.report import write_page
    from cloister.columns import Within
    from cloister.report.evaluation import AllRecords
    from cloister.report.folder import REPORT_FILE, check_destination
    from cloister.report.layout import make_console
    from cloister.report.page.build import make_page
    from cloister.report.progress import show_progress
    from cloister.sessions import simulate

    errors = make_console(stderr=True)
    check_destination(folder, overwrite=overwrite)
    labels: list[PartyLabels] = []
    drawn: list[FloatArray] = []

    def keep_some(tables: Sequence[Table]) -> None:
        values = [table.encoded_by(Within(axes=setup.job.coordinates)) for table in tables]
        drawn.append(AllRecords(values).sample(_MOST_DRAWN))

    ledgers: dict[str, LedgerSession] = {}
    with tell_if_stopped(ledgers, errors), show_progress(errors, quiet=told.quiet) as on_progress:
        result = simulate(
            setup,
            evaluate=loss,
            on_progress=on_progress,
            on_table=None if told.quiet else report_clipped(setup.job, errors),
            on_labels=labels.append,
            on_records=keep_some if draw_records else None,
            on_ledger=ledgers.__setitem__,
        )
    picture = draw(result, drawn[0] if drawn else None, errors)
    written = _write(result, folder, told.contract, overwrite=overwrite, picture=picture, labels=labels)
    if told.html:
        states = {party: session.state() for party, session in ledgers.items()}
        write_page(make_page(result, ledgers=states, job=told.contract, commands=(told.html,)), written / REPORT_FILE)
    tell_result(result, written, ledgers, quiet=told.quiet, as_json=told.as_json)
    if not told.quiet:
        for own in labels:
            errors.print(
                f"cloister: {own.file_name} is for {own.party} only: it is as private as its records.", soft_wrap=True
            )


def read_contract(job_file: Path) -> str:
    """Return the public part of a job file, for the result folder."""
    from cloister.jobfile.contract import write_contract

    return write_contract(job_file.read_text(encoding="utf-8-sig"))


def tell_result(
    result: Result, folder: Path, ledgers: Mapping[str, LedgerSession], *, quiet: bool, as_json: bool
) -> None:
    """Print a result that was written: its report, or JSON, or only where it is."""
    from cloister.report.layout import make_console
    from cloister.report.result import encode_result
    from cloister.report.text import print_report

    console = make_console()
    if as_json:
        import msgspec

        found = {"folder": folder, "result": msgspec.Raw(encode_result(result)), "loss": result.evaluation}
        print_json({**found, "ledgers": take_statements(ledgers)})
    elif quiet:
        console.print(str(folder), soft_wrap=True)
    else:
        print_report(result, console, folder=folder)
        print_statements(ledgers, console)


def draw(result: Result, records: FloatArray | None, errors: Console) -> bytes | None:
    """Draw the picture; a picture that cannot be drawn must not cost the result."""
    from cloister.report.picture import draw_picture

    try:
        return draw_picture(result, records=records)
    except MissingExtraError as error:
        errors.print(f"cloister: no picture: {error}", soft_wrap=True)
    except Exception as error:  # its text may quote data
        errors.print(f"cloister: no picture: drawing failed ({type(error).__name__}).", soft_wrap=True)
    return None


def _write(
    result: Result,
    folder: Path,
    contract: str,
    *,
    overwrite: bool,
    picture: bytes | None,
    labels: Sequence[PartyLabels],
) -> Path:
    """Write the result folder; a result that has cost budget must not be lost with it."""
    from cloister.report.folder import write_result
    from cloister.report.layout import make_console
    from cloister.report.text import print_report

    try:
        return write_result(result, folder, overwrite=overwrite, contract=contract, picture=picture, labels=labels)
    except ConfigError:
        print_report(result, make_console())
        raise
