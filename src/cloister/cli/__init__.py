"""The command line: ``cloister demo | init | plan | run | report | predict | audit | ledger | align | networks``.

Between organisations: ``cloister keys | check | join | serve | party | clients | verify``.

Results go to standard output; progress, warnings and errors go to standard error. What a command needs is imported when
it runs, so that ``cloister --help`` answers at once: numba alone takes a second to load.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from cloister.cli.agree import join
from cloister.cli.check import check
from cloister.cli.clients import clients
from cloister.cli.examine import audit, plan
from cloister.cli.failures import EXIT_CODES_HELP, guard
from cloister.cli.job_files import init
from cloister.cli.keys import keys_app
from cloister.cli.ledger import ledger_app
from cloister.cli.network import party, serve
from cloister.cli.records import align, predict
from cloister.cli.report import report
from cloister.cli.run import demo, networks, run
from cloister.cli.verify import verify

__all__ = ["app", "main"]

app = typer.Typer(
    name="cloister",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and those hold records
    rich_markup_mode=None,
    epilog=EXIT_CODES_HELP,
)
for command in (
    demo,
    init,
    plan,
    run,
    report,
    check,
    join,
    serve,
    party,
    clients,
    verify,
    predict,
    audit,
    align,
    networks,
):
    app.command()(guard(command))
app.add_typer(ledger_app, name="ledger")
app.add_typer(keys_app, name="keys")


@app.callback(invoke_without_command=True)
def cloister(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Cluster the records of several organisations with k-means, without any of them sharing its records."""
    if show_version:
        typer.echo(f"cloister {version('cloister')}")
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:  # outside a command: while modules load
        typer.echo("cloister: stopped. No result was written. Ledgers remain charged for what was released.", err=True)
        sys.exit(130)
