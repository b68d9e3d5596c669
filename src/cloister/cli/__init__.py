"""The command line: ``cloister demo | init | plan | run | predict | audit | ledger | align | networks``.

One module a command.

Results go to standard output; progress, warnings and errors go to standard error. Numerical modules are
imported when a command runs, so that ``cloister --help`` answers at once.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from cloister.cli.align import align
from cloister.cli.audit import audit
from cloister.cli.demo import demo
from cloister.cli.failures import EXIT_CODES_HELP, guard
from cloister.cli.init import init
from cloister.cli.ledger import ledger_app
from cloister.cli.networks import networks
from cloister.cli.plan import plan
from cloister.cli.predict import predict
from cloister.cli.run import run

__all__ = ["app", "main"]

app = typer.Typer(
    name="cloister",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show local variables, and those hold records
    rich_markup_mode=None,
    epilog=EXIT_CODES_HELP,
)
for command in (demo, init, plan, run, predict, audit, align, networks):
    app.command()(guard(command))
app.add_typer(ledger_app, name="ledger")


@app.callback(invoke_without_command=True)
def cloister(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Cluster records of several organisations with k-means, without anyone handing their records over."""
    if show_version:
        typer.echo(f"cloister {version('cloister')}")
        raise typer.Exit


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:  # outside a command: while modules load
        typer.echo("cloister: stopped. No result was written; what a ledger was charged stays charged.", err=True)
        sys.exit(130)
