"""``cloister verify``: what a result of a session between organisations proves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.cli.failures import EXIT_FAILED_CHECK
from cloister.cli.output import AsJson, print_json


def verify(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A party's result folder.", show_default=False)],
    job_file: Annotated[
        Path | None, typer.Option("--job", metavar="JOB.TOML", help="The job as you know it: whom you expect.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="LEDGER", help="The party's ledger, or its name: shows what was charged.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the signatures, consents, files and ledger heads that a party's result holds."""
    from cloister.agreement import verify_result
    from cloister.cli.ledger import find_ledger
    from cloister.jobfile import load_job
    from cloister.report.layout import make_console, print_heading

    job = None if job_file is None else load_job(job_file)
    verification = verify_result(result, job=job, ledger=None if ledger is None else find_ledger(ledger))
    record = verification.record
    if as_json:
        said = {"party": record.party, "run": record.run, "date": record.date, "outcome": record.outcome}
        print_json({"holds": verification.holds, **said, "checks": verification.checks})
    else:
        console = make_console()
        console.print(f"{record.party} says that it took part in run {record.run}, which ended on {record.date}.")
        print_heading(console, "What was checked")
        for check in verification.checks:
            console.print(
                f"  {check.outcome:<9} {check.what}" + (f": {check.why}" if check.why else ""), soft_wrap=True
            )
    if not verification.holds:
        raise typer.Exit(EXIT_FAILED_CHECK)
